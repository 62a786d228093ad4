"""What a context is given for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from fewbit.errors import Error, UnsupportedError, UsageError
from fewbit.program.program import Program
from fewbit.program.tensor_file import write

MIXTRAL = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "max_position_embeddings": 32,
}


def folder_of(path: Path, settings: dict[str, Any]) -> Path:
    """Write a folder whose weights are a few of a model's."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps(settings))
    tensors = {"model.norm.weight": np.ones(32, np.float32)}
    write(path / "model.safetensors", tensors, {"format": "pt"})
    return path


def test_a_model_that_keeps_no_tokens_takes_no_context() -> None:
    with pytest.raises(
        UsageError, match="and models of transformers that generate, not Linear"
    ) as raised:
        fewbit.import_model(torch.nn.Linear(2, 2), context=16)
    assert "AutoModelForCausalLM" in str(raised.value.hint)


def test_a_program_has_its_context() -> None:
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { func.return %x : tensor<2xf32> }"
    with pytest.raises(UsageError, match="a program has its context already"):
        fewbit.import_model(Program.parse(text), context=16)


def test_a_call_takes_a_context_only_for_decoders() -> None:
    with pytest.raises(UsageError, match="not Linear"):
        fewbit.import_model("torch.nn:Linear(2, 2)", context=16)


def test_what_transformers_does_not_read_is_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    settings = {"model_type": "lama9", "architectures": ["Lama9ForCausalLM"]}
    with pytest.raises(UnsupportedError, match="'lama9' is not one") as raised:
        fewbit.import_model(folder_of(tmp_path / "model", settings))
    assert "nearest known is llama" in str(raised.value.hint)


def test_weights_that_transformers_would_draw_are_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    with pytest.raises(Error, match=r"lacks 'lm_head.weight', 'model.embed_tokens.weight'"):
        fewbit.import_model(folder_of(tmp_path / "model", MIXTRAL))
