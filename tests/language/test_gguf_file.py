"""GGUF files: weights in every format, the permutation undone, and what is refused."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from fewbit.errors import Error, UnsupportedError
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.language.checkpoint import OwnWeights
from tests.language.checkpoints import write_gguf

Q = gguf.GGMLQuantizationType


@pytest.mark.parametrize("kind", [Q.F32, Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0])
def test_weights_are_those_of_the_file(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    path = tmp_path / "net.gguf"
    weights = write_gguf(path, kind)
    model = build_decoder(open_checkpoint(path), 16)
    ours = model.state_dict()
    for name, array in weights.items():
        np.testing.assert_array_equal(ours[name].numpy(), array, err_msg=name)


@pytest.mark.parametrize("kind", [Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0])
def test_integers_of_a_file_are_kept(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    path = tmp_path / "net.gguf"
    weights = write_gguf(path, kind, tied=True)
    kept = OwnWeights(open_checkpoint(path))
    matrices = {name.removesuffix(".weight") for name, array in weights.items() if array.ndim == 2}
    assert set(kept) == matrices | {"lm_head"}
    for name in matrices:
        np.testing.assert_array_equal(kept[name].dequantize(), weights[f"{name}.weight"])


def test_floats_have_no_integers(tmp_path: Path) -> None:
    write_gguf(tmp_path / "net.gguf", Q.F16)
    assert not OwnWeights(open_checkpoint(tmp_path / "net.gguf"))


def test_settings_are_those_of_the_file(tmp_path: Path) -> None:
    write_gguf(tmp_path / "net.gguf", depth=3, tied=True)
    config = open_checkpoint(tmp_path / "net.gguf").config
    assert (config.heads, config.kv_heads, config.head_width, len(config.layers)) == (4, 2, 16, 3)
    assert config.longest == 64
    assert config.eps == pytest.approx(1e-5)
    assert config.tied
    model = build_decoder(open_checkpoint(tmp_path / "net.gguf"), 16)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_an_unknown_architecture_names_the_nearest(tmp_path: Path) -> None:
    write_gguf(tmp_path / "net.gguf", architecture="qwen3moe")
    with pytest.raises(UnsupportedError, match="'qwen3moe'") as caught:
        open_checkpoint(tmp_path / "net.gguf")
    assert "nearest known is qwen3" in (caught.value.hint or "")


def test_mixtures_of_experts_are_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "net.gguf", experts=8)
    with pytest.raises(UnsupportedError, match="mixture of experts"):
        open_checkpoint(tmp_path / "net.gguf")


def test_missing_tensors_are_named(tmp_path: Path) -> None:
    write_gguf(tmp_path / "net.gguf", leave_out="model.layers.0.mlp.up_proj.weight")
    with pytest.raises(Error, match=r"lacks 'blk.0.ffn_up.weight'"):
        build_decoder(open_checkpoint(tmp_path / "net.gguf"), 16)


@pytest.mark.parametrize("size", [9, 100, 5000])
def test_a_file_that_was_cut_is_refused(size: int, tmp_path: Path) -> None:
    path = tmp_path / "net.gguf"
    write_gguf(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UnsupportedError, match="GGUF file that cannot be read"):
        open_checkpoint(path)
