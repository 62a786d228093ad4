"""Checkpoints that AutoGPTQ, GPTQModel and AutoAWQ write: safetensors, with packed weights.

A quantized layer `x` has `x.qweight`, `x.qzeros`, `x.scales` and, from GPTQ, `x.g_idx`; all other
tensors are the model's own. They are loaded into a copy of a float model of the same structure,
and every parameter must be found. Files of the pickle kind are not read.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import Tensor, nn

from fewbit.base.files import PathLike
from fewbit.base.typed_torch import from_numpy, named_modules
from fewbit.errors import Error, Place, ShapeError, UnsupportedError, UsageError
from fewbit.numerics import Quantized
from fewbit.program.tensor_file import TensorFile
from fewbit.quant.imported.packed_words import PackedLayer, read_awq, read_gptq
from fewbit.quant.imported.plain import Imported, need_weights, set_weight

_PACKED = ("qweight", "qzeros", "scales", "g_idx")
_CONFIGS = ("quantize_config.json", "quant_config.json", "config.json")
_STORED_ZERO = {"gptq": 1, "gptq_v2": 0}

Reader = Callable[[PackedLayer, int], Quantized]
"""Unpacks the weight of a layer with that many inputs."""


def from_checkpoint(
    path: PathLike, model: nn.Module, config: Mapping[str, Any] | None = None
) -> Imported:
    """A copy of a float model with a checkpoint's values, and the checkpoint's quantized weights.

    `path` is a folder, or a .safetensors file. `config` is the quantization's configuration; where
    it is not given it is read from the folder.
    """
    path = Path(path)
    try:
        read = _reader(_read_config(path) if config is None else config)
        tensors = _read_tensors(path)
        return _load(tensors, deepcopy(model).float(), read)
    except Error as error:
        raise error.at(file=str(path)) from None


def _reader(config: Mapping[str, Any]) -> Reader:
    """The reader of layers for what a configuration says."""
    method = str(config.get("quant_method", "gptq" if "desc_act" in config else "awq")).lower()
    if method == "awq":
        layout = str(config.get("version", "gemm")).lower()
        if layout != "gemm":
            raise UnsupportedError(f"the AWQ layout '{layout}' is not read", hint="use 'gemm'")
        return read_awq
    layout = str(config.get("checkpoint_format") or "gptq").lower()
    if method != "gptq" or layout not in _STORED_ZERO:
        raise UnsupportedError(
            f"checkpoints of '{method}' in the format '{layout}' are not read",
            hint="there are gptq (formats 'gptq' and 'gptq_v2') and awq",
        )
    return functools.partial(read_gptq, stored_zero=_STORED_ZERO[layout])


def _read_config(path: Path) -> Mapping[str, Any]:
    folder = path if path.is_dir() else path.parent
    for name in _CONFIGS:
        if not (folder / name).is_file():
            continue
        data = _read_json(folder / name)
        config: object = data.get("quantization_config") if name == "config.json" else data
        if isinstance(config, dict):
            return cast("dict[str, Any]", config)
    raise UsageError(
        "nothing says how the checkpoint is quantized",
        hint=f"it is written in {' or '.join(_CONFIGS)}; or pass config={{'quant_method': 'gptq'}}",
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path.name}: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"{path.name} holds no JSON object")
    return cast("dict[str, Any]", data)


def _read_tensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    files = [path]
    if path.is_dir():
        index = path / "model.safetensors.index.json"
        if index.is_file():
            files = [path / name for name in _shards(index)]
        else:
            files = sorted(path.glob("*.safetensors"))
    if not files:
        raise UsageError("the folder has no .safetensors file", hint="pickle files are not read")
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    for file in map(TensorFile.open, files):
        for key in file.spans:
            if key in tensors:
                raise UsageError(f"the tensor '{key}' is in two files")
            tensors[key] = file.array(key)
    return tensors


def _shards(index: Path) -> list[str]:
    shards: object = _read_json(index).get("weight_map")
    names = cast("dict[str, object]", shards).values() if isinstance(shards, dict) else [None]
    files: set[str] = set()
    for name in names:
        if not isinstance(name, str) or Path(name).name != name:
            raise UsageError(f"{index.name} does not list files of its folder")
        files.add(name)
    return sorted(files)


def _load(tensors: Mapping[str, np.ndarray[Any, Any]], model: nn.Module, read: Reader) -> Imported:
    plain = dict(tensors)
    weights: dict[str, Quantized] = {}
    modules = dict(named_modules(model))
    for key in tensors:
        name, dot, last = key.rpartition(".")
        if not dot or last != "qweight":
            continue
        packed = {part: plain.pop(f"{name}.{part}", None) for part in _PACKED}
        try:
            weights[name] = _layer(packed, modules.get(name), read)
        except Error as error:
            raise error.at(layer=name) from None
        set_weight(modules[name], weights[name])
    need_weights(weights, "GPTQ or AWQ")
    _load_plain(model, {key: _tensor(array) for key, array in plain.items()}, weights)
    return Imported(model, weights)


def _layer(packed: dict[str, Any], module: nn.Module | None, read: Reader) -> Quantized:
    if not isinstance(module, nn.Linear):
        what = "no such layer" if module is None else f"a {type(module).__name__} there"
        raise UsageError(
            f"the checkpoint has a quantized Linear, and the model has {what}",
            hint="make the model that was quantized, with the same module names",
        )
    absent = [part for part in _PACKED[:3] if packed[part] is None]
    if absent:
        raise UsageError(f"the checkpoint has no {' and no '.join(absent)} for this layer")
    weight = read(PackedLayer(**packed), module.in_features)
    if weight.shape != tuple(module.weight.shape):
        raise ShapeError(
            f"the checkpoint's weight has shape {weight.shape}, the model's "
            f"{tuple(module.weight.shape)}"
        )
    return weight


def _load_plain(
    model: nn.Module, tensors: dict[str, Tensor], weights: Mapping[str, Quantized]
) -> None:
    own = model.state_dict()
    for key, tensor in tensors.items():
        if key not in own and _is_no_bias(key, tensor, weights):
            continue
        if key not in own:
            raise UsageError(f"the checkpoint's '{key}' is nothing in the model")
        if own[key].shape != tensor.shape:
            raise ShapeError(
                f"the checkpoint's '{key}' has shape {tuple(tensor.shape)}, the model's "
                f"{tuple(own[key].shape)}"
            )
    model.load_state_dict(tensors, strict=False)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    names = {*tensors, *(f"{name}.weight" for name in weights)}
    loaded = {id(parameter) for name, parameter in parameters.items() if name in names}
    for name, parameter in parameters.items():
        if id(parameter) not in loaded:
            raise UsageError(
                "the checkpoint has no value for a parameter of the model",
                place=Place(layer=name),
            )


def _is_no_bias(key: str, tensor: Tensor, weights: Mapping[str, Quantized]) -> bool:
    """AutoGPTQ writes zeros for the bias that a layer does not have."""
    return key.removesuffix(".bias") in weights and not tensor.any()


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    if array.dtype.kind in "iub":
        return from_numpy(array.copy())
    return from_numpy(array.astype(np.float32))
