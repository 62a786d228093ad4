"""Decoders of transformers whose architecture we do not read ourselves, with a cache of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import UnsupportedError
from fewbit.program.state import initial_state
from tests.strangers.stranger import AbsentError, need

VOCABULARY = 97
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "max_position_embeddings": 64}
LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 4}
USUAL = {**SIZES, **LAYERS, "intermediate_size": 48, "num_key_value_heads": 2, "pad_token_id": 0}
EXPERTS = {"num_experts_per_tok": 2}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "OPT": {**SIZES, **LAYERS, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "GPTNeoX": {**SIZES, **LAYERS, "intermediate_size": 48},
    "GPTJ": {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    "Falcon": {"vocab_size": VOCABULARY, "hidden_size": 32, **LAYERS, "alibi": False},
    "Mixtral": {**USUAL, **EXPERTS, "num_local_experts": 4},
    "Qwen2Moe": {
        **USUAL, **EXPERTS, "num_experts": 4, "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
    "Olmo2": USUAL,
    "Cohere": USUAL,
    "Starcoder2": USUAL,
    "Granite": USUAL,
    "Phi": USUAL,
    "Gemma3Text": {
        **USUAL, "head_dim": 8, "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
    },
}  # fmt: skip
TOKENS = np.random.default_rng(0).integers(0, VOCABULARY, (1, 12))
PARTS = ((0, 7), (7, 8), (8, 9), (9, 12))


def make_model(name: str, **settings: Any) -> Any:
    try:
        transformers: Any = need("transformers")
    except AbsentError as absent:
        pytest.skip(str(absent))
    config = getattr(transformers, f"{name}Config")(**settings)
    manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_steps_give_what_the_whole_text_gives(name: str) -> None:
    model = make_model(name, **CONFIGURATIONS[name])
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    step = fewbit.compile(model, context=24).session()
    for begin, end in PARTS:
        found = step(TOKENS[:, begin:end], np.array([begin]))
        np.testing.assert_allclose(found[0, 0], expected[0, end - 1], atol=1e-5)


@pytest.mark.slow
def test_a_folder_is_read_by_transformers(tmp_path: Path) -> None:
    model = make_model("OPT", **CONFIGURATIONS["OPT"])
    model.save_pretrained(tmp_path / "opt")
    program = fewbit.import_model(tmp_path / "opt", context=24)
    state = initial_state(program.module, program.store).values()
    logits, *_ = program.run(TOKENS, np.array([0]), *state)
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    np.testing.assert_allclose(logits[0, 0], expected[0, -1], atol=1e-5)
    assert "generation.json" in program.files


SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}
LOCAL = {"attention_types": [[["global", "local"], 1]], "num_layers": 2, "window_size": 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("Mamba", SMALL, "something else than keys"),
        ("Bloom", {**SMALL, "n_head": 4}, "cache from outside"),
        ("GPTNeo", {**SIZES, **LOCAL, "num_heads": 4}, "results are others"),
    ],
)
def test_what_keeps_something_else_is_refused(
    name: str, settings: dict[str, Any], why: str
) -> None:
    model = make_model(name, **settings)
    with pytest.raises(UnsupportedError, match=why) as raised:
        fewbit.import_model(model, context=24)
    assert "without a cache" in str(raised.value.hint)
