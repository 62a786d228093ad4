"""`!mico.qtensor` unbundled: its integers, scales and zero points are passed as separate values.

Functions and subgraphs that take or give a bundle take or give its parts instead, and so do calls
of them. Inside, values are bundled and unbundled again, and the two cancel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, NoneType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import graph, mico
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.calls import Call, Callable
from fewbit.passes.linalg.building.driver import lower_ops


@dataclass(frozen=True)
class LowerBundles(ModulePass):
    """Pass the parts of quantized tensors as separate values."""

    name = "lower-bundles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(nested_ops(op)):
            if isinstance(inner, Callable):
                _split_signature(inner)
        lower_ops(
            op,
            {
                func.CallOp: _split,
                graph.CallOp: _split,
                func.ReturnOp: _split,
                graph.ReturnOp: _split,
                graph.TransferOp: _transfer,
                mico.UnbundleOp: _unbundle,
            },
        )
        for inner in list(nested_ops(op)):
            if isinstance(inner, mico.BundleOp) and not inner.result.uses:
                inner.detach()
                inner.erase()


def _parts(types: Iterable[Attribute]) -> list[Attribute]:
    """Return the types of the values that stand for values of these types."""
    parts: list[Attribute] = []
    for type in types:
        if isinstance(type, mico.QTensorType):
            parts += (p for p in type.parameters if not isinstance(p, NoneType))
        else:
            parts.append(type)
    return parts


def _split_signature(callee: Callable) -> None:
    old = callee.function_type
    new = FunctionType.from_lists(_parts(old.inputs), _parts(old.outputs))
    if new == old:
        return
    callee.properties["function_type"] = new
    if callee.body.first_block is not None:
        _split_arguments(callee.body.first_block)


def _split_arguments(block: Block) -> None:
    for argument in [a for a in block.args if isinstance(a.type, mico.QTensorType)]:
        parts = [
            block.insert_arg(type, argument.index + 1 + i)
            for i, type in enumerate(_parts([argument.type]))
        ]
        bundle = _bundle(parts, argument.type)
        argument.replace_all_uses_with(bundle.result)
        block.erase_arg(argument)
        first = block.first_op
        assert first is not None
        bundle.location = first.location
        block.insert_op_before(bundle, first)


def _bundle(parts: Sequence[SSAValue], type: Attribute) -> mico.BundleOp:
    values, scale, *zero_point = parts
    zero = zero_point[0] if zero_point else None
    return mico.BundleOp.of(values, scale, zero_point=zero, result_types=[type])


def _unbundle_all(values: Iterable[SSAValue]) -> list[SSAValue]:
    parts: list[SSAValue] = []
    for value in values:
        if isinstance(value.type, mico.QTensorType):
            parts += mico.UnbundleOp.of(value, result_types=_parts([value.type])).results
        else:
            parts.append(value)
    return parts


def _bundle_all(parts: Sequence[SSAValue], types: Sequence[Attribute]) -> list[SSAValue]:
    values: list[SSAValue] = []
    remaining = list(parts)
    for type in types:
        count = len(_parts([type]))
        own, remaining = remaining[:count], remaining[count:]
        bundled = isinstance(type, mico.QTensorType)
        values += [_bundle(own, type).result] if bundled else own
    return values


def _split(op: Call | func.ReturnOp | graph.ReturnOp) -> Sequence[SSAValue] | None:
    """Rebuild a call or return with the parts of bundles in their place."""
    types = [*op.operand_types, *op.result_types]
    if not any(isinstance(type, mico.QTensorType) for type in types):
        return None
    new = type(op).create(
        operands=_unbundle_all(op.operands),
        result_types=_parts(op.result_types),
        properties=op.properties.copy(),
        attributes=op.attributes.copy(),
    )
    return _bundle_all(new.results, op.result_types)


def _transfer(op: graph.TransferOp) -> Sequence[SSAValue] | None:
    if not isinstance(op.source.type, mico.QTensorType):
        return None
    moved = [
        graph.TransferOp(part, op.from_device.data, op.to_device.data).result
        for part in _unbundle_all([op.source])
    ]
    return _bundle_all(moved, [op.result.type])


def _unbundle(op: mico.UnbundleOp) -> Sequence[SSAValue] | None:
    bundle = op.input.owner
    return list(bundle.operands) if isinstance(bundle, mico.BundleOp) else None
