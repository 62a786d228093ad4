"""What configurations mean, and what they leave to their families."""

from __future__ import annotations

from typing import Any

import pytest

from fewbit.errors import UnsupportedError
from fewbit.language.architectures import read_config, unknown_architecture
from tests.language.checkpoints import COMMON


def windows(**settings: Any) -> list[int | None]:
    return [kind.window for kind in read_config({**COMMON, **settings}).layers]


def test_windows_of_families() -> None:
    assert windows(model_type="llama", sliding_window=8) == [None, None]
    assert windows(model_type="mistral") == [4096, 4096]
    assert windows(model_type="mistral", sliding_window=None) == [None, None]
    used = {"use_sliding_window": True, "sliding_window": 8}
    assert windows(model_type="qwen2", sliding_window=8) == [None, None]
    assert windows(model_type="qwen2", **used, max_window_layers=1) == [None, 8]
    assert windows(model_type="qwen2", **used) == [None, None]
    assert windows(model_type="gemma2", sliding_window=8) == [8, None]
    many = {"num_hidden_layers": 7, "sliding_window": 8}
    assert windows(model_type="gemma3_text", **many) == [8, 8, 8, 8, 8, None, 8]


def test_widths_of_heads() -> None:
    assert read_config({**COMMON, "model_type": "llama"}).head_width == 16
    assert read_config({**COMMON, "model_type": "llama", "head_dim": None}).head_width == 16
    assert read_config({**COMMON, "model_type": "qwen3"}).head_width == 128
    assert read_config({**COMMON, "model_type": "gemma"}).head_width == 256


def test_newer_and_older_words_for_rotations_agree() -> None:
    older = {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}}
    newer = {"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 4.0}}
    common = {**COMMON, "model_type": "llama"}
    assert read_config({**common, **older}) == read_config({**common, **newer})
    rope = read_config({**common, **older}).layers[0].rope
    assert rope is not None
    assert rope.base == 5e5
    assert rope.divisors == (4.0,) * 8


@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "stablelm", "use_parallel_residual": True},
        {"model_type": "stablelm", "qk_layernorm": True},
        {"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": True},
        {"model_type": "llama", "rope_scaling": "linear"},
        {"model_type": "llama", "intermediate_size": None},
        {"model_type": "llama", "num_hidden_layers": True},
        {"model_type": "llama", "vocab_size": -1},
    ],
)
def test_choices_that_are_not_known_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        read_config({**COMMON, **settings})


@pytest.mark.parametrize(
    ("name", "nearest"), [("Llama4", "llama"), ("mixtral", "mistral"), ("phi", "phi3")]
)
def test_the_nearest_known_is_named(name: str, nearest: str) -> None:
    assert f"nearest known is {nearest};" in (unknown_architecture(name).hint or "")
    assert "nearest" not in (unknown_architecture("zzz").hint or "")
