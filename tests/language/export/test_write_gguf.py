"""GGUF files that are read back as they were written, by our reader and by the package `gguf`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import gguf
import numpy as np
import pytest
import torch
from gguf import quants

import fewbit
from fewbit.errors import Error, UnsupportedError
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.language.checkpoint import Checkpoint, open_weights
from fewbit.language.decoder import LanguageModel
from fewbit.language.export.weight_type import WeightType
from fewbit.language.export.write_gguf import write_gguf
from tests.language.checkpoints import (
    VOCABULARY,
    family_folder,
    gguf_name,
    permute,
    plain_folder,
    unpermute,
)
from tests.language.checkpoints import write_gguf as write_as_the_converter_does

CONTEXT = 32
KINDS = {kind: gguf.GGMLQuantizationType[kind.name] for kind in WeightType}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": None},
    "qwen2": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "qwen3": {},
    "phi3": {"sliding_window": None},
}


def logits(checkpoint: Checkpoint) -> np.ndarray[Any, Any]:
    return run(build_decoder(checkpoint, CONTEXT))


def run(model: LanguageModel) -> np.ndarray[Any, Any]:
    tokens = torch.tensor(np.random.default_rng(1).integers(0, VOCABULARY, (1, 18)))
    with torch.no_grad():
        return model(tokens, torch.tensor([0])).numpy()


@pytest.mark.parametrize("kind", WeightType)
def test_weights_are_those_of_ggufs_own_quantization(kind: WeightType, tmp_path: Path) -> None:
    folder = open_checkpoint(plain_folder(tmp_path / "llama"))
    write_gguf(folder, tmp_path / "net.gguf", kind)
    written = {each.name: each for each in gguf.GGUFReader(tmp_path / "net.gguf").tensors}
    back, expected = open_checkpoint(tmp_path / "net.gguf"), dict[str, torch.Tensor]()
    weights, read = open_weights(folder), open_weights(back)
    for name in weights:
        own = KINDS[kind] if weights[name].ndim == 2 else KINDS[WeightType.F32]
        blocks = quants.quantize(permute(weights[name], name), own)
        tensor = written.pop(gguf_name(name))
        assert tensor.tensor_type == own
        np.testing.assert_array_equal(tensor.data, blocks)
        floats = quants.dequantize(blocks, own).reshape(weights.shape(name))
        expected[name] = torch.tensor(unpermute(floats, name))
        np.testing.assert_array_equal(read[name], expected[name])
    assert list(written) == ["rope_freqs.weight"]
    model = build_decoder(folder, CONTEXT)
    head = {"lm_head.weight": expected["model.embed_tokens.weight"]}
    model.load_state_dict(expected | head, assign=True)
    np.testing.assert_array_equal(logits(back), run(model))


@pytest.mark.parametrize("family", FAMILIES)
def test_families_give_the_same_logits(family: str, tmp_path: Path) -> None:
    family_folder(tmp_path / family, family, **FAMILIES[family])
    folder = open_checkpoint(tmp_path / family)
    write_gguf(folder, tmp_path / "net.gguf", WeightType.F32)
    np.testing.assert_array_equal(logits(open_checkpoint(tmp_path / "net.gguf")), logits(folder))


def test_biases_of_attention_change_places_as_well(tmp_path: Path) -> None:
    folder = open_checkpoint(plain_folder(tmp_path / "llama", attention_bias=True))
    write_gguf(folder, tmp_path / "net.gguf", WeightType.F32)
    np.testing.assert_array_equal(logits(open_checkpoint(tmp_path / "net.gguf")), logits(folder))


@pytest.mark.parametrize("kind", [WeightType.Q4_0, WeightType.Q8_0])
def test_blocks_of_a_file_stay_as_they_are(kind: WeightType, tmp_path: Path) -> None:
    write_as_the_converter_does(tmp_path / "a.gguf", KINDS[kind], depth=2)
    first = open_checkpoint(tmp_path / "a.gguf")
    write_gguf(first, tmp_path / "b.gguf", kind)
    files = [gguf.GGUFReader(tmp_path / name) for name in ("a.gguf", "b.gguf")]
    before, after = ({each.name: each.data for each in file.tensors} for file in files)
    assert before.keys() == after.keys()
    for name, data in before.items():
        np.testing.assert_array_equal(after[name], data)
    second = open_checkpoint(tmp_path / "b.gguf")
    assert second.config == first.config
    assert first.text is not None
    assert second.text is not None
    # Rows of the embedding without a token have names in the file.
    assert replace(second.text, tokenizer=first.text.tokenizer) == first.text


def test_the_file_is_compiled_again(tmp_path: Path) -> None:
    write_as_the_converter_does(tmp_path / "a.gguf")
    write_gguf(open_checkpoint(tmp_path / "a.gguf"), tmp_path / "b.gguf", WeightType.Q8_0)
    program = fewbit.import_model(tmp_path / "b.gguf", context=CONTEXT)
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (1, 18))
    caches = [np.zeros(cast(Any, each.shape), np.float32) for each in program.signature.inputs[2:]]
    ours = program.run(tokens, np.array([0]), *caches)[0]
    expected = logits(open_checkpoint(tmp_path / "b.gguf"))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)
    assert {"tokenizer.json", "chat_template.jinja"} <= program.files.keys()


def test_rows_that_are_no_whole_blocks_are_float16(tmp_path: Path) -> None:
    folder = open_checkpoint(plain_folder(tmp_path / "llama", intermediate_size=80))
    write_gguf(folder, tmp_path / "net.gguf", WeightType.Q8_0)
    written = {each.name: each for each in gguf.GGUFReader(tmp_path / "net.gguf").tensors}
    assert written["blk.0.ffn_down.weight"].tensor_type == KINDS[WeightType.F16]
    assert written["blk.0.ffn_up.weight"].tensor_type == KINDS[WeightType.Q8_0]


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("gpt2", {}, "layer norms"),
        ("gemma", {}, "another MLP"),
        ("mistral", {}, "attends to a window"),
        ("llama", {"mlp_bias": True}, "biases in its MLP"),
        ("llama", {"hidden_act": "gelu"}, "another MLP"),
        ("llama", {"rope_scaling": None, "partial_rotary_factor": 0.5}, "a part of each head"),
        ("qwen3", {"attention_bias": True}, "biases, and norms"),
    ],
)
def test_other_decoders_are_refused(
    family: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    family_folder(tmp_path / family, family, **changes)
    with pytest.raises(UnsupportedError, match=message):
        write_gguf(open_checkpoint(tmp_path / family), tmp_path / "net.gguf", WeightType.F16)
    assert not (tmp_path / "net.gguf").exists()


@pytest.mark.parametrize("value", [1e5, np.nan])
def test_numbers_beyond_the_type_are_refused_and_leave_no_file(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = open_checkpoint(plain_folder(tmp_path / "llama"))
    own = type(folder).read

    def read(self: Checkpoint, key: str) -> np.ndarray[Any, Any]:
        array = np.array(own(self, key))
        if key.endswith("1.mlp.up_proj.weight"):
            array[3, 5] = value
        return array

    monkeypatch.setattr(type(folder), "read", read)
    with pytest.raises(Error, match="cannot hold") as caught:
        write_gguf(folder, tmp_path / "net.gguf", WeightType.F16)
    assert caught.value.place.layer == "model.layers.1.mlp.up_proj"
    assert [path.name for path in tmp_path.iterdir()] == ["llama"]
