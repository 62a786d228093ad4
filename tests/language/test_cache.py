"""Keys and values of 8 and 4 bits: their numbers, their bytes, and what attention makes of them."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed, norm, unflatten
from fewbit.errors import FewbitWarning, UsageError
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.language import decoder
from fewbit.language.cache import (
    FloatCache,
    Kept,
    Shape,
    make_cache,
    quantize,
    quantize_with_offset,
)
from fewbit.language.config import Decoding
from fewbit.language.decoder import LanguageModel
from fewbit.language.torch_ops import high_half, join_halves, low_half
from fewbit.quant.cache_scheme import CacheScheme
from tests.language.checkpoints import VOCABULARY, plain_folder

CONTEXT = 96
Array = np.ndarray[Any, Any]


def as_written(x: Array, bits: int) -> tuple[Array, Array]:
    """The formulas of docs/numerics.md, in numpy."""
    most = np.float32(2 ** (bits - 1) - 1)
    largest = np.maximum(np.abs(x).max(-1, keepdims=True), np.float32(1e-5))
    scale = (largest * (np.float32(1) / most)).astype(np.float16)
    steps = np.rint(x / scale.astype(np.float32))
    return np.clip(steps, -most - 1, most).astype(np.int8), scale[..., 0]


@pytest.mark.parametrize("bits", [8, 4])
def test_integers_are_those_of_the_formulas(bits: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 50, 32)).astype(np.float32)
    x[0, 0], x[0, 1], x[0, 2] = 0, 1e-7, 3e4
    integers, scales = quantize(torch.tensor(x), bits)
    expected, scale = as_written(x, bits)
    np.testing.assert_array_equal(integers.numpy(), expected)
    np.testing.assert_array_equal(scales.numpy(), scale)
    assert integers.abs().max() >= 2 ** (bits - 1) - 1


def test_offsets_let_all_levels_be_used() -> None:
    x = np.random.default_rng(0).standard_normal((40, 32)).astype(np.float32) + 7
    integers, scales, offsets = quantize_with_offset(torch.tensor(x))
    assert integers.min() == -8
    assert integers.max() == 7
    value = integers.float() * scales.float().unsqueeze(-1) + offsets.float().unsqueeze(-1)
    half_a_step = scales.float().unsqueeze(-1).numpy() * 0.5
    rounding = np.abs(x) * 2.0**-10  # of scale and offset, at the ends of the range
    assert (np.abs(value.numpy() - x) <= half_a_step + rounding).all()


def test_halves_of_bytes_are_read_back() -> None:
    low, high = torch.meshgrid(torch.arange(-8, 8), torch.arange(-8, 8), indexing="ij")
    both = join_halves(low.to(torch.int8), high.to(torch.int8))
    assert both.dtype == torch.int8
    torch.testing.assert_close(low_half(both), low.float(), rtol=0, atol=0)
    torch.testing.assert_close(high_half(both), high.float(), rtol=0, atol=0)


@pytest.mark.parametrize(("kind", "share"), [("f16", 1), ("q8", 8.25 / 16), ("q4", 4.75 / 16)])
@pytest.mark.parametrize("width", [64, 128])
def test_bytes_of_a_cache(kind: str, share: float, width: int) -> None:
    """At 4 bits, 32 channels share a scale of 16 bits, and keys an offset."""
    shape = Shape(sequences=2, heads=3, width=width, blocks=4)
    buffers = make_cache(CacheScheme.of(kind), shape).allocate().values()
    found = sum(each.nbytes for each in buffers)
    fewer_scales = 0.125 / 16 if kind == "q8" and width == 128 else 0
    assert found == 2 * 2 * prod((2, 3, width, 256)) * (share - fewer_scales)


def decode(model: LanguageModel, tokens: torch.Tensor, parts: list[int]) -> torch.Tensor:
    position, logits = 0, list[torch.Tensor]()
    with torch.no_grad():
        for count in parts:
            given = tokens[:, position : position + count]
            logits.append(model(given, torch.tensor([position])))
            position += count
    return logits[-1][0, -1]


CASES: dict[str, dict[str, Any]] = {
    "narrow": {},
    "groups": {"head_dim": 128},
    "windows": {"model_type": "mistral", "sliding_window": 20, "rope_scaling": None},
}


class Dequantized(FloatCache):
    """Keeps as floats what integers stand for, with scales for so many channels."""

    bits, group = 8, 0

    def write(self, buffers: Any, k: torch.Tensor, v: torch.Tensor, kept: Kept) -> None:
        k, v = (unflatten(each, -1, (-1, self.group)) for each in (k, v))
        integers, scales = quantize(v, self.bits)
        v = integers * scales.float().unsqueeze(-1)
        offsets = torch.zeros(())
        integers, scales = quantize(k, self.bits)
        if self.bits == 4:
            integers, scales, offsets = quantize_with_offset(k)
            offsets = offsets.float().unsqueeze(-1)
        k = integers * scales.float().unsqueeze(-1) + offsets
        super().write(buffers, k.flatten(-2), v.flatten(-2), kept)


@pytest.mark.parametrize("text", ["q8", "q4", "q8h16", "q4h16"])
@pytest.mark.parametrize("case", CASES)
def test_attention_is_that_to_what_integers_stand_for(
    case: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in parts, behind the first block, and with several groups in half a head."""
    plain_folder(tmp_path, max_position_embeddings=128, **CASES[case])
    checkpoint, scheme = open_checkpoint(tmp_path), CacheScheme.of(text)
    tokens = torch.randint(0, VOCABULARY, (1, CONTEXT), generator=manual_seed(0))
    parts, width = [CONTEXT - 7, 1, 6], CASES[case].get("head_dim", 16)
    found = decode(build_decoder(checkpoint, Decoding(CONTEXT, scheme)), tokens, parts)
    monkeypatch.setattr(Dequantized, "bits", 8 if scheme.kind == "q8" else 4)
    group = width if scheme.kind == "q8" else min(32, width // 2)
    monkeypatch.setattr(Dequantized, "group", group)
    monkeypatch.setattr(decoder, "make_cache", make_dequantized)
    expected = decode(build_decoder(checkpoint, Decoding(CONTEXT, scheme)), tokens, parts)
    assert norm(found - expected) < 2e-4 * norm(expected)


def make_dequantized(_: CacheScheme, shape: Shape) -> Dequantized:
    return Dequantized(shape)


def test_only_what_was_kept_is_read(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    model = build_decoder(open_checkpoint(tmp_path), Decoding(24, CacheScheme.of("q4h8")))
    for name, buffer in model.named_buffers():
        if name.endswith(("_scales", "_offsets")):
            buffer.fill_(float("nan"))
    with torch.no_grad():
        for begin, end in ((0, 11), (11, 12), (12, 18)):
            tokens = torch.arange(begin, end).unsqueeze(0)
            assert model(tokens, torch.tensor([begin])).isfinite().all()


def test_schemes_are_texts() -> None:
    for text in ("f32", "f16", "q8", "q4", "q8h64", "q4h32"):
        assert str(CacheScheme.of(text)) == text
    for text, what in (
        ("q5", "not kept as 'q5'"),
        ("f16h64", "stay f16"),
        ("q8h48", "blocks of 48"),
        ("", "not kept as ''"),
    ):
        with pytest.raises(UsageError, match=what):
            CacheScheme.of(text)


def test_what_a_model_cannot_keep_is_refused_before_it_is_read(tmp_path: Path) -> None:
    plain_folder(tmp_path)
    with pytest.raises(UsageError, match="do not divide the 16 channels") as caught:
        fewbit.import_model(tmp_path, context=24, cache="q8h64")
    assert "q8h16" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="no logits of 'some'"):
        fewbit.import_model(tmp_path, logits="some")  # pyright: ignore
    with pytest.raises(UsageError, match="0 sequences"):
        fewbit.import_model(tmp_path, sequences=0)
    with pytest.raises(UsageError, match="recipe keeps keys and values as q8, and the option as"):
        fewbit.compile(tmp_path, recipe="w8a8,cache=q8", cache="q4")
    refused: tuple[dict[str, Any], ...] = ({"logits": "all"}, {"sequences": 2})
    for given in refused:
        with pytest.raises(UsageError, match="are for checkpoints of decoders"):
            fewbit.import_model("zoo:lenet", **given)


@pytest.mark.slow
def test_a_recipe_must_agree_with_the_program(tmp_path: Path) -> None:
    plain_folder(tmp_path, num_hidden_layers=1)
    with pytest.warns(FewbitWarning):
        program = fewbit.import_model(tmp_path, context=24, cache="q8")
    assert fewbit.quantize(program, "w8a8,cache=q8").recipe == "w8a8,cache=q8"
    with pytest.raises(UsageError, match="says 'cache=q4', and the program has a cache of q8"):
        fewbit.quantize(program, "w8a8,cache=q4")
    with pytest.raises(UsageError, match="keeps no keys and values"):
        fewbit.quantize(fewbit.import_model("zoo:lenet"), "w8a8,cache=q8")
