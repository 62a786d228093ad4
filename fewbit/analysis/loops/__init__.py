"""Loop nests of linalg ops: what cost models and the search for tiles know of an op."""

from fewbit.analysis.loops.nest import Access, Index, Loop, LoopNest
from fewbit.analysis.loops.read import Listing, Unmodelled, list_nests
from fewbit.analysis.loops.traffic import bytes_moved

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
