# pyright: basic
"""Every zoo model, quantized: PyTorch, the mico program and the lowered program agree.

PyTorch computes the layers in integers (`set_exact`), the interpreter runs the program as it was
quantized, and again after lowering to linalg. A float op between two layers that differs in its last
bit can change one integer of the next layer by a step, and with it all that follows; so networks
can only be compared where float ops round alike. PyTorch's functions between layers are therefore
replaced by those of numerics (`SameFloats`), which other tests compare with PyTorch's own one by
one; the lowering, and what targets compute, must agree as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, cast

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
from fewbit.numerics import floats
from fewbit.numerics.approximations import circular, evaluate, powers
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.passes.pipelines import LOWER_MICO
from fewbit.program.program import Program
from fewbit.quant import prepare_qat, quantizable_layers, set_exact
from fewbit.quant.quantize import quantize
from tests.e2e.own_error import assert_rounds_alike

QUICK = ("mlp", "lenet", "ds-cnn", "llama-tiny")
MIXED = ("w8a8", "w6a8", "w4a8", "w3a6", "w1.58a8")
GELU: dict[str, Activation] = {"none": "gelu", "tanh": "gelu_tanh"}
EXTENT = {"resnet18": 32, "mobilenet-v2": 32, "squeezenet": 48}


def models() -> list:
    """All but those that are a model of the list, only larger."""
    names = [name for name in zoo() if not name.startswith("llama-15m")]
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def mixed(model: torch.nn.Module) -> dict[str, object]:
    names = list(quantizable_layers(model))
    return {"version": 1, "layers": {n: MIXED[i % len(MIXED)] for i, n in enumerate(names)}}


def axes_of(shape) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def batch_norm(x, mean, variance, weight, bias, training=False, momentum=0.1, eps=1e-5):
    channels = (1, -1, *(1,) * (x.ndim - 2))
    weight, bias, mean, variance = (p.reshape(channels) for p in (weight, bias, mean, variance))
    return floats.batch_norm(x, weight, bias, mean, variance, eps)


def layer_norm(x, normalized_shape, weight, bias=None, eps=1e-5):
    return floats.layer_norm(x, axes_of(normalized_shape), weight, bias, eps)


def rms_norm(x, normalized_shape, weight=None, eps=1e-5):
    return floats.rms_norm(x, axes_of(normalized_shape), weight, eps)


def attention(query, key, value, attn_mask=None, is_causal=False, scale=None):
    repeat = query.shape[-3] // key.shape[-3] if query.ndim > 3 else 1
    key, value = (np.repeat(each, repeat, axis=-3) for each in (key, value))
    factor = np.float32(query.shape[-1] ** -0.5 if scale is None else scale)
    scores = floats.multiply_matrices(query, np.swapaxes(key, -1, -2)) * factor
    if is_causal:
        attn_mask = np.tri(*scores.shape[-2:], dtype=bool)
    if attn_mask is not None and attn_mask.dtype == np.bool_:
        scores = np.where(attn_mask, scores, np.float32(-np.inf))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return floats.multiply_matrices(floats.softmax(scores, -1), value)


class SameFloats(TorchFunctionMode):
    """Float functions by numerics; means and matmuls in float64, rounded once."""

    WIDE = (
        "mean", "avg_pool2d", "adaptive_avg_pool2d", "avg_pool1d",
        "adaptive_avg_pool1d", "matmul", "__matmul__", "bmm",
    )  # fmt: skip
    OURS: ClassVar[dict[str, Callable]] = {
        "batch_norm": batch_norm,
        "layer_norm": layer_norm,
        "rms_norm": rms_norm,
        "scaled_dot_product_attention": attention,
        "softmax": lambda x, dim: floats.softmax(x, dim),
        "gelu": lambda x, approximate="none": evaluate(ACTIVATIONS[GELU[approximate]], x),
        "silu": lambda x, inplace=False: evaluate(ACTIVATIONS["silu"], x),
        "cos": lambda x: evaluate(circular.cos, x),
        "sin": lambda x: evaluate(circular.sin, x),
        "rsqrt": lambda x: evaluate(powers.rsqrt, x),
    }

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        ours = self.OURS.get(func.__name__)
        if ours is not None:
            plain = tree_map_only(torch.Tensor, lambda t: t.numpy(), (args, kwargs))
            known = {k: v for k, v in plain[1].items() if k not in ("_stacklevel", "dtype")}
            return torch.from_numpy(np.ascontiguousarray(ours(*plain[0], **known)))
        if func.__name__ not in self.WIDE:
            return func(*args, **kwargs)
        wide = tree_map_only(torch.Tensor, widen, (args, kwargs))
        result = func(*wide[0], **wide[1])
        return result.float() if result.dtype is torch.float64 else result


def widen(tensor: torch.Tensor) -> torch.Tensor:
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
    assert_rounds_alike(name, arrays, program.run(*arrays)[0], float_output)
    for recipe in ("w8a8", "w4a8", mixed(model)):
        exact = set_exact(prepare_qat(model, recipe))
        with torch.no_grad(), SameFloats():
            expected = exact(*x).numpy()
        quantized = quantize(program, recipe)
        assert max(layer_errors(quantized, exact, x)) < 1e-5
        (given,) = quantized.run(*arrays)
        (lower,) = lowered(quantized, LOWER_MICO).run(*arrays)
        errors = [relative(y, given) for y in (expected, lower)]
        print(name, str(recipe)[:6], *(f"{error:.1e}" for error in errors))
        assert max(errors) < 1e-5, (recipe, errors)
