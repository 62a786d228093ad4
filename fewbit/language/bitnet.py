"""Ternary weights of BitNet, as Hugging Face's checkpoints have them.

*Offline*, a byte holds four integers less -1, of rows that are a quarter of the matrix apart, and
`weight_scale` is one number; `autobitlinear` multiplies by it, `bitlinear` divides. *Online*, the
weight is float and the model rounds it whenever it runs, by the mean of magnitudes. Both become the
integers that the model computes with, and a scale for each matrix; activations have 8 bits with a
scale for each token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from fewbit.errors import Error, Place, UnsupportedError
from fewbit.language.pieces import Array
from fewbit.numerics import Quantized, Width

METHOD = "bitnet"
SCALE = ".weight_scale"
PER_BYTE = 4
ACT_BITS = 8
LEAST = np.float32(1e-5)
"""The least mean of magnitudes that a weight is scaled by."""
TERNARY = Width.of(1.58)


@dataclass(frozen=True)
class BitNetSettings:
    is_online: bool
    divides: bool
    """Whether the integers are divided by the number in the file, and not multiplied."""
    floats: tuple[str, ...]
    """Modules whose layers stay float, beside the head."""

    @staticmethod
    def of(config: Mapping[str, Any]) -> BitNetSettings:
        """Read the `quantization_config` of a checkpoint."""
        if config.get("use_rms_norm"):
            raise UnsupportedError("BitNet with a norm inside of each layer is not read")
        return BitNetSettings(
            config.get("quantization_mode") == "online",
            config.get("linear_class", "bitlinear") == "bitlinear",
            tuple(cast("list[str]", config.get("modules_to_not_convert") or [])),
        )


class TernaryTensors:
    """The tensors of a checkpoint, of which some are ternary, by their names without prefixes."""

    def __init__(
        self,
        settings: BitNetSettings,
        shapes: Mapping[str, tuple[int, ...]],
        read: Callable[[str], Array],
    ) -> None:
        self._settings, self._given, self._read = settings, shapes, read
        self.layers = tuple(self._find_layers())

    def _find_layers(self) -> list[str]:
        if not self._settings.is_online:
            ends = [key for key in self._given if key.endswith(SCALE)]
            return [key.removesuffix(SCALE) for key in ends]
        names = [key.removesuffix(".weight") for key in self._given if key.endswith("_proj.weight")]
        floats = self._settings.floats
        return [name for name in names if not any(each in name for each in floats)]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of weights, unpacked; scales are part of these."""
        shapes = {key: shape for key, shape in self._given.items() if not key.endswith(SCALE)}
        for layer in () if self._settings.is_online else self.layers:
            rows, *others = shapes[f"{layer}.weight"]
            shapes[f"{layer}.weight"] = (rows * PER_BYTE, *others)
        return shapes

    def read(self, key: str) -> Array:
        """Return a tensor; of a ternary one, the numbers that it stands for."""
        layer = key.removesuffix(".weight")
        return self.weight(layer).dequantize() if layer in self.layers else self._read(key)

    def weight(self, layer: str) -> Quantized:
        """Return the integers of a layer, and their scale."""
        array = self._read(f"{layer}.weight")
        try:
            if self._settings.is_online:
                return round_weight(array)
            scale = self._read(f"{layer}{SCALE}").astype(np.float32).reshape(())
            scale = np.float32(1) / scale if self._settings.divides else scale
            return Quantized(unpack_rows(array), np.asarray(scale, np.float32), None, TERNARY)
        except Error as error:
            raise error.at(layer=layer) from None


def unpack_rows(packed: Array) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Return the integers of bytes: the lowest two bits are the first quarter of the rows."""
    if packed.dtype != np.uint8:
        raise Error(f"packed integers are bytes, not {packed.dtype}", place=Place())
    parts = [(packed >> (2 * part)) & 3 for part in range(PER_BYTE)]
    values = np.concatenate(parts).astype(np.int8) - np.int8(1)
    if values.size and values.max() > 1:
        raise Error("packed integers are not ternary", hint="is the file whole?")
    return values


def round_weight(weight: Array) -> Quantized:
    """Round a float weight as the model does when it runs."""
    array = np.asarray(weight, np.float32)
    factor = np.float32(1) / np.maximum(np.abs(array).mean(dtype=np.float32), LEAST)
    values = np.clip(np.rint(array * factor), -1, 1).astype(np.int8)
    return Quantized(values, np.asarray(np.float32(1) / factor, np.float32), None, TERNARY)
