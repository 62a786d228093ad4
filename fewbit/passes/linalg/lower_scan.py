"""`tm_tensor.scan` (a cumulative sum or product) as a loop over its elements.

Each prefix is the one before, combined with one element more, in the order of the dimension: as
the interpreter computes it, so that floats have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects.upstream.tm_tensor import ScanOp
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.elements import (
    element,
    fold_indices,
    inline_region,
    keep_sizes,
    with_element,
    with_sizes,
)
from fewbit.passes.linalg.building.tensors import Size, as_index, index_constant, sizes_of


@dataclass(frozen=True)
class LowerScan(ModulePass):
    """Turn prefix sums, and prefixes of any other combination, into loops."""

    name = "lower-scan"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {ScanOp: _scan})


def _scan(op: ScanOp) -> Sequence[SSAValue]:
    axis = op.dimension.value.data
    prefixes = op.outputs[0]
    sizes = sizes_of(prefixes)
    source = with_sizes(op.inputs[0], sizes)
    initial = with_sizes(op.outputs[1], sizes[:axis] + sizes[axis + 1 :])
    inclusive = bool(op.inclusive.value.data)

    def step(at: Sequence[Size], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        i = as_index(at[axis])
        is_first = arith.CmpiOp(i, index_constant(0), "eq").result
        before = arith.SelectOp(is_first, i, arith.SubiOp(i, index_constant(1)).result).result
        earlier, lane = (*at[:axis], before, *at[axis + 1 :]), (*at[:axis], *at[axis + 1 :])
        item = element(source, at if inclusive else earlier)
        (combined,) = inline_region(op.region, (element(carried[0], earlier), item))
        first = item if inclusive else element(initial, lane)
        prefix = arith.SelectOp(is_first, first, combined).result
        results = [with_element(carried[0], at, prefix)]
        for total in carried[1:]:
            latest = arith.SelectOp(is_first, element(total, lane), combined).result
            results.append(with_element(total, lane, latest))
        return results

    # The combination of the whole is rarely asked for.
    total_used = bool(op.results[1].uses)
    start = [prefixes, initial] if total_used else [prefixes]
    results = keep_sizes(fold_indices(sizes, start, step), start)
    return results if total_used else [results[0], initial]
