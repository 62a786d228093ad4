"""Models that torchao has quantized, as torchao leaves them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torchao.prototype.awq import AWQConfig
from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
from torchao.quantization import (
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    MappingType,
    quantize_,
)
from torchao.quantization.granularity import Granularity, PerAxis, PerGroup, PerTensor
from torchao.utils import TorchAOBaseTensor

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import UnsupportedError, UsageError, WidthError
from fewbit.numerics import pack
from fewbit.quant.imported import Imported, from_torchao
from fewbit.quant.imported.plain import ScaledLinear

X = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))


def integer(bits: int) -> torch.dtype:
    return getattr(torch, f"int{bits}")


def net() -> nn.Sequential:
    manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10, bias=False)).eval()


def check(model: nn.Sequential, imported: Imported, recipe: str) -> None:
    """The plain model and the program have torchao's integers, and compute what it computes."""
    program = fewbit.quantize(imported.model, recipe, weights=imported.weights, example_inputs=(X,))
    for name in ("0", "2"):
        tensor: Any = model.get_submodule(name).weight
        width = imported.weights[name].width
        assert program.store[f"{name}.weight"].tobytes() == pack(tensor.qdata, width).tobytes()
        scale = program.store[f"{name}.weight.scale"]
        np.testing.assert_array_equal(scale.ravel(), tensor.scale.float().numpy().ravel())
        np.testing.assert_array_equal(
            imported.weights[name].dequantize(), tensor.dequantize().numpy()
        )
    with torch.no_grad():
        expected = model(X).numpy()
        plain = imported.model(X).numpy()
    np.testing.assert_allclose(plain, expected, rtol=1e-4, atol=1e-5)
    (y,) = program.run(X.numpy())
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("granularity", [PerAxis(0), PerGroup(16)])
@pytest.mark.parametrize("mapping", [MappingType.SYMMETRIC, MappingType.ASYMMETRIC])
def test_intx(bits: int, granularity: Granularity, mapping: MappingType) -> None:
    model = net()
    config = IntxWeightOnlyConfig(
        weight_dtype=integer(bits), granularity=granularity, mapping_type=mapping
    )
    quantize_(model, config)
    words = "" if mapping is MappingType.SYMMETRIC else "-asym"
    group = "g16" if isinstance(granularity, PerGroup) else ""
    check(model, from_torchao(model), f"w{bits}afp{group}{words}")


def test_scales_that_torchao_searched_for() -> None:
    model = net()
    config = IntxWeightOnlyConfig(
        weight_dtype=integer(3),
        granularity=PerGroup(16),
        intx_choose_qparams_algorithm="hqq_scale_only",
    )
    quantize_(model, config)
    check(model, from_torchao(model), "w3afpg16")


def test_eight_bits() -> None:
    model = net()
    quantize_(model, Int8WeightOnlyConfig())
    check(model, from_torchao(model), "w8afp")


def test_one_scale() -> None:
    model = net()
    quantize_(model, Int8WeightOnlyConfig(granularity=PerTensor()))
    check(model, from_torchao(model), "w8afp-tensor")


def test_awq_keeps_its_factor_for_the_input() -> None:
    model = net()
    config = Int8WeightOnlyConfig()
    quantize_(model, AWQConfig(config, step="prepare"))
    scaled = X * torch.linspace(0.1, 20, 64)
    model(scaled)
    quantize_(model, AWQConfig(config, step="convert"))
    weight: Any = model[0].weight
    factor = weight.act_pre_scale
    assert not torch.equal(factor, torch.ones_like(factor))
    imported = from_torchao(model)
    layer = imported.model.get_submodule("0")
    assert isinstance(layer, ScaledLinear)
    assert torch.equal(layer.input_scale, factor)
    check(model, imported, "w8afp")


def test_the_copy_is_plain_and_the_model_is_as_it_was() -> None:
    model = net()
    quantize_(model, IntxWeightOnlyConfig(weight_dtype=integer(4), granularity=PerGroup(16)))
    plain = from_torchao(model).model
    assert not any(isinstance(p, TorchAOBaseTensor) for p in plain.parameters())
    assert "Intx" not in repr(plain)
    assert isinstance(model[0].weight, TorchAOBaseTensor)


def test_one_bit_of_minus_one_and_zero_is_refused() -> None:
    model = net()
    quantize_(model, IntxWeightOnlyConfig(weight_dtype=integer(1), granularity=PerGroup(16)))
    with pytest.raises(WidthError):
        from_torchao(model)


def test_a_model_without_such_tensors_is_refused() -> None:
    with pytest.raises(UsageError, match="no layer"):
        from_torchao(net())


def test_packed_tensors_are_refused() -> None:
    model = nn.Sequential(nn.Linear(64, 32)).bfloat16()
    quantize_(model, PrototypeInt4WeightOnlyConfig(group_size=32))
    with pytest.raises(UnsupportedError, match="Int4OpaqueTensor") as caught:
        from_torchao(model)
    assert caught.value.place.layer == "0"
