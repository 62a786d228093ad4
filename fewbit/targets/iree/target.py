"""The targets `iree-*`: a module for IREE's runtime, its parameters beside it.

A file of MLIR that is no program of ours, in any dialect that IREE reads, is compiled as it is.
What was stopped after one of IREE's phases is an artifact too, from which compilation goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fewbit import __version__
from fewbit.base.progress import say
from fewbit.errors import PassError, UsageError
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Folder, Function, Manifest, Tensor, open_folder, write_folder
from fewbit.program.program import Program
from fewbit.program.signature import Signature, TensorSpec
from fewbit.runtime.iree_reflection import functions_of
from fewbit.targets.agreement import QUANTIZED_TOLERANCE, TOLERANCE, largest_difference
from fewbit.targets.iree.compiler import PHASES, IreeOutput, compile_text, iree_compile
from fewbit.targets.iree.dispatch_kernels import OBJECT
from fewbit.targets.iree.dispatches import DISPATCHES, without_locations, write_dispatches
from fewbit.targets.iree.parameters import Parameters
from fewbit.targets.iree.pipeline import ENTRY, SOURCE, iree_pipeline
from fewbit.targets.iree.raw import is_raw_mlir, phase_of
from fewbit.targets.iree.source import Source
from fewbit.targets.iree.tuned import KnownTiles
from fewbit.targets.options import FLAG, TEXT, TEXTS, Options, TunedOptions, option
from fewbit.targets.target import Request, Target
from fewbit.targets.view import Seen, View
from fewbit.toolchain.iree_devices import compile_flags, find_device, kernels_for
from fewbit.toolchain.isa import Isa, names

if TYPE_CHECKING:
    from fewbit.targets.probe import Found

TUNERS = {
    "iree-cpu": "fewbit.tune.iree.tuner:IreeTuner",
    "iree-cuda": "fewbit.tune.iree.tuner:IreeGpuTuner",
}
DETAILS = {"iree-cpu": "PROCESSOR", "iree-cuda": "sm_XX", "iree-rocm": "gfxNNN"}
"""What may follow the name of each device."""


@dataclass(frozen=True)
class IreeOptions(TunedOptions):
    """The options of `iree-*`."""

    compile_to: str | None = option(
        TEXT,
        "Stop after flow, stream or hal; compiling the folder goes on from there.",
        metavar="PHASE",
        see="[phases](iree.md#phases)",
    )
    compile_from: str | None = option(
        TEXT, "The file is at this phase already.", metavar="PHASE", see="[phases](iree.md#phases)"
    )
    iree_flags: tuple[str, ...] = option(
        TEXTS,
        "One more flag for iree-compile. Repeatable.",
        flag="--iree-flag",
        metavar="FLAG",
    )
    kernels: bool = option(
        FLAG,
        "Layers by fewbit's own kernels; on iree-cpu only.",
        also=("bench",),
        see="[kernels of ours](iree.md#kernels-of-ours)",
    )


def _dispatches(folder: Folder, _: Options) -> Seen:
    from fewbit.targets.iree.dispatch_table import list_dispatches

    return list_dispatches(folder)


class Iree(Target):
    """IREE on CPUs and GPUs."""

    about = "a module of IREE's"
    see = "[IREE](iree.md)"
    options = IreeOptions
    views = (View("dispatches", "The dispatches of an artifact: ops, bytes, MACs.", _dispatches),)

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.tuner, self.detail = TUNERS.get(name), DETAILS.get(name, "")
        self.details = names() if self.detail == "PROCESSOR" else ()

    def check(self, request: Request) -> None:
        compile_flags(request.target)
        _isa(request)
        given = IreeOptions.of(request)
        for phase in (given.compile_to, given.compile_from):
            if phase is not None and phase not in PHASES:
                raise UsageError(
                    f"IREE has no phase '{phase}' to stop at",
                    hint=f"phases are {', '.join(PHASES)}",
                )

    def pipeline(self, request: Request) -> Pipeline:
        return iree_pipeline(kernels=IreeOptions.of(request).kernels)

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        isa = _isa(request)
        return () if isa is None else (isa,)

    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        begun = self.begin(program, request).run(SOURCE)
        return self.write(begun, program, request, output)

    def lower(self, program: Program, stage: str, request: Request) -> str:
        if stage not in PHASES:
            return super().lower(program, stage, request)
        begun = self.begin(program, request).run(SOURCE)
        request = replace(request, options=replace(IreeOptions.of(request), compile_to=None))
        try:
            # How IREE is called, and with which tiles, is known only when all of it is done.
            built = self._compile(begun, program, request)
        except PassError:
            # What comes before the phase that fails is what one wants to see.
            return compile_text(begun.module, _flags(request), request.name, stage).data.decode()
        _show(built, request, stage)
        return without_locations(built.phases[stage])

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        """Have IREE compile the source that a program has become."""
        built = self._compile(made, program, request)
        _show(built, request)
        parameters, files = made.ctx.get(Parameters), made.module.files
        return self.write_made(program, parameters, built, request, output, files)

    def probe(self, name: str) -> Found:
        from fewbit.targets.iree.probe import DRIVERS, probe_iree

        return probe_iree(DRIVERS[name])

    def find_obstacle(self, name: str) -> str | None:
        return None if _runs_here(name) else "IREE finds no such device"

    def load(self, folder: Folder) -> Any:
        from fewbit.runtime.iree import load_iree

        return load_iree(folder)

    def reads(self, path: Path) -> bool:
        return phase_of(path) is not None or is_raw_mlir(path)

    def compile_file(self, path: Path, request: Request, output: Path) -> Folder:
        if path.is_dir():
            return self._resume(open_folder(path), request, output)
        given = IreeOptions.of(request)
        phase = given.compile_to
        flags = _flags(request)
        compiled = iree_compile(path, flags, compile_to=phase, compile_from=given.compile_from)
        _show(compiled, request)
        functions = () if phase else functions_of(compiled.data, path.read_text(errors="replace"))
        return _write(output, request, compiled, functions, None, None, raw=True)

    def write_made(
        self,
        program: Program,
        parameters: Parameters,
        made: IreeOutput,
        request: Request,
        output: Path,
        files: Mapping[str, bytes] | None = None,
    ) -> Folder:
        """Return the artifact of a program of which IREE made something."""
        named = _function(program.signature)
        phase = IreeOptions.of(request).compile_to
        function = named if phase else _with_names(functions_of(made.data)[0], named)
        return _write(output, request, made, [function], parameters, program.recipe, files=files)

    def _compile(self, made: Compilation, program: Program, request: Request) -> IreeOutput:
        """Compile by IREE, with the tiles that autotuning found where there are any."""
        source, parameters = made.module, made.ctx.get(Parameters)
        phase = IreeOptions.of(request).compile_to
        tiles: KnownTiles | None = None if phase else self.known(program, request)
        if tiles is None:
            return compile_text(source, _flags(request), request.name, phase)

        def write(built: IreeOutput, output: Path) -> Folder:
            return self.write_made(program, parameters, built, request, output, source.files)

        return self._compile_tuned(program, source, request, tiles, write)

    def _compile_tuned(
        self,
        program: Program,
        source: Source,
        request: Request,
        tiles: KnownTiles,
        write: Callable[[IreeOutput, Path], Folder],
    ) -> IreeOutput:
        """Compile with autotuned tiles, if results are those of IREE's own tiles."""
        from fewbit.cost.layers import made_up_inputs

        paths = bool(IreeOptions.of(request).iree_flags)
        modules = tiles.build(source, _flags(request), request.name, has_paths=paths)
        if modules.tuned is None:
            return modules.default
        if not _runs_here(request.target):
            # What each dispatch computes was compared where it was measured.
            say(f"{modules.dispatches} dispatches have tuned tiles")
            return modules.tuned
        inputs = made_up_inputs(program)
        with TemporaryDirectory(prefix="fewbit-untuned-") as temporary:
            plain = write(modules.default, Path(temporary) / request.name)
            expected = self.load(plain)(*inputs)
            tuned = write(modules.tuned, Path(temporary) / f"{request.name}-tuned")
            gap = largest_difference(expected, self.load(tuned)(*inputs))
        if gap <= (QUANTIZED_TOLERANCE if program.recipe else TOLERANCE):
            say(f"{modules.dispatches} dispatches have tuned tiles")
            return modules.tuned
        say(f"the program is compiled without tuned tiles: its results would differ by {gap:.2g}")
        return modules.default

    def _resume(self, begun: Folder, request: Request, output: Path) -> Folder:
        """Go on from where an artifact was stopped, to the end or to a later phase."""
        manifest = begun.manifest
        reached, wanted = manifest.options["phase"], IreeOptions.of(request).compile_to
        if manifest.target != request.target:
            raise UsageError(
                f"the program was begun for {manifest.target}, and cannot go on for another target",
                hint=f"give -t {manifest.target}",
            )
        if wanted is not None and PHASES.index(wanted) <= PHASES.index(reached):
            raise UsageError(f"the program is past IREE's phase '{wanted}': it is at '{reached}'")
        path = begun.file(f"{manifest.name}.mlir")
        compiled = iree_compile(path, _flags(request), compile_to=wanted, compile_from=reached)
        functions: Sequence[Function] = manifest.functions
        if not wanted:
            present = functions_of(compiled.data)
            functions = [_with_names(present[0], functions[0])] if functions else present
        archive = f"{manifest.name}.irpa"
        parameters = begun.file(archive) if archive in manifest.files else None
        objects = {file: begun.file(file) for file in manifest.files if file == OBJECT}
        kept = manifest.model_copy(update={"name": request.name})
        raw = "source" in manifest.options
        return _write(
            *(output, request, compiled, functions, parameters, manifest.recipe),
            files=objects,
            like=kept,
            raw=raw,
        )


def _show(compiled: IreeOutput, request: Request, last: str = PHASES[-1]) -> None:
    """Tell a watcher the text after each phase, up to the last."""
    if request.watch is None:
        return
    phase = IreeOptions.of(request).compile_to
    texts = {phase: compiled.data.decode()} if phase else compiled.phases
    for name, text in texts.items():
        if PHASES.index(name) <= PHASES.index(last):
            request.watch(name, without_locations(text))


def _runs_here(target: str) -> bool:
    from fewbit.runtime.iree import list_devices

    drivers = find_device(target).drivers
    return target.startswith("iree-cpu") or any(map(list_devices, drivers))


def _flags(request: Request) -> tuple[str, ...]:
    return (*compile_flags(request.target), *IreeOptions.of(request).iree_flags)


def _isa(request: Request) -> Isa | None:
    """Return the processor that kernels of ours are made for, if they are wanted."""
    return kernels_for(request.target) if IreeOptions.of(request).kernels else None


def _write(
    output: Path,
    request: Request,
    made: IreeOutput,
    functions: Sequence[Function],
    parameters: Parameters | Path | None,
    recipe: str | None,
    *,
    files: Mapping[str, bytes | Path] | None = None,
    like: Manifest | None = None,
    raw: bool = False,
) -> Folder:
    phase = IreeOptions.of(request).compile_to
    first = functions[0] if functions else None
    options = {"source": "mlir"} if raw else {}
    written: dict[str, bytes | Path] = {f"{request.name}.{'mlir' if phase else 'vmfb'}": made.data}
    if phase:
        options["phase"] = phase
        written |= files or {}
    elif "flow" in made.phases:
        written[DISPATCHES] = write_dispatches(made.phases["flow"])
    with TemporaryDirectory(prefix="fewbit-irpa-") as temporary:
        weights, entries = (like.weight_bytes, like.weights) if like else (0, ())
        if isinstance(parameters, Parameters):
            weights, entries = parameters.nbytes, parameters.entries()
            parameters.write(Path(temporary) / "archive")
            written[f"{request.name}.irpa"] = Path(temporary) / "archive"
        elif parameters is not None:
            written[f"{request.name}.irpa"] = parameters
        manifest = Manifest(
            name=request.name,
            target=request.target,
            compiler=__version__,
            inputs=first.inputs if first else (),
            outputs=first.outputs if first else (),
            recipe=recipe,
            weight_bytes=weights,
            weights=entries,
            float_weights=like.float_weights if like else request.float_weights,
            functions=tuple(functions),
            options=options,
            files={},
        )
        return write_folder(output, manifest, {**written, **request.files})


def _function(signature: Signature) -> Function:
    """Return the entry, as the program has it."""
    inputs, outputs = (
        tuple(map(_tensor, specs)) for specs in (signature.inputs, signature.outputs)
    )
    return Function(name=ENTRY, inputs=inputs, outputs=outputs)


def _tensor(spec: TensorSpec) -> Tensor:
    element = "i8" if spec.element.startswith("!mico") else spec.element
    return Tensor(name=spec.name, shape=spec.shape or (), element=element)


def _with_names(found: Function, named: Function) -> Function:
    """Return what IREE made of a function, with the names that its program has."""

    def rename(theirs: Sequence[Tensor], ours: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if len(theirs) != len(ours):
            return tuple(theirs)
        pairs = zip(theirs, ours, strict=True)
        return tuple(t.model_copy(update={"name": o.name}) for t, o in pairs)

    return Function(
        name=found.name,
        inputs=rename(found.inputs, named.inputs),
        outputs=rename(found.outputs, named.outputs),
    )
