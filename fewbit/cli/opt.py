"""`fewbit-opt`: read a module, run passes on it by name, print it, in the manner of mlir-opt.

Passes are ours, plug-ins', xDSL's and upstream MLIR's; a program goes over to upstream's MLIR where
`to-upstream` or a pass of upstream's stands, and a text is read by upstream's MLIR where the first
pass is one of its. Passes that need weights or a target get them by `--weights` or from a folder
that `fewbit quantize` wrote, and by `-t`.

The module is verified before the first pass and after every one. A file of several modules
(`--split-input-file`) is worked through to the end even where one of them fails, and an output
file is written only when all went well. With `--diff` the diffs are the output, and the module
itself is written only where `-o` says so.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import fewbit
from fewbit.base import progress
from fewbit.base.garbage import THRESHOLDS
from fewbit.cli.guard import guarded, report
from fewbit.errors import Error, ParseError, Place, UsageError

if TYPE_CHECKING:
    from fewbit.pipeline.context import CompileContext
    from fewbit.pipeline.driver import Observer, Step
    from fewbit.pipeline.passes import Pass
    from fewbit.program.program import Program
    from fewbit.targets.target import Target

SEPARATOR = "// -----"


def main() -> None:
    gc.set_threshold(*THRESHOLDS)
    sys.exit(guarded(run, sys.argv[1:]))


def run(argv: list[str]) -> int:
    options, others = _argument_parser().parse_known_args(argv)
    progress.set_verbosity(progress.QUIET if options.quiet else options.verbose)
    if options.print_pipeline:
        print(_pipeline_text(options.target))
        return 0
    if options.list_passes:
        from fewbit.cli.passes import describe_passes

        print(describe_passes(), end="")
        return 0
    return Session(options, others).run()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint="see 'fewbit-opt --help'")


def _argument_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fewbit-opt",
        description="Run passes on an MLIR module and print the result.",
        epilog="A pass may also be given as a flag: --cse, or --place-devices='option=value'.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        help="MLIR text, or the folder of a program; - or nothing is stdin",
    )
    parser.add_argument(
        "-p",
        "--passes",
        action="append",
        default=[],
        metavar="LIST",
        help="passes in order: 'canonicalize,some-pass{option=1}'",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write here, whole or not at all")
    parser.add_argument("-t", "--target", help="what passes that call kernels compile for")
    parser.add_argument(
        "--weights", metavar="FILE", type=Path, help="a safetensors file that constants refer to"
    )
    flags = {
        "--split-input-file": f"treat parts between lines '{SEPARATOR}' as separate modules",
        "--verify-diagnostics": "check the errors against // expected-error {{...}} comments",
        "--diff": "show what each pass changed, in place of the result",
        "--generic": "print the generic form, which every MLIR tool reads",
        "--properties-as-attributes": "with --generic: {} for <{}>, as dialects from IRDL need it",
        "--print-locations": "print loc(...) on every op",
        "--allow-unregistered-dialect": "accept ops of dialects that are not known",
        "--no-verify": "do not verify before and between passes",
        "--timing": "print how long each pass took, on stderr",
        "--time-passes": "the same",
        "--print-pipeline": "print the passes of the target -t, as -p takes them, and exit",
        "--list-passes": "list all passes with their options, and exit",
        "--debug": "show the traceback of an error",
    }
    for flag, text in flags.items():
        parser.add_argument(flag, action="store_true", help=text)
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="say each pass with its time, on stderr"
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="say nothing but results and errors"
    )
    parser.add_argument(
        "--dump-ir", metavar="DIR", type=Path, help="write a numbered file after every pass"
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"fewbit-opt {fewbit.__version__} (xDSL {version('xdsl')})",
    )
    return parser


@dataclass(frozen=True)
class Part:
    """One module's text, with the line of the file on which it begins."""

    text: str
    first_line: int
    name: str


class Session:
    """One call of `fewbit-opt`: its options, and what is made from them once."""

    def __init__(self, options: argparse.Namespace, others: list[str]) -> None:
        from fewbit.pipeline.observers import Timing

        self.options = options
        self.file = "<stdin>" if options.file == "-" else str(options.file)
        self.passes = _requested_passes(options.passes, others)
        self.timing = Timing()

    def run(self) -> int:
        folder = Path(self.options.file)
        text = str(folder) if folder.is_dir() else _read(self.options.file)
        parts = split_input(text) if self.options.split_input_file else [Part(text, 1, "")]
        printed: list[str] = []
        complaints: list[Error] = []
        stages = len(parts) * (1 + len(self.passes))
        with progress.progress(f"Working on {self.file}", stages) as step:
            for part in parts:
                errors: list[Error] = []
                try:
                    printed.append(self._process(part, step))
                except Error as e:
                    errors.append(e)
                complaints.extend(self._judge(part, errors))
        self._write(f"{SEPARATOR}\n".join(printed), complete=not complaints)
        if self.options.time_passes or self.options.timing:
            print("\n".join(self.timing.lines()), file=sys.stderr)
        return max((report(e, debug=self.options.debug) for e in complaints), default=0)

    def _process(self, part: Part, step: progress.Step) -> str:
        """Return the text of a module after all passes."""
        from fewbit.pipeline.driver import Driver, Step

        module, ctx = self._read(part)
        observers = [_Announcer(step), *self._observers(part)]
        verified = not self.options.no_verify
        driver = Driver(ctx, {}, observers=observers, verify_passes=verified)
        driver.show(Step(0, "input", "input", 0.0), module)
        for each in self.passes:
            module = driver.run_pass(each, module)
        return self.to_text(module)

    def _read(self, part: Part) -> tuple[Any, CompileContext]:
        """Return a module in the form that the first pass takes, and its context."""
        from fewbit.ir.parse import parse_module
        from fewbit.pipeline.context import make_compile_context
        from fewbit.pipeline.passes import input_form
        from fewbit.program.program import Program
        from fewbit.program.store import WeightStore

        allowed = self.options.allow_unregistered_dialect
        store = WeightStore.open(self.options.weights) if self.options.weights else WeightStore()
        if self.passes and input_form(self.passes[0]) == "upstream":
            from fewbit.ir.bindings import parse_mlir

            ctx = make_compile_context(store, allow_unregistered=allowed)
            self._add_facts(ctx, None)
            return parse_mlir(part.text), ctx
        if Path(self.options.file).is_dir():
            program = Program.load(self.options.file)
            ctx = make_compile_context(program.store, program.recipe, allow_unregistered=allowed)
        else:
            ctx = make_compile_context(store, allow_unregistered=allowed)
            module = parse_module(part.text, self.file, ctx, part.first_line)
            program = Program(module, ctx.store)
        self._add_facts(ctx, program)
        return program.module, ctx

    def _add_facts(self, ctx: CompileContext, program: Program | None) -> None:
        """Let passes know the target, if one is given."""
        if self.options.target is None:
            return
        from fewbit.targets.target import Request

        request = Request(self.options.target)
        for fact in _find_target(self.options.target).facts(program, request):
            ctx.put(fact)

    def to_text(self, module: Any) -> str:
        from xdsl.dialects.builtin import ModuleOp

        from fewbit.ir.text import print_module
        from fewbit.pipeline.forms import form_of, text_of

        options = self.options
        if isinstance(module, ModuleOp):
            return print_module(
                module,
                generic=options.generic,
                properties_as_attributes=options.properties_as_attributes,
                locations=options.print_locations,
            )
        if form_of(module) == "upstream":
            return module.operation.get_asm(
                print_generic_op_form=options.generic, enable_debug_info=options.print_locations
            )
        return text_of(module)

    def _observers(self, part: Part) -> list[Observer]:
        from fewbit.pipeline.observers import Diff, Dump

        observers: list[Observer] = [self.timing]
        if self.options.dump_ir:
            observers.append(Dump(self.options.dump_ir / part.name, self.to_text))
        if self.options.diff:
            observers.append(Diff(_coloured_printer(), self.to_text))
        return observers

    def _judge(self, part: Part, errors: list[Error]) -> list[Error]:
        if not self.options.verify_diagnostics:
            return errors
        from fewbit.cli.expected import find_unmet, read_expectations

        expectations = read_expectations(part.text, self.file, part.first_line)
        return find_unmet(expectations, errors, self.file)

    def _write(self, text: str, *, complete: bool) -> None:
        if self.options.output in (None, "-"):
            if not self.options.diff:
                sys.stdout.write(text)
            return
        if complete:
            _write_file(Path(self.options.output), text)


@dataclass(frozen=True)
class _Announcer:
    """Counts the stages for the one who waits, and says each pass to those who asked for it."""

    step: progress.Step

    def __call__(self, step: Step, module: Any) -> None:
        self.step()
        if step.number:
            progress.say(f"{step.spec}: {step.seconds:.2f} s", progress.VERBOSE)


def split_input(text: str) -> list[Part]:
    """Return the parts between separator lines, numbered from 1."""
    parts: list[list[str]] = [[]]
    starts = [1]
    for number, line in enumerate(StringIO(text), 1):
        if line.strip() == SEPARATOR:
            parts.append([])
            starts.append(number + 1)
        else:
            parts[-1].append(line)
    return [
        Part("".join(lines), start, f"{number:02}")
        for number, (lines, start) in enumerate(zip(parts, starts, strict=True), 1)
    ]


def _pipeline_text(target: str | None) -> str:
    """Return the passes of a target, a line for each stage."""
    from fewbit.targets.target import Request

    if target is None:
        raise UsageError("a pipeline is that of a target", hint="give it with -t, as in -t TARGET")
    stages = _find_target(target).pipeline(Request(target)).stages
    return ",\n".join(",".join(stage.passes) for stage in stages if stage.passes)


def _find_target(text: str) -> Target:
    from fewbit.targets.registry import find_target
    from fewbit.targets.target import Request

    target = find_target(text)
    target.check(Request(text))
    return target


def _requested_passes(lists: list[str], flags: list[str]) -> list[Pass]:
    from fewbit.pipeline.registry import available_passes, parse_passes, suggest_pass

    available = available_passes()
    for flag in flags:
        name = flag.lstrip("-").partition("=")[0]
        if not flag.startswith("--") or name not in available:
            raise UsageError(
                f"there is no option or pass '{flag}'", hint=suggest_pass(name, available)
            )
    if lists and flags:
        raise UsageError(
            "passes are given both with -p and as flags",
            hint="use one of the two, so that their order is clear",
        )
    return parse_passes(",".join(lists or map(_flag_to_spec, flags)))


def _flag_to_spec(flag: str) -> str:
    """Return `some-pass{option=1}` for `--some-pass=option=1`."""
    name, _, options = flag.removeprefix("--").partition("=")
    return f"{name}{{{options}}}" if options else name


def _read(file: str) -> str:
    try:
        if file != "-":
            return Path(file).read_text(encoding="utf-8")
        if sys.stdin.isatty():
            progress.say("reading from the terminal; end with Ctrl-D")
        return sys.stdin.buffer.read().decode("utf-8")
    except FileNotFoundError as e:
        raise UsageError(f"there is no file '{file}'") from e
    except UnicodeDecodeError as e:
        raise ParseError(
            "the input is not text in UTF-8",
            place=Place(file=file),
            hint="MLIR bytecode is not read; print the module as text first",
        ) from e


def _write_file(path: Path, text: str) -> None:
    from fewbit.base.files import replacing_file

    if path.exists() and not path.is_file():
        # a device such as /dev/null is written to, not replaced
        path.write_text(text, encoding="utf-8")
        return
    with replacing_file(path) as file:
        file.write(text.encode())


def _coloured_printer() -> Callable[[str], object]:
    from rich.console import Console

    styles = {"+": "green", "-": "red", "@": "cyan"}
    console = Console(soft_wrap=True, highlight=False, markup=False)
    return lambda line: console.print(line, style=styles.get(line[:1]))
