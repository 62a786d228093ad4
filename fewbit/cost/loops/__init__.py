"""Loop nests of linalg ops: what cost models and autotuning know of an op."""

from fewbit.cost.loops.nest import Access, Index, Loop, LoopNest
from fewbit.cost.loops.read import Listing, Unmodelled, list_nests
from fewbit.cost.loops.traffic import bytes_moved

__all__ = [
    "Access",
    "Index",
    "Listing",
    "Loop",
    "LoopNest",
    "Unmodelled",
    "bytes_moved",
    "list_nests",
]
