"""Samples to calibrate a program with: files of numpy, folders of them, or data by name.

A file holds samples along its first axis, as many as there are; they are cut into pieces of the
size that the program takes. Nothing is converted that would change what the model sees: pixels from
0 to 255 are no input of a model of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbit.base.files import PathLike
from fewbit.errors import Place, ShapeError, UsageError
from fewbit.program.signature import Signature, TensorSpec

Array = NDArray[Any]
Inputs = list[Array]

BATCH = 32
"""Samples in a piece, where the program takes any number."""
SUFFIXES = (".npy", ".npz")


def read_samples(
    signature: Signature, sources: Sequence[PathLike], count: int | None = None
) -> list[Inputs]:
    """The first `count` samples of all sources in order, as inputs of the program."""
    if count is not None and count < 1:
        raise UsageError(f"{count} samples are none", hint="give a number of at least 1")
    taken: list[Inputs] = []
    left = count
    for piece in (piece for source in sources for piece in _read(signature, source)):
        taken.append(piece)
        if left is None:
            continue
        size = _size(signature, piece)
        if size > left and all(_batch_size(spec) is None for spec in signature.inputs):
            taken[-1] = [array[:left] for array in piece]
        left -= size
        if left <= 0:
            break
    return taken


def _size(signature: Signature, piece: Inputs) -> int:
    return len(piece[0]) if signature.inputs[0].shape else 1


def _read(signature: Signature, source: PathLike) -> Iterator[Inputs]:
    path = Path(source)
    if str(source) in NAMED:
        return _fit(signature, NAMED[str(source)](signature), Place())
    if path.is_dir():
        return _read_folder(signature, path)
    if path.suffix not in SUFFIXES or not path.is_file():
        raise UsageError(
            f"there is no data '{source}'",
            hint=f"give .npy or .npz files, a folder of them, or one of {', '.join(NAMED)}",
        )
    return _fit(signature, _load(path), Place(file=str(path)))


def _read_folder(signature: Signature, folder: Path) -> Iterator[Inputs]:
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    if not files:
        raise UsageError("the folder has no .npy or .npz file", place=Place(file=str(folder)))
    for path in files:
        yield from _fit(signature, _load(path), Place(file=str(path)))


def _load(path: Path) -> Mapping[str, Array] | Array:
    try:
        loaded: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        return cast(Array, loaded) if isinstance(loaded, np.ndarray) else dict(loaded)
    except (OSError, ValueError, EOFError) as error:
        first = str(error).partition("\n")[0]
        raise UsageError(
            f"not arrays of numpy: {first}",
            place=Place(file=str(path)),
            hint="write them with numpy.save or numpy.savez, without objects",
        ) from None


def _fit(signature: Signature, data: Mapping[str, Array] | Array, place: Place) -> Iterator[Inputs]:
    """Arrays as inputs, piece by piece; all inputs have pieces of one number."""
    arrays = _by_input(signature, data, place)
    cut = [
        list(_pieces(spec, array, place))
        for spec, array in zip(signature.inputs, arrays, strict=True)
    ]
    if len({len(pieces) for pieces in cut}) > 1:
        raise ShapeError("the arrays have different numbers of samples", place=place)
    for pieces in zip(*cut, strict=True):
        yield list(pieces)


def _by_input(signature: Signature, data: Mapping[str, Array] | Array, place: Place) -> list[Array]:
    names = [spec.name for spec in signature.inputs]
    if not isinstance(data, Mapping):
        data = {names[0]: data} if len(names) == 1 else {"": data}
    if len(names) == 1 and len(data) == 1:
        return list(data.values())
    missing = [name for name in names if name not in data]
    if missing:
        raise UsageError(
            f"the data has no array '{missing[0]}'",
            place=place,
            hint=f"a .npz file has an array for each input: {', '.join(names)}",
        )
    return [data[name] for name in names]


def _pieces(spec: TensorSpec, array: Array, place: Place) -> Iterator[Array]:
    array = _as_type(spec, array, place)
    if spec.shape is None:
        yield array
        return
    if array.ndim == len(spec.shape) + 1:
        for one in array:
            yield _check(spec, one, place)
        return
    if array.ndim == len(spec.shape) - 1 and spec.shape[0] in (None, 1):
        array = array[None]
    if array.ndim != len(spec.shape) or array.ndim == 0:
        yield _check(spec, array, place)
        return
    size = _batch_size(spec)
    if size is not None and len(array) < size:
        raise ShapeError(
            f"{len(array)} samples are fewer than the {size} that the program takes at once",
            place=place,
        )
    end = len(array) if size is None else len(array) // size * size
    for start in range(0, end, size or BATCH):
        yield _check(spec, array[start : start + (size or BATCH)], place)


def _batch_size(spec: TensorSpec) -> int | None:
    """None where any number will do."""
    return spec.shape[0] if spec.shape else None


def _check(spec: TensorSpec, array: Array, place: Place) -> Array:
    shape = spec.shape or ()
    sizes = zip(shape, array.shape, strict=False)
    if array.ndim == len(shape) and all(want in (None, have) for want, have in sizes):
        return array
    raise ShapeError(f"an array of {_times(array.shape)} does not fit '{spec}'", place=place)


def _as_type(spec: TensorSpec, array: Array, place: Place) -> Array:
    wanted, given = spec.dtype.kind, array.dtype.kind
    if wanted == given == "f" or (wanted in "iu" and given in "iu") or wanted == given:
        return array.astype(spec.dtype)
    raise UsageError(
        f"{array.dtype} is not what '{spec}' takes",
        place=place,
        hint="save the data as the model gets it, scaled and normalized",
    )


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _mnist(signature: Signature) -> Array:
    from fewbit.data import mnist

    return mnist().train_x


def _fashion_mnist(signature: Signature) -> Array:
    from fewbit.data import fashion_mnist

    return fashion_mnist().train_x


def _synthetic_images(signature: Signature) -> Array:
    from fewbit.data import synthetic_images

    shape = signature.inputs[0].shape or ()
    channels, height, width = (
        (size or 28 for size in shape[1:4]) if len(shape) == 4 else (1, 28, 28)
    )
    return synthetic_images((channels, height, width)).train_x


NAMED: dict[str, Callable[[Signature], Array]] = {
    "mnist": _mnist,
    "fashion-mnist": _fashion_mnist,
    "synthetic-images": _synthetic_images,
}
"""Data that fewbit knows by name: of each the part to train on."""
