"""What a trace found out about dynamic sizes, as assertions of the program.

`torch.export` gives each dynamic size a symbol and a range: the one that was asked for, or what the
model needs, such as three columns to take three of. Sizes of one symbol are equal. Torch takes a
lower bound of 2 for the habit of its tracer that it is, not for a limit, and so do we; and so for
what says no more than that a size is neither 0 nor 1. All else that the model needs, such as a
size that is even, is in the graph as an assertion of its own (`take_guards`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from xdsl.dialects import arith, cf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from fewbit.decompositions.sizes import is_static
from fewbit.frontends.torch.size_expressions import write_expression

HABIT = 2


def take_guards(module: GraphModule) -> list[Any]:
    """Remove the assertions about sizes from all graphs, and give their conditions."""
    graphs = [part.graph for part in module.modules() if isinstance(part, GraphModule)]
    return [guard for graph in graphs for guard in _take(graph)]


def _take(graph: Graph) -> list[Any]:
    guards: list[Any] = []
    asserted = [n for n in graph.nodes if n.target is torch.ops.aten._assert_scalar.default]
    for node in asserted:
        condition: Any = node.args[0]
        value = condition.meta.get("val") if isinstance(condition, Node) else condition
        if isinstance(value, torch.SymBool):
            guards.append(cast(Any, value).node.expr)
        graph.erase_node(node)
    if asserted:
        graph.eliminate_dead_code()
    return guards


def size_assertions(
    exported: ExportedProgram, values: Mapping[Node, SSAValue], guards: Sequence[Any] = ()
) -> list[Operation]:
    """Ops that check the sizes of inputs, and what was asserted of them."""
    ops: list[Operation] = []
    first: dict[str, SSAValue] = {}
    names: dict[Any, str] = {}
    limits = cast("Mapping[Any, Any]", cast(Any, exported).range_constraints)
    for node, value in values.items():
        traced = node.meta["val"]
        if not isinstance(traced, torch.Tensor):
            continue
        for axis, size in enumerate(traced.shape):
            if is_static(size):
                continue
            expr = cast(Any, size).node.expr
            dim = _dim(value, axis, ops)
            where = f"size {axis} of '{node.name}'"
            if str(expr) in first:
                _check(dim, "eq", first[str(expr)], f"{where} differs from another", ops)
                continue
            first[str(expr)] = dim
            names[expr] = f"{node.name}.shape[{axis}]"
            _check_range(dim, limits.get(expr), where, ops)
    bounded = {symbol: _checked(limits[symbol]) for symbol in names if symbol in limits}
    for guard in dict.fromkeys(guards):
        if _is_habit(guard) or _is_certain(guard, bounded) or not guard.free_symbols <= set(names):
            continue
        part: list[Operation] = []
        holds = write_expression(guard, {s: first[str(s)] for s in names}, part)
        if holds is not None:
            ops += [*part, cf.AssertOp(holds, f"{_named(guard, names)} is needed")]
    # A lone size that nothing is known of needs no code.
    return ops if any(isinstance(op, cf.AssertOp) for op in ops) else []


def _check_range(dim: SSAValue, limits: Any, where: str, ops: list[Operation]) -> None:
    if limits is None:
        return
    low, high = _integer(limits.lower), _integer(limits.upper)
    if low is not None and low > HABIT:
        _check(dim, "sge", _number(low, ops), f"{where} must be at least {low}", ops)
    if high is not None:
        _check(dim, "sle", _number(high, ops), f"{where} must be at most {high}", ops)


def _checked(limits: Any) -> Any:
    """The range that is checked, of which the lower bound that is a habit is no part."""
    from torch.utils._sympy import value_ranges

    if limits.lower != HABIT:
        return limits
    return cast(Any, value_ranges).ValueRanges(0, limits.upper)


def _is_habit(guard: Any) -> bool:
    """Return whether it only says that something is not 0 or not 1: the tracer likes to know."""
    return guard.func is sympy.Ne and guard.args[1] in (0, 1)


def _is_certain(guard: Any, limits: Mapping[Any, Any]) -> bool:
    """Return whether it follows from the limits of sizes, which are checked by themselves."""
    from torch.utils._sympy import value_ranges

    if guard == True:  # noqa: E712  # a value of sympy's
        return True
    bounds = cast(Any, value_ranges).bound_sympy(guard, dict(limits))
    return bool(bounds.is_singleton() and bounds.lower == True)  # noqa: E712


def _named(guard: Any, names: Mapping[Any, str]) -> str:
    return str(guard.xreplace({s: sympy.Symbol(name) for s, name in names.items()}))


def _integer(bound: Any) -> int | None:
    """A bound; None where there is none."""
    number = float(bound)
    return None if math.isinf(number) or number >= 2**62 else int(number)


def _dim(value: SSAValue, axis: int, ops: list[Operation]) -> SSAValue:
    ops.append(op := tensor.DimOp(value, _number(axis, ops)))
    return op.results[0]


def _number(value: int, ops: list[Operation]) -> SSAValue:
    ops.append(op := arith.ConstantOp(IntegerAttr(value, IndexType())))
    return op.result


def _check(a: SSAValue, how: str, b: SSAValue, message: str, ops: list[Operation]) -> None:
    ops.append(compared := arith.CmpiOp(a, b, how))
    ops.append(cf.AssertOp(compared.result, message))
