"""The examples of a search, in three parts that never mix.

Recipes are chosen by the *selection* part. The *test* part is run at the very end, on what was
chosen. What is left, the *training* part, is for training: of the model itself, or after
quantization. A `Split` has a test part of its own, and the selection part is held out of the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbit.data.split import Split
from fewbit.errors import UsageError
from fewbit.program.signature import Signature, TensorSpec

Array = NDArray[Any]

SELECTION = 800
"""Examples to choose by, at most."""
PART = 5
"""One example in so many is for selection, and one for the test, where data has no parts."""
MADE_UP = 32


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs of a model, the examples along their first axis, and perhaps their labels."""

    inputs: tuple[Array, ...]
    labels: Array | None = None

    def __len__(self) -> int:
        return len(self.inputs[0])

    def __getitem__(self, index: slice | NDArray[np.intp]) -> Examples:
        labels = None if self.labels is None else self.labels[index]
        return Examples(tuple(array[index] for array in self.inputs), labels)

    def hash(self) -> str:
        """Return a hash of everything in it."""
        digest = hashlib.sha256()
        for array in (*self.inputs, *(() if self.labels is None else (self.labels,))):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class SearchData:
    """The three parts."""

    name: str
    selection: Examples
    test: Examples | None = None
    train: Examples | None = None
    is_real: bool = True
    usual: str | None = None
    """The objective that is meant if none is named, where data is of a kind that has one."""

    @property
    def has_labels(self) -> bool:
        return self.selection.labels is not None

    @property
    def for_scales(self) -> Examples:
        """Those that static scales come from: for training, if there are any."""
        return self.selection if self.train is None else self.train

    def fit(self, signature: Signature) -> SearchData:
        """Return the data as inputs of a model; images of data by name are fitted to its size."""
        specs = signature.inputs
        parts = [self.selection, self.test, self.train]
        fitted = [None if part is None else _fit(part, specs, self.name) for part in parts]
        assert fitted[0] is not None
        return replace(self, selection=fitted[0], test=fitted[1], train=fitted[2])


def read_data(given: Any, samples: int | None = None) -> SearchData | None:
    """Return data from a name, a `Split`, a pair of inputs and labels, or inputs alone."""
    if given is None or (isinstance(given, str) and given == "none"):
        return None
    if isinstance(given, SearchData):
        return given
    if isinstance(given, str):
        return _named(given, samples)
    return _parts(given, "data", samples)


def made_up(inputs: Sequence[Sequence[Array]]) -> SearchData:
    """Return random inputs as data, where there is none."""
    columns = zip(*inputs, strict=True)
    return SearchData("none", Examples(tuple(map(np.concatenate, columns))), is_real=False)


def _named(name: str, samples: int | None) -> SearchData:
    if ".py:" in name:
        from fewbit.search.user_file import load_function

        return _parts(load_function(name)(), name, samples)
    loader = _loaders().get(name)
    if loader is None:
        known = ", ".join(_loaders())
        raise UsageError(
            f"there is no data '{name}'",
            hint=f"give {known}, file.py:loader, text:FILE (language models), or none",
        )
    return _parts(loader(), name, samples)


def _loaders() -> dict[str, Any]:
    """Return what is at hand by name: every image set that `fewbit.data` has."""
    import fewbit.data as data

    names = {"mnist": "mnist", "fashion-mnist": "fashion_mnist"}
    return {name: getattr(data, key) for name, key in names.items() if hasattr(data, key)}


def _parts(given: Any, name: str, samples: int | None) -> SearchData:
    if isinstance(given, Split):
        train = Examples((given.train_x,), given.train_y)
        test = Examples((given.test_x,), given.test_y)
        held = min(samples or SELECTION, len(train) // PART)
        if held < 1:
            raise UsageError(f"{len(train)} training examples are too few to choose by")
        return SearchData(name, train[slice(-held, None)], test, train[slice(0, -held)])
    examples = _examples(given, name)
    count = len(examples)
    if count < PART:
        raise UsageError(f"{count} examples are too few: {PART} or more are needed")
    # Fixed, so that no run can choose by what another tests on.
    order = np.random.default_rng(0).permutation(count)
    held = max(count // PART, 1)
    selection = min(samples or SELECTION, held)
    return SearchData(
        name,
        examples[order[held : held + selection]],
        examples[order[:held]],
        examples[order[2 * held :]] if count > 2 * held else None,
    )


def _examples(given: Any, name: str) -> Examples:
    """Return what `(x, y)`, `((x1, x2), y)` or `x` means."""
    values = cast("Sequence[Any]", given) if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(values) <= 2:
        raise UsageError(
            f"{name} gave {len(values)} values", hint="return inputs, or (inputs, labels)"
        )
    first = values[0]
    inputs = cast("Sequence[Any]", first) if isinstance(first, tuple | list) else (first,)
    arrays = tuple(_array(x) for x in inputs)
    labels = _array(values[1]) if len(values) == 2 and values[1] is not None else None
    lengths = {x.shape[:1] for x in (*arrays, *(() if labels is None else (labels,)))}
    if len(lengths) != 1 or lengths == {()}:
        raise UsageError(f"the inputs and labels of {name} differ in how many they are")
    return Examples(arrays, labels)


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _fit(part: Examples, specs: Sequence[TensorSpec], name: str) -> Examples:
    if len(specs) != len(part.inputs):
        raise UsageError(
            f"the model takes {len(specs)} inputs, and {name} has {len(part.inputs)}",
            hint="a loader returns ((input, input), labels)",
        )
    arrays = tuple(_fit_one(x, spec, name) for x, spec in zip(part.inputs, specs, strict=True))
    return Examples(arrays, part.labels)


def _fit_one(x: Array, spec: TensorSpec, name: str) -> Array:
    shape = spec.shape or ()
    if x.ndim == 4 and len(shape) == 4 and name in _loaders():
        x = fit_images(x, (shape[1], shape[2], shape[3]))
    wanted = tuple(shape[1:])
    fits = x.ndim == len(shape) and all(
        size is None or size == own for size, own in zip(wanted, x.shape[1:], strict=True)
    )
    if not fits:
        raise UsageError(
            f"the model takes {_spell(shape)}, and {name} has {_spell((None, *x.shape[1:]))}",
            hint="give a loader of your own: --data file.py:loader",
        )
    if spec.dtype.kind == "f" and x.dtype.kind in "iub":
        raise UsageError(
            f"the model takes floats, and {name} has {x.dtype}",
            hint="scale and normalize them as the model expects",
        )
    return np.ascontiguousarray(x, spec.dtype)


def _spell(shape: Sequence[int | None]) -> str:
    return "x".join("N" if size is None else str(size) for size in shape)


def fit_images(x: Array, shape: tuple[int | None, int | None, int | None]) -> Array:
    """Return small grey images as a larger or coloured model takes them: padded and repeated."""
    channels, *sides = shape
    if channels is not None and x.shape[1] == 1 and channels > 1:
        x = np.repeat(x, channels, axis=1)
    before_after = [(0, 0), (0, 0)]
    for own, wanted in zip(x.shape[2:], sides, strict=True):
        more = max((wanted or own) - own, 0)
        before_after.append((more // 2, more - more // 2))
    return np.pad(x, before_after)
