"""What can be run: an artifact, or a program that is interpreted; and inputs for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.cli.run_report import sizes
from fewbit.errors import Error, Place, UsageError

if TYPE_CHECKING:
    from fewbit.program.artifact import Tensor
    from fewbit.program.tensor_file import Array
    from fewbit.runtime import Artifact


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


def open_runnable(path: Path, how: dict[str, Any]) -> Runnable:
    from fewbit.program.artifact import MANIFEST

    if not path.exists():
        raise UsageError(
            f"there is no program '{path}'",
            hint="'fewbit compile MODEL -o FOLDER' writes one",
        )
    if path.is_dir() and '"fewbit-artifact"' in _text(path / MANIFEST):
        from fewbit.runtime import load

        return make_runnable(load(path), how)
    for option in how:
        raise UsageError(
            f"--{option} is for compiled programs, and this one is interpreted",
            hint=f"compile it first: fewbit compile {path} -o FOLDER",
        )
    return _program(path)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def make_runnable(artifact: Artifact, how: dict[str, Any]) -> Runnable:
    """Return what runs an artifact with these options."""
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
        if how and "threads" not in signature(runner).parameters:
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
    """Return what runs code of other machines in qemu or wine; None for this machine's own."""
    from fewbit.base.progress import say
    from fewbit.program.artifact import open_folder
    from fewbit.runtime.emulated import EmulatedLibrary, foreign_isa

    isa = foreign_isa(artifact.manifest)
    if isa is None:
        return None
    if "variant" in how:
        raise UsageError("--variant is for code of this machine's processors, not for emulators")
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


def read_inputs(runnable: Runnable, given: Sequence[str], random: bool) -> list[Array]:
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


def check_shapes(runnable: Runnable, arrays: Sequence[Array]) -> None:
    from fewbit.errors import ShapeError

    for port, array in zip(runnable.inputs, arrays, strict=True):
        if array.dtype != port.dtype:
            raise ShapeError(
                f"input '{port.name}' is of {array.dtype}, and the program takes {port.dtype}",
                hint=f"save it as such: numpy.save(file, array.astype('{port.dtype}'))",
            )
        if not port.takes(array):
            given, taken = sizes(array.shape), sizes(port.shape)
            raise ShapeError(f"input '{port.name}' is {given}, and the program takes {taken}")
