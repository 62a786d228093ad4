"""Checkpoints of GPTQ and AWQ: files that are written here, packed by a code of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch import nn

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.errors import Error, ShapeError, UnsupportedError, UsageError
from fewbit.numerics import pack
from fewbit.quant.imported import from_checkpoint
from tests.quant.imported import packing

Tensors = dict[str, np.ndarray[Any, Any]]

RNG = np.random.default_rng(0)
GPTQ = {"bits": 4, "group_size": 16, "desc_act": False, "checkpoint_format": "gptq"}
X = from_numpy(RNG.standard_normal((3, 64), dtype=np.float32))


class Net(nn.Module):
    """An up and a down projection, which are quantized, and a norm and a head, which are not."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.mlp = nn.ModuleDict({"up": nn.Linear(64, 32), "down": nn.Linear(32, 64, bias=False)})
        self.head = nn.Linear(64, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.mlp["down"](self.mlp["up"](self.norm(x)).relu()))


class Written:
    """What was written to a folder, and what it means."""

    def __init__(self, folder: Path, method: str = "gptq", bits: int = 4, version: int = 1) -> None:
        self.folder = folder
        self.layers = {
            "mlp.up": packing.random_layer(RNG, 32, 64, 4, bits),
            "mlp.down": packing.random_layer(RNG, 64, 32, 2, bits),
        }
        self.tensors: Tensors = {}
        for name, layer in self.layers.items():
            packed = (
                packing.awq(*layer)
                if method == "awq"
                else packing.gptq(*layer, bits, version=version)
            )
            self.tensors |= {f"{name}.{part}": array for part, array in packed.items()}
        source = Net().half()
        for key in ("norm.weight", "norm.bias", "mlp.up.bias", "head.weight", "head.bias"):
            self.tensors[key] = source.state_dict()[key].numpy()

    def save(self, config: Mapping[str, object], name: str = "quantize_config.json") -> Path:
        save_file(self.tensors, self.folder / "model.safetensors")
        (self.folder / name).write_text(json.dumps(config))
        return self.folder

    def expected(self) -> np.ndarray:
        model = Net()
        state = {k: from_numpy(v).float() for k, v in self.tensors.items() if "q" not in k}
        for name, layer in self.layers.items():
            state[f"{name}.weight"] = from_numpy(packing.values(*layer))
        model.load_state_dict({k: v for k, v in state.items() if k in model.state_dict()})
        with torch.no_grad():
            return model(X).numpy()


def check(
    written: Written, path: Path, bits: int, config: Mapping[str, object] | None = None
) -> None:
    imported = from_checkpoint(path, Net(), config)
    with torch.no_grad():
        np.testing.assert_array_equal(imported.model(X).numpy(), written.expected())
    program = fewbit.quantize(imported.model, "fp", weights=imported.weights, example_inputs=(X,))
    for name, (u, _, s) in written.layers.items():
        packed = pack((u - 2 ** (bits - 1)).astype(np.int8), bits)
        assert program.store[f"{name}.weight"].tobytes() == packed.tobytes()
        assert program.store[f"{name}.weight.scale"].tobytes() == s.tobytes()
    (y,) = program.run(X.numpy())
    np.testing.assert_allclose(y, written.expected(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("version", [1, 2])
def test_gptq(tmp_path: Path, bits: int, version: int) -> None:
    written = Written(tmp_path, bits=bits, version=version)
    layout = "gptq" if version == 1 else "gptq_v2"
    path = written.save({"bits": bits, "desc_act": False, "checkpoint_format": layout})
    check(written, path, bits)


def test_awq(tmp_path: Path) -> None:
    written = Written(tmp_path, "awq")
    config = {"quantization_config": {"quant_method": "awq", "version": "gemm", "bits": 4}}
    check(written, written.save(config, "config.json"), 4)


def test_a_file_with_its_configuration_in_hand(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.save({}, "other.json")
    check(written, tmp_path / "model.safetensors", 4, GPTQ)


def test_shards(tmp_path: Path) -> None:
    written = Written(tmp_path)
    keys = list(written.tensors)
    parts = {"a.safetensors": keys[:5], "b.safetensors": keys[5:]}
    for name, part in parts.items():
        save_file({key: written.tensors[key] for key in part}, tmp_path / name)
    shards = {key: name for name, part in parts.items() for key in part}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": shards}))
    (tmp_path / "quantize_config.json").write_text(json.dumps(GPTQ))
    check(written, tmp_path, 4)
    index.write_text(json.dumps({"weight_map": {"x": "../a.safetensors"}}))
    with pytest.raises(UsageError, match="files of its folder"):
        from_checkpoint(tmp_path, Net())


def test_the_model_that_is_given_is_not_changed(tmp_path: Path) -> None:
    model = Net()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    from_checkpoint(Written(tmp_path).save(GPTQ), model)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_zeros_for_a_bias_that_is_not_there_are_left_out(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.tensors["mlp.down.bias"] = np.zeros(64, np.float16)
    check(written, written.save(GPTQ), 4)
    written.tensors["mlp.down.bias"] = np.ones(64, np.float16)
    with pytest.raises(UsageError, match=r"mlp.down.bias"):
        from_checkpoint(written.save(GPTQ), Net())


def without(key: str) -> Callable[[Tensors], object]:
    return lambda tensors: tensors.pop(key)


def with_(**arrays: np.ndarray[Any, Any]) -> Callable[[Tensors], object]:
    return lambda tensors: tensors.update({k.replace("__", "."): v for k, v in arrays.items()})


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        (without("mlp.up.scales"), UsageError, "no scales for this layer"),
        (without("head.weight"), UsageError, "no value for a parameter"),
        (without("mlp.up.bias"), UsageError, "no value for a parameter"),
        (with_(head__bias=np.zeros(6, np.float16)), ShapeError, r"\(6,\)"),
        (with_(extra=np.zeros(6, np.float16)), UsageError, "'extra' is nothing in the model"),
        (with_(mlp__gate__qweight=np.zeros((8, 32), np.int32)), UsageError, "no such layer"),
        (with_(norm__qweight=np.zeros((8, 32), np.int32)), UsageError, "a LayerNorm there"),
        (with_(mlp__up__g_idx=np.arange(64, dtype=np.int32)), UnsupportedError, "act-order"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, change: Callable[[Tensors], object], kind: type[Error], what: str
) -> None:
    written = Written(tmp_path)
    change(written.tensors)
    with pytest.raises(kind, match=what) as caught:
        from_checkpoint(written.save(GPTQ), Net())
    assert caught.value.place.file == str(tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        {"quant_method": "awq", "version": "gemv"},
        {"quant_method": "gptq", "checkpoint_format": "marlin"},
        {"quant_method": "bitsandbytes"},
    ],
)
def test_other_formats_are_refused(tmp_path: Path, config: dict[str, object]) -> None:
    path = Written(tmp_path).save(config)
    with pytest.raises(UnsupportedError):
        from_checkpoint(path, Net())


def test_a_folder_must_say_how_it_is_quantized(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing says"):
        from_checkpoint(tmp_path, Net())
    (tmp_path / "quantize_config.json").write_text("[1")
    with pytest.raises(UsageError, match="cannot read"):
        from_checkpoint(tmp_path, Net())
    (tmp_path / "quantize_config.json").write_text(json.dumps(GPTQ))
    with pytest.raises(UsageError, match=r"no \.safetensors"):
        from_checkpoint(tmp_path, Net())
    save_file({"head.bias": np.zeros(5, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match="no layer"):
        from_checkpoint(tmp_path, Net())
