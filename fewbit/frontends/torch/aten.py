"""The table of ATen ops that have an op of ours.

A converter gets the arguments by name, defaults filled in, and gives the results; None where this
case is not ours after all (an integer `add`, a `layer_norm` without weight), which leaves the node
to torch-mlir.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import torch
from torch._ops import OpOverload
from torch.fx import Node
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import SSAValue

from fewbit.decompositions.sizes import is_static
from fewbit.dialects import mico
from fewbit.frontends.torch.types import element_type, tensor_type
from fewbit.passes.linalg.building.loops import apply
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    as_type,
    collapse,
    expand,
    larger_size,
    size_product,
    size_quotient,
    sizes_of,
)

if TYPE_CHECKING:
    from fewbit.frontends.torch.emit import Emitter

Arguments = dict[str, Any]
Converter = Callable[["Emitter", Node, Arguments], "Sequence[SSAValue] | None"]

CONVERTERS: dict[str, Converter] = {}
ATEN = "aten::"


def converts(*names: str) -> Callable[[Converter], Converter]:
    def add(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = converter
        return converter

    return add


def convert(emitter: Emitter, node: Node) -> Sequence[SSAValue] | None:
    """The node as ops of ours; None where there are none."""
    if not isinstance(node.target, OpOverload):
        return None
    converter = CONVERTERS.get(name_of(node))
    return None if converter is None else converter(emitter, node, arguments_of(node))


CHECKS = (
    "_assert_tensor_metadata",
    "_assert_async",
    "_assert_scalar",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
)


def is_check(node: Node) -> bool:
    """Return whether a node only checks what export assumed."""
    return isinstance(node.target, OpOverload) and name_of(node) in CHECKS


def _schema(node: Node) -> Any:
    return cast(Any, node.target)._schema


def name_of(node: Node) -> str:
    """The op's name without namespace and overload: `add` of `aten::add.Tensor`."""
    return _schema(node).name.removeprefix(ATEN)


def arguments_of(node: Node) -> Arguments:
    schema = _schema(node).arguments
    given = dict(zip((a.name for a in schema), node.args, strict=False)) | node.kwargs
    return {a.name: given.get(a.name, a.default_value) for a in schema}


def shape_of(node: Node) -> tuple[Any, ...]:
    return tuple(node.meta["val"].shape)


def is_float(*nodes: Any) -> bool:
    return all(
        isinstance(node, Node)
        and isinstance(node.meta["val"], torch.Tensor)
        and node.meta["val"].is_floating_point()
        for node in nodes
    )


def layer(emitter: Emitter, op: type[mico.LayerOp], node: Node, *inputs: Any, **attributes: Any):
    """An op on the values of nodes (None where absent), with the type that the trace found."""
    operands = [None if value is None else emitter.value(value) for value in inputs]
    named = {
        name: emitter.value(value) if isinstance(value, Node) else value
        for name, value in attributes.items()
    }
    value = node.meta["val"]
    first = cast("Sequence[Any]", value)[0] if isinstance(value, list | tuple) else value
    result = op.of(*operands, result_types=[tensor_type(first)], **named)
    return emitter.add(result).results


def is_layer_float(node: Any) -> bool:
    """Layers compute in float32; those of float64 are left to torch-mlir."""
    return is_float(node) and node.meta["val"].dtype != torch.float64


@converts("linear")
def linear(emitter: Emitter, node: Node, a: Arguments):
    if len(shape_of(a["weight"])) != 2 or not is_layer_float(a["input"]):
        return None
    return layer(emitter, mico.BitLinearOp, node, a["input"], a["weight"], a["bias"])


def _pair(value: Any, rank: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


def _convolution(emitter: Emitter, node: Node, a: Arguments, padding: list[int]):
    rank = len(shape_of(a["weight"])) - 2
    if rank not in (1, 2) or not is_layer_float(a["input"]):
        return None
    return layer(
        emitter,
        mico.BitConv2dOp if rank == 2 else mico.BitConv1dOp,
        node,
        a["input"],
        a["weight"],
        a["bias"],
        stride=_pair(a["stride"], rank),
        padding=padding,
        dilation=_pair(a["dilation"], rank),
        groups=a["groups"],
    )


@converts("conv1d", "conv2d", "convolution")
def convolution(emitter: Emitter, node: Node, a: Arguments):
    if a.get("transposed"):
        return None
    rank = len(shape_of(a["weight"])) - 2
    if isinstance(a["padding"], str):
        return _convolution(emitter, node, a, _named_padding(a, rank))
    return _convolution(emitter, node, a, [p for p in _pair(a["padding"], rank) for _ in range(2)])


def _named_padding(a: Arguments, rank: int) -> list[int]:
    """ "same" puts the odd one behind; "valid" is none."""
    if a["padding"] == "valid":
        return [0] * (2 * rank)
    kernel, dilation = shape_of(a["weight"])[2:], _pair(a["dilation"], rank)
    totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return [side for total in totals for side in (total // 2, total - total // 2)]


@converts("embedding")
def embedding(emitter: Emitter, node: Node, a: Arguments):
    return layer(emitter, mico.EmbeddingOp, node, a["indices"], a["weight"])


@converts("scaled_dot_product_attention")
def attention(emitter: Emitter, node: Node, a: Arguments):
    if a["dropout_p"] or not is_float(a["query"]):
        return None
    if len(shape_of(a["query"])) != len(shape_of(a["key"])):
        return None
    scale = {} if a["scale"] is None else {"scale": float(a["scale"])}
    mask = {} if a["attn_mask"] is None else {"mask": a["attn_mask"]}
    inputs = (a["query"], a["key"], a["value"])
    return layer(emitter, mico.AttentionOp, node, *inputs, causal=a["is_causal"], **scale, **mask)


ELEMENTWISE: dict[str, type[mico.LayerOp]] = {"relu": mico.ReluOp, "silu": mico.SiluOp}
"""Functions of each element that have an op of ours, without arguments of their own."""


@converts(*ELEMENTWISE)
def elementwise(emitter: Emitter, node: Node, a: Arguments):
    if not is_float(a["self"]):
        return None
    return layer(emitter, ELEMENTWISE[name_of(node)], node, a["self"])


@converts("relu6", "hardtanh")
def relu6(emitter: Emitter, node: Node, a: Arguments):
    if (a.get("min_val", 0), a.get("max_val", 6)) != (0, 6) or not is_float(a["self"]):
        return None
    return layer(emitter, mico.Relu6Op, node, a["self"])


@converts("gelu")
def gelu(emitter: Emitter, node: Node, a: Arguments):
    return layer(emitter, mico.GeluOp, node, a["self"], approximate=a["approximate"])


@converts("softmax", "_softmax")
def softmax(emitter: Emitter, node: Node, a: Arguments):
    if a.get("dtype") not in (None, a["self"].meta["val"].dtype) or a.get("half_to_float"):
        return None
    return layer(emitter, mico.SoftmaxOp, node, a["self"], dim=a["dim"])


@converts("add", "mul")
def arithmetic(emitter: Emitter, node: Node, a: Arguments):
    inputs = a["self"], a["other"]
    if not is_float(*inputs) or a.get("alpha", 1) != 1:
        return None
    if inputs[0].meta["val"].dtype != inputs[1].meta["val"].dtype:
        return None
    op = mico.AddOp if name_of(node) == "add" else mico.MulOp
    return layer(emitter, op, node, *inputs)


@converts("batch_norm", "_native_batch_norm_legit_no_training")
def batch_norm(emitter: Emitter, node: Node, a: Arguments):
    parameters = (a["weight"], a["bias"], a["running_mean"], a["running_var"])
    if a.get("training") or any(parameter is None for parameter in parameters):
        return None
    return layer(emitter, mico.BatchNormOp, node, a["input"], *parameters, eps=float(a["eps"]))


@converts("layer_norm")
def layer_norm(emitter: Emitter, node: Node, a: Arguments):
    if a["weight"] is None:
        return None
    named = {"eps": float(a["eps"]), "dims": len(a["normalized_shape"])}
    return layer(emitter, mico.LayerNormOp, node, a["input"], a["weight"], a["bias"], **named)


@converts("rms_norm")
def rms_norm(emitter: Emitter, node: Node, a: Arguments):
    dtype = a["input"].meta["val"].dtype
    eps = torch.finfo(dtype).eps if a["eps"] is None else a["eps"]
    named = {"eps": float(eps), "dims": len(a["normalized_shape"])}
    return layer(emitter, mico.RmsNormOp, node, a["input"], a["weight"], **named)


def _window(a: Arguments) -> dict[str, Any]:
    kernel = _pair(a["kernel_size"], 2)
    return {
        "kernel_size": kernel,
        "stride": _pair(a["stride"] or kernel, 2),
        "padding": [p for p in _pair(a["padding"], 2) for _ in range(2)],
        "ceil_mode": bool(a["ceil_mode"]),
    }


@converts("max_pool2d", "max_pool2d_with_indices")
def max_pool(emitter: Emitter, node: Node, a: Arguments):
    indices_used = any(user.args[1:] == (1,) for user in node.users)
    several = isinstance(node.meta["val"], list | tuple)
    if len(shape_of(a["self"])) != 4 or (several and indices_used):
        return None
    dilation = _pair(a["dilation"], 2)
    return layer(emitter, mico.MaxPool2dOp, node, a["self"], dilation=dilation, **_window(a))


@converts("avg_pool2d")
def avg_pool(emitter: Emitter, node: Node, a: Arguments):
    if a["divisor_override"] is not None or len(shape_of(a["self"])) != 4:
        return None
    include = bool(a["count_include_pad"])
    window = _window(a)
    return layer(emitter, mico.AvgPool2dOp, node, a["self"], count_include_pad=include, **window)


@converts("adaptive_avg_pool2d")
def adaptive_avg_pool(emitter: Emitter, node: Node, a: Arguments):
    """Windows of one size; those that differ in size were taken apart before."""
    sizes, wanted = shape_of(a["self"])[2:], a["output_size"]
    if len(shape_of(a["self"])) != 4 or not all(map(is_static, sizes)):
        return None
    kernel = [int(size) // out for size, out in zip(sizes, wanted, strict=True)]
    return layer(emitter, mico.AvgPool2dOp, node, a["self"], kernel_size=kernel)


@converts("flatten", "view", "reshape", "_unsafe_view", "squeeze", "unsqueeze")
def reshape(emitter: Emitter, node: Node, a: Arguments):
    if node.meta["val"].dtype != a["self"].meta["val"].dtype:
        return _view_bits(emitter, node, a["self"])
    shape = _reshape_to(shape_of(a["self"]), shape_of(node))
    if shape is not None:
        return layer(emitter, mico.ReshapeOp, node, a["self"], shape=shape)
    sizes = a.get("size") or a.get("shape") or ()
    return _infer_size(emitter, node, a["self"], sizes) if -1 in sizes else None


def _infer_size(emitter: Emitter, node: Node, source: Node, sizes: Sequence[Any]):
    """Several open sizes, one of which is what is left: torch-mlir would hand on the -1."""
    value = emitter.value(source)
    given = {size: emitter.value(size) for size in sizes if isinstance(size, Node)}
    with ImplicitBuilder(emitter.block):
        known: list[Size] = [
            arith.IndexCastOp(given[size], IndexType()).result if size in given else size
            for size in sizes
        ]
        missing = known.index(-1)
        others = reduce(size_product, known[:missing] + known[missing + 1 :], cast(Size, 1))
        # Where another size is 0, there are no elements, and any divisor does.
        all_of_them = reduce(size_product, sizes_of(value), cast(Size, 1))
        known[missing] = size_quotient(all_of_them, larger_size(others, 1))
        flat = collapse(value, [range(len(shape_of(source)))])
        return [as_type(expand(flat, [range(len(known))], known), tensor_type(node.meta["val"]))]


def _view_bits(emitter: Emitter, node: Node, source: Node):
    """The same bits as numbers of another type; of another size they would be other elements."""
    given, wanted = source.meta["val"].dtype, node.meta["val"].dtype
    if given.itemsize != wanted.itemsize or torch.bool in (given, wanted):
        return None
    element, value = element_type(wanted), emitter.value(source)
    with ImplicitBuilder(emitter.block):
        return [apply(value, element, lambda v: arith.BitcastOp(v, element).result)]


def _reshape_to(given: Sequence[Any], wanted: Sequence[Any]) -> list[int] | None:
    """Sizes with 0 for a dynamic dimension that stays at its place and -1 for one that does not."""
    shape: list[int] = []
    for i, size in enumerate(wanted):
        if is_static(size):
            shape.append(int(size))
        elif i < len(given) and not is_static(given[i]) and str(given[i]) == str(size):
            shape.append(0)
        else:
            shape.append(-1)
    return None if shape.count(-1) > 1 or 0 in [s for s in wanted if is_static(s)] else shape


@converts("permute", "transpose", "t")
def transpose(emitter: Emitter, node: Node, a: Arguments):
    rank = len(shape_of(a["self"]))
    order = list(range(rank))
    if "dims" in a:
        order = [d % rank for d in a["dims"]]
    elif rank >= 2:
        first, second = a.get("dim0", 0) % rank, a.get("dim1", 1) % rank
        order[first], order[second] = order[second], order[first]
    return layer(emitter, mico.TransposeOp, node, a["self"], permutation=order)


@converts("cat")
def concat(emitter: Emitter, node: Node, a: Arguments):
    dtypes = {tensor.meta["val"].dtype for tensor in a["tensors"]}
    ranks = {len(shape_of(tensor)) for tensor in a["tensors"]}
    if len(dtypes) != 1 or len(ranks) != 1:
        return None
    return layer(emitter, mico.ConcatOp, node, *a["tensors"], dim=a["dim"])


@converts("clone", "contiguous", "alias", "detach", "dropout", "feature_dropout", "lift_fresh_copy")
def identity(emitter: Emitter, node: Node, a: Arguments):
    if a.get("train"):
        return None
    return [emitter.value(a["self"] if "self" in a else a["input"])]


@converts("_local_scalar_dense")
def item(emitter: Emitter, node: Node, a: Arguments):
    """Read a number; how many elements of a mask are true is no more than it has elements."""
    mask = _counted_mask(a["self"])
    if mask is None or not emitter.knows(mask):
        return None
    with emitter.building():
        number = tensor.ExtractOp(emitter.value(a["self"]), [], i64).result
        elements = reduce(size_product, sizes_of(emitter.value(mask)), cast(Size, 1))
        most = arith.IndexCastOp(as_index(elements), i64).result
        zero = arith.ConstantOp(IntegerAttr(0, i64)).result
        return [arith.MaxSIOp(arith.MinSIOp(number, most).result, zero).result]


def _counted_mask(node: Node) -> Node | None:
    """Return the mask whose true elements a node counts."""
    if not isinstance(node.target, OpOverload) or name_of(node) != "sum":
        return None
    source = arguments_of(node)["self"]
    is_count = source.meta["val"].dtype == torch.bool and node.meta["val"].dtype == torch.int64
    return source if is_count and node.meta["val"].ndim == 0 else None
