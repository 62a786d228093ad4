"""BitNet checkpoints: their own integers, packed, divided or multiplied by a scale, or rounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fewbit
from fewbit.errors import Error, UnsupportedError, UsageError
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.language.bitnet import BitNetSettings, TernaryTensors, round_weight, unpack_rows
from tests.language.checkpoints import (
    VOCABULARY,
    decoder_shapes,
    draw,
    empty_caches,
    settings_of,
    write_folder,
)

CONTEXT = 32
OFFLINE = {
    "quant_method": "bitnet",
    "linear_class": "autobitlinear",
    "quantization_mode": "offline",
}
ONLINE = OFFLINE | {"quantization_mode": "online"}
DIVIDED = {"quant_method": "bitnet"}


def pack(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pack rows as the description of the format says: those a quarter apart share bytes."""
    quarters = np.split((values + 1).astype(np.uint8), 4)
    return quarters[0] | quarters[1] << 2 | quarters[2] << 4 | quarters[3] << 6


def write_bitnet(folder: Path, method: dict[str, Any], family: str = "bitnet") -> dict[str, Any]:
    """Write a checkpoint, and return the weights of its layers: integers, and what they are times."""
    settings = settings_of(family) | {"quantization_config": method, "rope_scaling": None}
    generator = np.random.default_rng(3)
    tensors, layers = dict[str, Any](), dict[str, Any]()
    for name, shape in decoder_shapes(settings).items():
        tensors[name] = draw(shape, generator)
        if not name.endswith("_proj.weight"):
            continue
        layer = name.removesuffix(".weight")
        if method is ONLINE:
            mean = np.abs(tensors[name]).mean(dtype=np.float64)
            layers[layer] = np.clip(np.rint(tensors[name] / mean), -1, 1), mean
            continue
        integers = generator.integers(-1, 2, shape)
        scale = generator.uniform(0.1, 0.2, 1).astype(ml_dtypes.bfloat16)
        tensors[name], tensors[f"{layer}.weight_scale"] = pack(integers), scale
        number = float(scale[0])
        layers[layer] = integers, 1 / number if method is DIVIDED else number
    write_folder(folder, settings, tensors)
    return layers


class BitLinear(nn.Module):
    """A layer as BitNet describes it: integers times integers, and then both scales."""

    def __init__(self, integers: np.ndarray[Any, Any], scale: float) -> None:
        super().__init__()
        self.integers, self.scale = torch.tensor(integers, dtype=torch.float32), scale

    def forward(self, x: Tensor) -> Tensor:
        factor = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        return (x * factor).round().clamp(-128, 127) @ self.integers.T / factor * self.scale


@pytest.mark.parametrize(
    ("method", "family"), [(OFFLINE, "bitnet"), (ONLINE, "bitnet"), (DIVIDED, "llama")]
)
def test_a_checkpoint_computes_with_its_integers(
    method: dict[str, Any], family: str, tmp_path: Path
) -> None:
    layers = write_bitnet(tmp_path, method, family)
    program = fewbit.import_model(tmp_path, context=CONTEXT)
    assert program.recipe == "w1.58a8-tensor,model.embed_tokens=fp,lm_head=fp"
    model = build_decoder(open_checkpoint(tmp_path), CONTEXT)
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (1, 18))
    with torch.no_grad():
        floats = model(torch.tensor(tokens), torch.tensor([0])).numpy()
        for name, (integers, scale) in layers.items():
            model.set_submodule(name, BitLinear(integers, scale))
        expected = model(torch.tensor(tokens), torch.tensor([0])).numpy()
    caches = empty_caches(program)
    (ours, *_) = program.run(tokens, np.array([0]), *caches)
    # An activation on the edge may round to the other side, which is a step of 1/127 of one token.
    np.testing.assert_allclose(ours, expected, atol=2e-3)
    assert np.abs(floats - expected).max() > 1e-2


def test_the_rest_can_be_quantized_and_ternary_layers_are_not_again(tmp_path: Path) -> None:
    write_bitnet(tmp_path, OFFLINE)
    program = fewbit.import_model(tmp_path, context=CONTEXT)
    with pytest.raises(UsageError, match="quantized already"):
        fewbit.quantize(program, "w8a8")
    both = fewbit.quantize(program, "fp,lm_head=w8a8,model.embed_tokens=w8a8")
    assert both.store.nbytes() < program.store.nbytes()


def test_bytes_are_unpacked_as_the_format_says() -> None:
    packed = np.array([[0b10100001, 0b00011000], [0b10010000, 0b00001010]], np.uint8)
    expected = [[0, -1], [-1, 1], [-1, 1], [-1, 1], [1, 0], [0, -1], [1, -1], [1, -1]]
    assert unpack_rows(packed).tolist() == expected
    values = np.random.default_rng(0).integers(-1, 2, (12, 7))
    np.testing.assert_array_equal(unpack_rows(pack(values)), values)
    with pytest.raises(Error, match="not ternary"):
        unpack_rows(np.array([[0b11]], np.uint8))
    with pytest.raises(Error, match="are bytes, not float32"):
        unpack_rows(np.zeros((1, 1), np.float32))


def test_rounding_of_online_weights() -> None:
    rounded = round_weight(np.array([[1.0, -1.0, 0.2, -3.0]], np.float32))
    assert rounded.values.tolist() == [[1, -1, 0, -1]]
    assert rounded.scale == pytest.approx(1.3)
    zeros = round_weight(np.zeros((2, 2), np.float32))
    assert not zeros.values.any()
    assert zeros.scale == pytest.approx(1e-5)


def test_modules_that_are_not_converted_stay_float() -> None:
    settings = BitNetSettings.of(ONLINE | {"modules_to_not_convert": ["self_attn"]})
    names = ("model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj", "lm_head")
    tensors = TernaryTensors(
        settings, {f"{name}.weight": (4, 4) for name in names}, lambda _: np.zeros((4, 4))
    )
    assert tensors.layers == ("model.layers.0.mlp.up_proj",)


def test_norms_inside_of_layers_are_refused(tmp_path: Path) -> None:
    write_bitnet(tmp_path, OFFLINE)
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["quantization_config"]["use_rms_norm"] = True
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(UnsupportedError, match="a norm inside of each layer"):
        open_checkpoint(tmp_path)
