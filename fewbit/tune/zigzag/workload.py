"""A loop nest as a layer of ZigZag's workloads.

Two inputs are multiplied and summed, or added; indices are loops, or windows of two loops. Elements
have their true widths. ZigZag's sizes are exact: a prime extent stays one loop.
"""

from __future__ import annotations

from typing import Any

from fewbit.cost.loops import Access, Index, LoopNest
from fewbit.tune.roles import Roles, roles_of

NAMES = "ABCDEFGH"
"""Names of loops; windows are called after their loops, in small letters."""


def refusal(nest: LoopNest) -> str | None:
    """Return why ZigZag cannot express a nest; None where it can."""
    if len(nest.inputs) != 2:
        count = {0: "no input", 1: "one input"}.get(len(nest.inputs), "more than two inputs")
        return f"ZigZag's ops have two inputs, and this one has {count}"
    if not nest.multiplies:
        return "ZigZag's ops multiply and add"
    if len(nest.loops) > len(NAMES):
        return "it has too many loops"
    for access in nest.accesses:
        for index in access.indices or ():
            if len(index.loops) > 2:
                return "a window has more than two loops"
        if access.indices is None:
            return "its indices are no sums of loops"
    if roles_of(nest) is None:
        return "no loop is its columns"
    return None


def layer_of(nest: LoopNest) -> dict[str, Any]:
    """Return the nest as an entry of a workload."""
    roles = roles_of(nest)
    assert roles is not None, "only nests that are not refused"
    image, weights = _operands(nest, roles)
    output = nest.outputs[0]
    relations: dict[str, str] = {}
    texts = {
        name: "".join(f"[{_index(index, relations)}]" for index in _used_indices(access))
        for name, access in (("O", output), ("I", image), ("W", weights))
    }
    return {
        "id": 0,
        "name": "nest",
        "operator_type": "Conv" if relations else "Gemm",
        "equation": f"O{texts['O']}+=I{texts['I']}*W{texts['W'] or '[]'}",
        "dimension_relations": list(relations.values()),
        "loop_dims": [NAMES[i] for i in range(len(nest.loops))],
        "loop_sizes": list(nest.extents),
        "operand_precision": {
            "I": image.bits,
            "W": weights.bits,
            "O": output.bits,
            "O_final": output.bits,
        },
        "operand_source": {"I": 0, "W": 0},
    }


def _operands(nest: LoopNest, roles: Roles) -> tuple[Access, Access]:
    """Return what moves with the rows, and the weights."""
    first, second = nest.inputs
    rows = set(roles.rows)
    return (second, first) if rows & second.loops and not rows & first.loops else (first, second)


def _used_indices(access: Access) -> list[Index]:
    return [index for index in access.indices or () if index.loops]


def _index(index: Index, relations: dict[str, str]) -> str:
    loops = index.loops
    if len(loops) == 1:
        return NAMES[loops[0]].lower()
    a, b = loops
    name = f"{NAMES[a]}{NAMES[b]}".lower()
    factors = index.coefficients[a], index.coefficients[b]
    relations[name] = f"{name}={factors[0]}*{NAMES[a].lower()}+{factors[1]}*{NAMES[b].lower()}"
    return name
