"""GPTQ by brevitas on a CPU: what it found reaches the program, and is better than rounding."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import brevitas.nn as qnn
import numpy as np
import pytest
import torch
from brevitas.core.zero_point import ParameterFromStatsFromParameterZeroPoint
from brevitas.graph.gptq import gptq_mode
from brevitas.inject.enum import ScalingImplType, ScalingPerOutputType
from brevitas.proxy.groupwise_int_parameter_quant import GroupwiseWeightQuantProxyFromInjector
from brevitas.quant.scaled_int import Int8ActPerTensorFloat, Int8WeightPerChannelFloat
from brevitas.quant.shifted_scaled_int import ShiftedUint8WeightPerChannelFloat
from torch import nn

import fewbit
from fewbit.base.typed_torch import from_numpy, named_modules
from fewbit.data import mnist
from fewbit.errors import UnsupportedError, UsageError
from fewbit.models import create
from fewbit.models.training import train
from fewbit.numerics import pack
from fewbit.quant.imported import from_brevitas

GROUP = 4


# Scales and zero points are fixed before GPTQ starts. Brevitas would otherwise take them from the
# weight again while GPTQ changes it, which undoes its work.
class Channel(Int8WeightPerChannelFloat):
    scaling_impl_type = ScalingImplType.PARAMETER_FROM_STATS


class Grouped(Channel):
    proxy_class = GroupwiseWeightQuantProxyFromInjector
    scaling_per_output_type = ScalingPerOutputType.GROUP
    group_size = GROUP


class Shifted(ShiftedUint8WeightPerChannelFloat):
    scaling_impl_type = ScalingImplType.PARAMETER_FROM_STATS
    zero_point_impl = ParameterFromStatsFromParameterZeroPoint


class ShiftedGroups(Shifted):
    proxy_class = GroupwiseWeightQuantProxyFromInjector
    scaling_per_output_type = ScalingPerOutputType.GROUP
    group_size = GROUP


def brevitas_model(model: nn.Module, bits: int, linear: type, conv: type = Channel) -> nn.Module:
    made = deepcopy(model)
    for name, layer in list(named_modules(made)):
        if isinstance(layer, nn.Linear):
            quantized = qnn.QuantLinear(
                layer.in_features,
                layer.out_features,
                "bias" in layer.state_dict(),
                weight_quant=linear,
                weight_bit_width=bits,
            )
        elif isinstance(layer, nn.Conv2d):
            quantized = qnn.QuantConv2d(
                layer.in_channels,
                layer.out_channels,
                layer.kernel_size,
                weight_quant=conv,
                weight_bit_width=bits,
            )
        else:
            continue
        quantized.load_state_dict(layer.state_dict(), strict=False)
        made.set_submodule(name, quantized)
    return made.eval()


@torch.no_grad()
def run_gptq(model: nn.Module, x: torch.Tensor) -> None:
    model(x)
    with gptq_mode(model, use_quant_activations=False) as gptq:
        for _ in range(gptq.num_layers):
            gptq.model(x)
            gptq.update()


@pytest.fixture(scope="module")
def lenet() -> nn.Module:
    digits = mnist()
    model = create("lenet")
    train(model, digits.train_x, digits.train_y, epochs=3, progress=None)
    return model


@pytest.mark.parametrize(
    ("bits", "kind", "words", "better"),
    [
        (2, Channel, "", True),
        (3, Grouped, f"g{GROUP}", True),
        (4, Grouped, f"g{GROUP}", True),
        (3, Shifted, "-asym", True),
        # Taken exactly too; but whether GPTQ gains here depends on the model (imported-weights.md).
        (4, ShiftedGroups, f"g{GROUP}-asym", False),
    ],
)
@torch.no_grad()
def test_gptq_on_digits(lenet: nn.Module, bits: int, kind: type, words: str, better: bool) -> None:
    digits = mnist()
    x = from_numpy(digits.test_x[:200])
    conv = Shifted if "asym" in words else Channel
    model = brevitas_model(lenet, bits, kind, conv)
    run_gptq(model, from_numpy(digits.train_x[:256]))
    imported = from_brevitas(model)

    convs = f"w{bits}afp{words.removeprefix(f'g{GROUP}')}"
    recipe = f"w{bits}afp{words},conv1={convs},conv2={convs}"
    program = fewbit.quantize(imported.model, recipe, weights=imported.weights, example_inputs=(x,))
    for name, weight in imported.weights.items():
        layer: Any = model.get_submodule(name)
        tensor = layer.quant_weight()
        integers = tensor.int().numpy().astype(np.int16) - (0 if tensor.signed else 2 ** (bits - 1))
        packed = pack(integers.reshape(len(integers), -1).astype(np.int8), bits)
        assert program.store[f"{name}.weight"].tobytes() == packed.tobytes()
        np.testing.assert_allclose(weight.dequantize(), tensor.value.numpy(), rtol=1e-6, atol=1e-7)

    (mine,) = program.run(x.numpy())
    np.testing.assert_allclose(mine, model(x).numpy(), rtol=1e-4, atol=1e-4)
    if not better:
        return
    (rounded,) = fewbit.quantize(lenet, recipe, example_inputs=(x,)).run(x.numpy())
    exact = lenet(x).numpy()
    assert np.square(mine - exact).mean() < np.square(rounded - exact).mean()


def net(input_quant: type | None = None) -> nn.Sequential:
    linear = qnn.QuantLinear(
        8, 4, True, weight_quant=Channel, weight_bit_width=4, input_quant=input_quant
    )
    return nn.Sequential(linear, nn.ReLU())


def test_the_copy_is_plain_and_the_model_is_as_it_was() -> None:
    model = net()
    imported = from_brevitas(model)
    assert type(imported.model.get_submodule("0")) is nn.Linear
    assert type(model[0]) is qnn.QuantLinear
    assert model.training


def test_layers_that_quantize_their_input_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="input_quant") as caught:
        from_brevitas(net(input_quant=Int8ActPerTensorFloat))
    assert caught.value.place.layer == "0"


def test_other_modules_of_brevitas_are_refused() -> None:
    model = nn.Sequential(net(), qnn.QuantReLU())
    with pytest.raises(UnsupportedError, match="QuantReLU") as caught:
        from_brevitas(model)
    assert caught.value.place.layer == "1"


def test_groups_inside_a_kernel_are_refused() -> None:
    model = nn.Sequential(qnn.QuantConv2d(8, 4, 3, weight_quant=Grouped, weight_bit_width=4))
    with pytest.raises(UnsupportedError, match="groups"):
        from_brevitas(model)


def test_a_model_without_such_layers_is_refused() -> None:
    with pytest.raises(UsageError, match="no layer"):
        from_brevitas(nn.Sequential(nn.Linear(2, 2)))
