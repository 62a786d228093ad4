# pyright: basic
"""Every zoo model, quantized: PyTorch, the mico program and the lowered program agree.

PyTorch computes the layers in integers (`set_exact`), the interpreter runs the program as it was
quantized, and again after lowering to linalg. A float op between two layers that differs in its last
bit can change one integer of the next layer by a step, and with it all that follows; so networks
can only be compared where float ops round alike. PyTorch is therefore asked for correctly rounded
ones (computed in float64), as the interpreter's are, and the lowering is compared twice: with its
float ops in f64, where everything must agree, and with those in f32 that targets use, where layers
must agree to the bit on the inputs that they had (`layerwise`).
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from fewbit.dialects.mico import GetConstantOp
from fewbit.frontends import import_model
from fewbit.interpreter import evaluate_op
from fewbit.interpreter.mico.constants import constant_value
from fewbit.ir.context import make_context
from fewbit.ir.layers import layers
from fewbit.ir.verify import verify
from fewbit.models import create, zoo
from fewbit.passes.pipelines import LOWER_MICO, LOWER_MICO_PRECISELY
from fewbit.program.program import Program
from fewbit.quant import prepare_qat, quantizable_layers, set_exact
from fewbit.quant.quantize import quantize
from tests.e2e.layerwise import assert_layers_agree

QUICK = ("mlp", "lenet", "ds-cnn", "llama-tiny")
MIXED = ("w8a8", "w6a8", "w4a8", "w3a6", "w1.58a8")
EXTENT = {"resnet18": 32, "mobilenet-v2": 32, "squeezenet": 48}


def models() -> list:
    """All but those that are a model of the list, only larger."""
    names = [name for name in zoo() if not name.startswith("llama-15m")]
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def mixed(model: torch.nn.Module) -> dict[str, object]:
    names = list(quantizable_layers(model))
    return {"version": 1, "layers": {n: MIXED[i % len(MIXED)] for i, n in enumerate(names)}}


class RoundedFloats(TorchFunctionMode):
    """Float functions computed in float64 and rounded once."""

    NAMES = (
        "layer_norm", "rms_norm", "batch_norm", "softmax", "gelu", "silu", "mean",
        "scaled_dot_product_attention", "avg_pool2d", "adaptive_avg_pool2d", "avg_pool1d",
        "adaptive_avg_pool1d", "matmul", "__matmul__", "bmm", "cos", "sin", "rsqrt",
    )  # fmt: skip

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ not in self.NAMES:
            return func(*args, **(kwargs or {}))
        wide = tree_map_only(torch.Tensor, widened, (args, kwargs or {}))
        result = func(*wide[0], **wide[1])
        return result.float() if result.dtype is torch.float64 else result


def widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.dtype is torch.float32 else tensor


def lowered(program: Program, pipeline: tuple[str, ...]) -> Program:
    module = program.module.clone()
    for spec in pipeline:
        passes = PassPipeline.parse_spec(Universe.get_multiverse().all_passes, spec)
        passes.apply(make_context(), module)
    verify(module, stage="lowering")
    return Program(module, program.store)


def relative(given: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(given - expected) / np.linalg.norm(expected))


def layer_errors(quantized: Program, exact: torch.nn.Module, x: tuple) -> list[float]:
    """Each layer of the program on the input that PyTorch's layer had, against its output."""
    seen: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def watch(name: str, module: torch.nn.Module):
        def note(_: object, args: tuple, output: torch.Tensor) -> None:
            seen.setdefault(name, (args[0].numpy(), output.numpy()))

        return module.register_forward_hook(note)

    hooks = [watch(name, module) for name, module in quantizable_layers(exact).items()]
    with torch.no_grad():
        exact(*x)
    for hook in hooks:
        hook.remove()
    errors = []
    for name, ops in layers(quantized.module).items():
        given, expected = seen[name]
        reads = [cast(GetConstantOp, value.owner) for value in ops[0].operands[1:]]
        others = [constant_value(read.constant, quantized.store) for read in reads]
        errors.append(relative(evaluate_op(ops[0], [given, *others])[0], expected))
    return errors


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", models())
def test_agreement(name: str) -> None:
    entry, model = zoo()[name], create(name)
    extent = {"extent": EXTENT[name]} if name in EXTENT else {}
    program = import_model(model, entry.example_inputs(2, **extent), entry.dynamic_shapes)
    x = entry.example_inputs(3, seed=7, **extent)
    arrays = [tensor.numpy() for tensor in x]
    with torch.no_grad():
        float_output = model(*x).numpy()
    assert relative(program.run(*arrays)[0], float_output) < 1e-5
    for recipe in ("w8a8", "w4a8", mixed(model)):
        exact = set_exact(prepare_qat(model, recipe))
        with torch.no_grad(), RoundedFloats():
            expected = exact(*x).numpy()
        quantized = quantize(program, recipe)
        assert max(layer_errors(quantized, exact, x)) < 1e-5
        (given,) = quantized.run(*arrays)
        (precise,) = lowered(quantized, LOWER_MICO_PRECISELY).run(*arrays)
        errors = [relative(y, given) for y in (expected, precise)]
        print(name, str(recipe)[:6], *(f"{error:.1e}" for error in errors))
        assert max(errors) < 1e-5, (recipe, errors)
        assert_layers_agree(quantized, arrays, lambda p: lowered(p, LOWER_MICO).run(*arrays))
