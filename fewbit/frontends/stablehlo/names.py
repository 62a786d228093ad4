"""What layers are called: after their parameters, or the scopes that the framework names."""

from __future__ import annotations

import re

WEIGHT = ".weight"
_KEYS = re.compile(r"\['([^']*)'\]|\[(\d+)\]|\.(\w+)")
_LAST = ("kernel", "weight", "weights", "w", "embedding", "embeddings", "value")
"""What frameworks call the weight of a layer."""
_PART = "_kernel"
"""The end of names where a layer has several weights: `depthwise_kernel`."""
_WRAPPED = re.compile(r"\w+\(.*\)")
_FOREIGN = re.compile(r'["\\\x00-\x1f\x7f-\U0010ffff]')


def parameter_path(text: str) -> str:
    """`p['conv1']['kernel']` and `conv1/kernel` as `conv1.kernel`."""
    if "[" not in text:
        return text.replace("/", ".").removesuffix(":0")
    keys = [key or index or field for key, index, field in _KEYS.findall(text)]
    return ".".join(keys)


def layer_of_parameter(path: str) -> str:
    """The layer that a parameter belongs to: `conv1` of `conv1.kernel`."""
    layer, dot, own = path.rpartition(".")
    if dot and own.endswith(_PART):
        return f"{layer}.{own.removesuffix(_PART)}"
    return layer if dot and own in _LAST else path


def layer_of_scope(scope: str) -> str:
    """`jit(f)/Dense_0/dot_general` as `Dense_0`; empty where no scope is named."""
    parts = [part for part in scope.split("/")[:-1] if part and not _WRAPPED.fullmatch(part)]
    return ".".join(part for part in parts if part not in ("StatefulPartitionedCall", "main"))


class Names:
    """Names that are each given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        wanted = _FOREIGN.sub("_", wanted)
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            stem, dot, end = wanted.rpartition(".")
            name = f"{stem}_{number}{dot}{end}" if dot else f"{wanted}_{number}"
        self._taken.add(name)
        return name


def name_hint(name: str) -> str | None:
    """A name for a value, as MLIR allows them."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_")
    return word if word and not word[0].isdigit() else None
