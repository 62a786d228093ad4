"""`fewbit run DIR --input x.npy`: what a program gives for some inputs.

DIR is an artifact, which runs as compiled code, or a saved program or its text, which is
interpreted. Results are summed up on standard output, or written whole with `--output`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.errors import Error, Place, UsageError

if TYPE_CHECKING:
    from fewbit.tensor_file import Array

SHOWN = 6
"""How many elements of an output are printed."""


def run_program(
    program: Annotated[
        Path,
        typer.Argument(
            help="An artifact's folder, a saved program's folder, program.mlir, or model.onnx."
        ),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            "-i",
            help="A .npy file for each input in order, or one .npz with all by name.",
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
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, help="Run this often, and show times.")
    ] = None,
) -> None:
    """Run an artifact, or interpret a program, on inputs from files."""
    _check_output(output)
    runnable = _open(program, threads, variant)
    arrays = _arrays(runnable, inputs or [], random)
    _check_shapes(runnable, arrays)
    results = runnable.run(arrays)
    if output is not None:
        _write(output, runnable.outputs, results)
    else:
        for port, array in zip(runnable.outputs, results, strict=True):
            print(_summary(port, array))
    if repeat is not None:
        _time(runnable, arrays, repeat)


@dataclass(frozen=True)
class Port:
    name: str
    shape: tuple[int | None, ...] | None
    dtype: Any

    def __str__(self) -> str:
        return f"{self.name} ({_sizes(self.shape)} {self.dtype})"

    def takes(self, array: Array) -> bool:
        if self.shape is None:
            return True
        if len(self.shape) != array.ndim:
            return False
        return all(
            size in (None, found) for size, found in zip(self.shape, array.shape, strict=True)
        )


@dataclass(frozen=True)
class Runnable:
    """An artifact or a program: what it takes and gives, and how it is run."""

    inputs: Sequence[Port]
    outputs: Sequence[Port]
    run: Callable[[Sequence[Array]], Sequence[Array]]


def _open(path: Path, threads: int | None, variant: str | None) -> Runnable:
    from fewbit.artifact import MANIFEST

    if not path.exists():
        raise UsageError(
            f"there is no program '{path}'",
            hint="'fewbit compile MODEL -o FOLDER' writes one",
        )
    if path.is_dir() and '"fewbit-artifact"' in _text(path / MANIFEST):
        return _artifact(path, threads, variant)
    option = "--threads" if threads is not None else "--variant" if variant else None
    if option is not None:
        raise UsageError(
            f"{option} is for compiled programs, and this one is interpreted",
            hint=f"compile it first: fewbit compile {path} -o FOLDER",
        )
    return _program(path)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _artifact(path: Path, threads: int | None, variant: str | None) -> Runnable:
    from fewbit.runtime import load
    from fewbit.runtime.native import dtype_of

    artifact = load(path)
    runner = artifact.runner
    if variant is not None:
        artifact.use_variant(variant)
    inputs, outputs = (
        [Port(t.name, t.shape, dtype_of(t)) for t in tensors]
        for tensors in (artifact.manifest.inputs, artifact.manifest.outputs)
    )
    return Runnable(inputs, outputs, lambda arrays: runner(*arrays, threads=threads or 1))


def _program(path: Path) -> Runnable:
    from fewbit.frontends import import_model
    from fewbit.program import Program
    from fewbit.progress import say

    program = import_model(path) if path.suffix == ".onnx" else Program.load(path)
    say(f"{path} is a program, not compiled: it is interpreted, which is slow")
    inputs, outputs = (
        [Port(s.name, s.shape, s.dtype) for s in specs]
        for specs in (program.signature.inputs, program.signature.outputs)
    )
    return Runnable(inputs, outputs, lambda arrays: program.run(*arrays))


def _arrays(runnable: Runnable, files: Sequence[Path], random: bool) -> list[Array]:
    """An array for each input."""
    if random:
        if files:
            raise UsageError("--random and --input exclude each other")
        return _random(runnable.inputs)
    wanted = ", ".join(map(str, runnable.inputs))
    found = [array for file in files for array in _read(file, runnable.inputs)]
    if len(found) != len(runnable.inputs):
        raise UsageError(
            f"the program takes {len(runnable.inputs)} inputs, {len(found)} given",
            hint=f"add --input FILE for each of {wanted}; or --random" if wanted else None,
        )
    return found


def _random(ports: Sequence[Port]) -> list[Array]:
    """Floats from a normal distribution; zeros of other types, valid as indices of anything."""
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
            found, wanted = _sizes(array.shape), _sizes(port.shape)
            raise ShapeError(f"input '{port.name}' is {found}, and the program takes {wanted}")


def _check_output(path: Path | None) -> None:
    if path is not None and path.suffix not in (".npy", ".npz"):
        raise UsageError(f"'{path}' is neither .npy nor .npz")


def _write(path: Path, ports: Sequence[Port], arrays: Sequence[Array]) -> None:
    import numpy as np

    from fewbit.files import replacing_file

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


def _summary(port: Port, array: Array) -> str:
    """`output0: 1x10 float32, -0.12 to 0.31, mean 0.04: [0.1, -0.12, ...]`."""
    text = f"{port.name}: {_sizes(array.shape)} {array.dtype}"
    if array.size == 0:
        return text
    if array.dtype.kind != "b":
        values = array.astype("float64")
        text += f", {values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
    first = [f"{value:.6g}" for value in array.reshape(-1)[:SHOWN].tolist()]
    more = ["..."] if array.size > SHOWN else []
    return f"{text}: [{', '.join(first + more)}]"


def _time(runnable: Runnable, arrays: Sequence[Array], count: int) -> None:
    from fewbit.progress import progress

    seconds: list[float] = []
    with progress("Running", count) as step:
        for _ in range(count):
            start = perf_counter()
            runnable.run(arrays)
            seconds.append(perf_counter() - start)
            step()
    least, middle = min(seconds) * 1e3, median(seconds) * 1e3
    print(f"{count} runs: least {least:.3f} ms, median {middle:.3f} ms")


def _sizes(shape: Sequence[int | None] | None) -> str:
    if shape is None:
        return "*"
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"
