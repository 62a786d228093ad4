"""A program of repeated layers is the one that tracing all layers gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fewbit.errors import FewbitWarning
from fewbit.frontends.language import build_decoder, import_language_model, open_checkpoint
from fewbit.frontends.torch import import_torch
from fewbit.program.program import Program
from fewbit.quant.cache_scheme import F32, note_cache
from tests.language.checkpoints import SETTINGS, family_folder

CONTEXT = 24


def import_all_layers(folder: Path) -> Program:
    """Import a checkpoint with each of its layers traced."""
    model = build_decoder(open_checkpoint(folder), CONTEXT)
    given = torch.zeros(1, 4, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    length = torch.export.Dim("length", min=2, max=CONTEXT)
    program = import_torch(model, given, dynamic_shapes=({1: length}, None))
    note_cache(program.module, F32)
    return program


def plain_text(program: Program) -> str:
    """Return the text without the names of values, which a trace numbers through."""
    module = program.module.clone()
    for op in module.walk():
        for value in (*op.results, *(arg for r in op.regions for b in r.blocks for arg in b.args)):
            value.name_hint = None
    return Program(module).text(locations=True)


def depth(family: str, layers: int) -> dict[str, Any]:
    if family == "gpt2":
        return {"n_layer": layers}
    if family == "gemma3_text":
        kinds = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]
        return {"num_hidden_layers": layers, "layer_types": kinds[:layers]}
    return {"num_hidden_layers": layers}


@pytest.mark.parametrize("family", SETTINGS)
def test_repeated_layers_are_those_of_a_whole_trace(family: str, tmp_path: Path) -> None:
    family_folder(tmp_path, family, **depth(family, 4))
    with pytest.warns(FewbitWarning):
        program = import_language_model(tmp_path, CONTEXT)
    program.verify()
    whole = import_all_layers(tmp_path)
    assert plain_text(program) == plain_text(whole)
    assert program.signature == whole.signature
    assert set(program.store) == set(whole.store)
    for key in whole.store:
        np.testing.assert_array_equal(program.store[key], whole.store[key])


def test_weights_are_read_when_they_are_used(tmp_path: Path) -> None:
    family_folder(tmp_path, "gemma", num_hidden_layers=3)
    with pytest.warns(FewbitWarning):
        store = import_language_model(tmp_path, CONTEXT).store
    name = "model.layers.2.input_layernorm.weight"
    assert store[name] is not store[name]
    mapped = store["model.layers.2.mlp.up_proj.weight"]
    assert not mapped.flags.owndata
    assert not mapped.flags.writeable
