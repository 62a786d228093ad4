# pyright: basic
"""Every zoo model, quantized: PyTorch, the mico program and the lowered program agree.

PyTorch computes the layers in integers (`set_exact`), the interpreter runs the program as it was
quantized, and again after lowering to linalg. Each layer agrees within 1e-5 on the same inputs. Whole
networks do too, unless float ops between the layers (batch norm, layer norm, softmax, means) differ in
their last bit just where the next layer rounds: then one integer differs by one step, and all that
follows. Such differences must stay far below the noise of the quantization itself.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
import torch
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from fewbit.dialects.mico import GetConstantOp
from fewbit.frontends import import_model
from fewbit.interpreter import evaluate_op
from fewbit.interpreter.mico.constants import constant_value
from fewbit.ir.context import make_context
from fewbit.ir.verify import verify
from fewbit.models import create, zoo
from fewbit.program import Program
from fewbit.quant import prepare_qat, quantizable_layers, set_exact
from fewbit.quant.quantize import layers, quantize
from fewbit.transforms.pipelines import LOWER_MICO

QUICK = ("mlp", "lenet", "ds-cnn", "llama-tiny")
MIXED = ("w8a8", "w6a8", "w4a8", "w3a6", "w1.58a8")
ROUNDS_BETWEEN_LAYERS = ("resnet8", "resnet18", "mobilenet-v2", "kwt", "vit-tiny", "cct")
EXTENT = {"resnet18": 32, "mobilenet-v2": 32, "squeezenet": 48}


def models() -> list:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in zoo()]


def mixed(model: torch.nn.Module) -> dict[str, object]:
    names = list(quantizable_layers(model))
    return {"version": 1, "layers": {n: MIXED[i % len(MIXED)] for i, n in enumerate(names)}}


def lowered(program: Program) -> Program:
    module = program.module.clone()
    for spec in LOWER_MICO:
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
    for name, ops in layers(quantized).items():
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
        with torch.no_grad():
            expected = exact(*x).numpy()
        quantized = quantize(program, recipe)
        assert max(layer_errors(quantized, exact, x)) < 1e-5
        (given,) = quantized.run(*arrays)
        (after,) = lowered(quantized).run(*arrays)
        errors = relative(given, expected), relative(after, given)
        print(name, str(recipe)[:6], *(f"{error:.1e}" for error in errors))
        if name in ROUNDS_BETWEEN_LAYERS:
            assert max(errors) < relative(expected, float_output) / 2, (recipe, errors)
        else:
            assert max(errors) < 1e-5, (recipe, errors)
