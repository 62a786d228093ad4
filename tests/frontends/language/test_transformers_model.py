"""What a context is given for."""

from __future__ import annotations

import pytest
import torch

import fewbit
from fewbit.errors import UsageError
from fewbit.program.program import Program


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
