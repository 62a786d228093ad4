"""MiCo's files, read back by the rules of its C program."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewbit.errors import UnsupportedError, UsageError
from fewbit.frontends.language import open_checkpoint
from fewbit.language.checkpoint import open_weights
from fewbit.language.export.write_mico import write_mico
from fewbit.numerics import Width, quantize_weight
from fewbit.numerics.packing import unpack
from tests.language.checkpoints import VOCABULARY, family_folder, plain_folder, unpermute

PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
         "mlp.gate_proj", "mlp.down_proj", "mlp.up_proj")  # fmt: skip
NAMES = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
CONTEXT = 32
PLAIN: dict[str, Any] = {"rope_scaling": None, "tie_word_embeddings": True}


def read(path: Path) -> tuple[dict[str, int], dict[str, tuple[int, int]], dict[str, Any]]:
    """Return sizes, widths and weights, in the decoder's order, as the C program finds them."""
    data = path.read_bytes()
    magic, version, *sizes = struct.unpack_from("<Ii7i", data)
    assert (magic, version) == (0x616B3432, 1)
    config: dict[str, int] = dict(zip(NAMES, sizes, strict=True))
    width, depth = config["dim"], config["n_layers"]
    head = width // config["n_heads"]
    place = 256

    def floats(count: int) -> np.ndarray[Any, Any]:
        nonlocal place
        place += 4 * count
        return np.frombuffer(data, "<f4", count, place - 4 * count)

    weights: dict[str, Any] = {}
    for name in ("input_layernorm", "post_attention_layernorm"):
        for number in range(depth):
            weights[f"model.layers.{number}.{name}.weight"] = floats(width)
    weights["model.norm.weight"] = floats(width)
    layers = [f"model.layers.{number}.{part}" for part in PARTS for number in range(depth)]
    widths: dict[str, tuple[int, int]] = {}
    for name in layers:
        widths[name] = data[place], data[place + 1]
        place += 2
    place += data[place]
    assert place % 64 == 0
    rows = {"k_proj": config["n_kv_heads"] * head, "v_proj": config["n_kv_heads"] * head}
    rows |= {"gate_proj": config["hidden_dim"], "up_proj": config["hidden_dim"]}
    integers: dict[str, Any] = {}
    for name in layers:
        last = name.rpartition(".")[2]
        n, k = rows.get(last, width), config["hidden_dim"] if last == "down_proj" else width
        size = n * k * widths[name][0] // 8
        packed = np.frombuffer(data, np.uint8, size, place).reshape(n, -1)
        integers[name] = unpack(packed, widths[name][0], k)
        place += size
    table = config["vocab_size"] * width
    embedding = np.frombuffer(data, np.int8, table, place).reshape(-1, width)
    place += table
    for name in layers:
        scaled = integers[name] * floats(1)
        weights[f"{name}.weight"] = unpermute(scaled, f"{name}.weight")
    weights["model.embed_tokens.weight"] = embedding * floats(1)
    assert place == len(data)
    return config, widths, weights


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("w8a8-tensor", {}),
        ("w4a8-tensor,model.layers.1=w2a4-tensor,model.layers.0.mlp=w1a1-tensor", {}),
        # What comes before ends at a multiple of 64 bytes.
        ("w1.58a8-tensor", {"num_hidden_layers": 32}),
    ],
)
def test_a_file_is_read_back(recipe: str, changes: dict[str, Any], tmp_path: Path) -> None:
    folder = open_checkpoint(plain_folder(tmp_path / "llama", **PLAIN, **changes))
    write_mico(folder, tmp_path / "net.bin", recipe, CONTEXT)
    config, widths, weights = read(tmp_path / "net.bin")
    depth = changes.get("num_hidden_layers", 2)
    assert list(config.values()) == [64, 96, depth, 4, 2, VOCABULARY, CONTEXT]
    if "w4a8" in recipe:
        assert widths["model.layers.0.self_attn.q_proj"] == (4, 8)
        assert widths["model.layers.1.self_attn.q_proj"] == (2, 4)
        assert widths["model.layers.0.mlp.up_proj"] == (1, 1)
    given = open_weights(folder)
    assert weights.keys() == set(given)
    for name in given:
        expected = given[name]
        bits = 8 if "embed" in name else widths.get(name.removesuffix(".weight"), (0, 0))[0]
        if bits:
            width = Width.of(1.58 if recipe.startswith("w1.58") and bits == 2 else bits)
            expected = quantize_weight(expected, width, granularity="tensor").dequantize()
        np.testing.assert_array_equal(weights[name], expected)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("llama", {"rope_scaling": None, "tie_word_embeddings": False}, "not its embedding"),
        ("llama", {}, "other angles"),
        ("llama", {**PLAIN, "rope_theta": 1e5}, "other angles"),
        ("llama", {**PLAIN, "rms_norm_eps": 1e-6}, "epsilon 1e-06"),
        ("llama", {**PLAIN, "head_dim": 32}, "heads of another width"),
        ("llama", {**PLAIN, "intermediate_size": 80}, "no multiples of 32"),
        ("llama", {**PLAIN, "attention_bias": True}, "has biases"),
        ("gemma2", {}, "another MLP"),
    ],
)
def test_what_the_program_does_not_compute_is_refused(
    family: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    family_folder(tmp_path / family, family, **changes)
    with pytest.raises(UnsupportedError, match=message):
        write_mico(open_checkpoint(tmp_path / family), tmp_path / "net.bin", "w8a8-tensor", CONTEXT)
    assert not (tmp_path / "net.bin").exists()


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("w8a8", "one scale for each weight"),
        ("w8a8g32", "one scale for each weight"),
        ("w8a8-tensor,model.layers.0=w6a8-tensor", "1, 2, 4 and 8 bits"),
        ("w8afp-tensor", "1, 2, 4 and 8 bits"),
        ("w8a8-tensor,lm_head=w4a8-tensor", "lm_head"),
    ],
)
def test_schemes_that_the_file_does_not_have_are_refused(
    recipe: str, message: str, tmp_path: Path
) -> None:
    folder = open_checkpoint(plain_folder(tmp_path / "llama", **PLAIN))
    with pytest.raises((UsageError, UnsupportedError), match=message):
        write_mico(folder, tmp_path / "net.bin", recipe, CONTEXT)
