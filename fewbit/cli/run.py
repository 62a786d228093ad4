"""`fewbit run DIR --input x.npy`: what a program gives for some inputs.

DIR is an artifact, which runs as compiled code (that for another kind of processor in qemu), or a
saved program or its text, which is interpreted. Inputs are files of numpy, or arrays in IREE's
words, `4xf32=1,2,3,4`; a language model takes `--prompt` instead, and prints text. Results are
summed up on standard output, or written whole with `--output`; those of modules that IREE compiled
of plain MLIR are printed as iree-run-module does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.base.json_output import print_json
from fewbit.cli.prompt import Chat, PromptOptions, PromptText, Seed, Temperature, Tokens, TopP
from fewbit.cli.run_report import plain_output, sizes, summary
from fewbit.errors import Error, Place, UsageError

if TYPE_CHECKING:
    from fewbit.program.artifact import Tensor
    from fewbit.program.tensor_file import Array
    from fewbit.runtime import Artifact


def run_program(
    program: Annotated[
        Path,
        typer.Argument(
            help="An artifact's folder, a saved program's folder, program.mlir, or model.onnx."
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="A .npy file or 2x2xf32=1,2,3,4 for each input in order, or one .npz with all.",
        ),
    ] = None,
    random: Annotated[
        bool, typer.Option("--random", help="Random inputs; sizes not known are 1.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to .npy (one output) or .npz (all, by name)."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="How many threads; 1 if not given.")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option("--variant", help="Of a library for several processors, run this one's code."),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option("--function", help="Of a module with several functions, run this one."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", help="Of IREE: a driver, local-sync or vulkan, or an address; see doctor."
        ),
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, help="Run this often, and show times.")
    ] = None,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats",
            help="Of simulated hardware: what was counted, and estimated cycles. Without inputs, "
            "random ones.",
        ),
    ] = False,
    prompt: PromptText = None,
    chat: Chat = False,
    tokens: Tokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run an artifact, or interpret a program, on inputs from files; or go on with a text."""
    asked = PromptOptions(chat, tokens, temperature, top_p, seed)
    if prompt is not None:
        others = {"--input": inputs, "--random": random, "--output": output, "--repeat": repeat}
        others |= {"--function": function, "--device": device, "--stats": stats}
        asked.refuse_others([name for name, value in others.items() if value])
        asked.run(program, prompt, threads, variant, as_json)
        return
    asked.refuse_without_prompt()
    _check_output(output)
    how = {"threads": threads, "variant": variant, "function": function, "device": device}
    runnable = _open(program, {name: value for name, value in how.items() if value is not None})
    if stats and runnable.stats is None:
        from fewbit.targets.registry import all_targets

        simulated = [f"-t {target.name}" for target in all_targets() if target.is_simulated]
        raise UsageError(
            "--stats is for artifacts of simulated hardware",
            hint=f"compile for such a target: {', '.join(simulated)}",
        )
    arrays = _arrays(runnable, inputs or [], random or (stats and not inputs))
    _check_shapes(runnable, arrays)
    results = runnable.run(arrays)
    if output is not None:
        _write(output, runnable.outputs, results)
    if as_json:
        print_json(_plain(runnable, arrays, results, stats, repeat))
        return
    if output is None:
        print(_format_results(runnable, results))
    if stats and runnable.stats is not None:
        print(f"\n{runnable.stats()}")
    if repeat is not None:
        minimum, middle = _time(runnable, arrays, repeat)
        print(f"{repeat} runs: minimum {minimum * 1e3:.3f} ms, median {middle * 1e3:.3f} ms")


@dataclass(frozen=True)
class Port:
    """An input or output of a program."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: Any
    tensor: Tensor | None = None
    """As an artifact's manifest has it."""

    def __str__(self) -> str:
        return f"{self.name} ({sizes(self.shape)} {self.dtype})"

    def takes(self, array: Array) -> bool:
        if self.shape is None:
            return True
        if len(self.shape) != array.ndim:
            return False
        return all(
            size in (None, actual) for size, actual in zip(self.shape, array.shape, strict=True)
        )


@dataclass(frozen=True)
class Runnable:
    """An artifact or a program: what it takes and gives, and how it is run."""

    inputs: Sequence[Port]
    outputs: Sequence[Port]
    run: Callable[[Sequence[Array]], Sequence[Array]]
    shown: Callable[[Sequence[Array]], str] | None = None
    """How results are printed, where the target has a way of its own."""
    stats: Callable[[], str] | None = None
    """What was counted in the last run, of simulated hardware."""
    plain_stats: Callable[[], dict[str, Any]] | None = None
    """The same, for JSON."""


def _open(path: Path, how: dict[str, Any]) -> Runnable:
    from fewbit.program.artifact import MANIFEST

    if not path.exists():
        raise UsageError(
            f"there is no program '{path}'",
            hint="'fewbit compile MODEL -o FOLDER' writes one",
        )
    if path.is_dir() and '"fewbit-artifact"' in _text(path / MANIFEST):
        return _artifact(path, how)
    for option in how:
        raise UsageError(
            f"--{option} is for compiled programs, and this one is interpreted",
            hint=f"compile it first: fewbit compile {path} -o FOLDER",
        )
    return _program(path)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _artifact(path: Path, how: dict[str, Any]) -> Runnable:
    from fewbit.runtime import load

    artifact = load(path)
    runner = _emulated(artifact, how) or artifact.runner
    if "variant" in how:
        artifact.use_variant(how.pop("variant"))
    manifest = artifact.manifest
    if not manifest.functions:
        for option in set(how) - {"threads"}:
            raise UsageError(
                f"--{option} is for modules of IREE, and this was compiled for {manifest.target}"
            )
        inputs, outputs = _ports(manifest.inputs), _ports(manifest.outputs)
        stats, plain = getattr(runner, "stats", None), getattr(runner, "plain_stats", None)
        if stats is not None and how:
            raise UsageError("simulated hardware has no threads to choose")
        return Runnable(
            inputs, outputs, lambda arrays: runner(*arrays, **how), stats=stats, plain_stats=plain
        )
    called = runner.find_function(how.get("function"))
    return Runnable(
        _ports(called.inputs),
        _ports(called.outputs),
        lambda arrays: runner(*arrays, **how),
        runner.result_format(called),
    )


def _emulated(artifact: Artifact, how: dict[str, Any]) -> Any:
    """Return what runs code for another architecture in qemu; None for this machine's own."""
    from fewbit.base.progress import say
    from fewbit.program.artifact import open_folder
    from fewbit.runtime.emulated import EmulatedLibrary, foreign_isa

    isa = foreign_isa(artifact.manifest)
    if isa is None:
        return None
    if "variant" in how:
        raise UsageError("--variant is for code of this machine's processors, not for qemu")
    library = EmulatedLibrary(open_folder(artifact.folder), isa)
    say(f"this is code for {isa.name}: it runs in {library.emulator.program}, which is slow")
    return library


def _ports(tensors: Sequence[Tensor]) -> list[Port]:
    from fewbit.runtime.native import dtype_of

    return [Port(t.name, t.shape, dtype_of(t), t) for t in tensors]


def _program(path: Path) -> Runnable:
    from fewbit.base.progress import say
    from fewbit.frontends import import_model
    from fewbit.program.program import Program

    program = import_model(path) if path.suffix == ".onnx" else Program.load(path)
    say(f"{path} is a program, not compiled: it is interpreted, which is slow")
    inputs, outputs = (
        [Port(s.name, s.shape, s.dtype) for s in specs]
        for specs in (program.signature.inputs, program.signature.outputs)
    )
    return Runnable(inputs, outputs, lambda arrays: program.run(*arrays))


def _arrays(runnable: Runnable, given: Sequence[str], random: bool) -> list[Array]:
    """Return an array for each input."""
    if random:
        if given:
            raise UsageError("--random and --input exclude each other")
        return _random(runnable.inputs)
    wanted = ", ".join(map(str, runnable.inputs))
    arrays: list[Array] = []
    for text in given:
        arrays += _parse_input(text, runnable.inputs, len(arrays))
    if len(arrays) != len(runnable.inputs):
        raise UsageError(
            f"the program takes {len(runnable.inputs)} inputs, {len(arrays)} given",
            hint=f"add --input FILE for each of {wanted}; or --random" if wanted else None,
        )
    return arrays


def _parse_input(text: str, ports: Sequence[Port], position: int) -> list[Array]:
    """Return what an input on the command line means; `position` is that of the next input."""
    from fewbit.runtime.buffer_view import is_buffer_view, parse_buffer_view, parse_scalar

    port = ports[position].tensor if position < len(ports) else None
    if text.startswith("@"):
        return _read(Path(text[1:]), ports)
    if port is not None and port.scalar:
        return [parse_scalar(text, port)]
    if is_buffer_view(text) and not Path(text).exists():
        return [parse_buffer_view(text)]
    return _read(Path(text), ports)


def _random(ports: Sequence[Port]) -> list[Array]:
    """Return floats from a normal distribution; other types are zeros, valid as any index."""
    import numpy as np

    generator = np.random.default_rng(0)
    arrays: list[Array] = []
    for port in ports:
        shape = [size or 1 for size in port.shape or ()]
        is_float = port.dtype.kind not in "iub"
        values = generator.standard_normal(shape) if is_float else np.zeros(shape)
        arrays.append(values.astype(port.dtype))
    return arrays


def _read(path: Path, ports: Sequence[Port]) -> list[Array]:
    import numpy as np

    place = Place(file=str(path))
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [loaded]
        arrays: dict[str, Array] = dict(loaded)
    except FileNotFoundError:
        raise UsageError(f"there is no file '{path}'") from None
    except (OSError, ValueError, EOFError) as e:
        raise Error(
            f"not an array of numpy: {str(e).partition(chr(10))[0]}",
            place=place,
            hint="write it with numpy.save or numpy.savez, without objects",
        ) from e
    names = [port.name for port in ports]
    if missing := [name for name in names if name not in arrays]:
        raise Error(
            f"the file has no array '{missing[0]}'",
            place=place,
            hint=f"it needs one for each input: {', '.join(names)}",
        )
    return [arrays[name] for name in names]


def _check_shapes(runnable: Runnable, arrays: Sequence[Array]) -> None:
    from fewbit.errors import ShapeError

    for port, array in zip(runnable.inputs, arrays, strict=True):
        if array.dtype != port.dtype:
            raise ShapeError(
                f"input '{port.name}' is of {array.dtype}, and the program takes {port.dtype}",
                hint=f"save it as such: numpy.save(file, array.astype('{port.dtype}'))",
            )
        if not port.takes(array):
            found, wanted = sizes(array.shape), sizes(port.shape)
            raise ShapeError(f"input '{port.name}' is {found}, and the program takes {wanted}")


def _check_output(path: Path | None) -> None:
    if path is not None and path.suffix not in (".npy", ".npz"):
        raise UsageError(f"'{path}' is neither .npy nor .npz")


def _write(path: Path, ports: Sequence[Port], arrays: Sequence[Array]) -> None:
    import numpy as np

    from fewbit.base.files import replacing_file

    if path.suffix == ".npy" and len(arrays) != 1:
        raise UsageError(
            f"the program gives {len(arrays)} outputs, and .npy holds one",
            hint=f"write them to {path.with_suffix('.npz')}",
        )
    with replacing_file(path) as file:
        if path.suffix == ".npy":
            np.save(file, arrays[0])
        else:
            named: dict[str, Any] = {p.name: a for p, a in zip(ports, arrays, strict=True)}
            np.savez(file, **named)


def _format_results(runnable: Runnable, results: Sequence[Array]) -> str:
    if runnable.shown is not None:
        return runnable.shown(results)
    pairs = zip(runnable.outputs, results, strict=True)
    return "\n".join(summary(port.name, array) for port, array in pairs)


def _plain(
    runnable: Runnable,
    arrays: Sequence[Array],
    results: Sequence[Array],
    stats: bool,
    repeat: int | None,
) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "outputs": [
            plain_output(port.name, array)
            for port, array in zip(runnable.outputs, results, strict=True)
        ]
    }
    if stats and runnable.plain_stats is not None:
        plain["stats"] = runnable.plain_stats()
    if repeat is not None:
        minimum, middle = _time(runnable, arrays, repeat)
        plain["runs"] = {"count": repeat, "least_seconds": minimum, "median_seconds": middle}
    return plain


def _time(runnable: Runnable, arrays: Sequence[Array], count: int) -> tuple[float, float]:
    """Return the minimum and the median time of a run, in seconds."""
    from fewbit.base.progress import progress

    seconds: list[float] = []
    with progress("Running", count) as step:
        for _ in range(count):
            start = perf_counter()
            runnable.run(arrays)
            seconds.append(perf_counter() - start)
            step()
    return min(seconds), median(seconds)
