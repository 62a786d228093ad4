"""What a call does, counted: operations by kind, and bytes with the footprint that they live in.

`work_of` has a function for each class of kernel, registered where that kernel's structure is
written down (`contractions.py`, `depthwise.py`, `quantize_rows.py`). A new kernel registers one
more; nothing else has to know it.

Counts are in cycles of an ideal processor where a kernel's inner loop allows to say so (`steps`),
and plain numbers of things otherwise. What one of them takes on a machine is the business of
`Calibration`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fewbit.cost.cpu.kernel_call import KernelCall
from fewbit.errors import UnsupportedError
from fewbit.kernels.kernel import Kernel


@dataclass(frozen=True)
class Stream:
    """Bytes that pass by, of so many that are in use; `term` says what for."""

    term: str
    bytes: float
    footprint: float


@dataclass
class Work:
    """Counts by the name of their coefficient, and the memory that goes along with them."""

    counts: dict[str, float] = field(default_factory=dict[str, float])
    streams: list[Stream] = field(default_factory=list[Stream])

    def add(self, term: str, count: float) -> None:
        self.counts[term] = self.counts.get(term, 0.0) + count

    def stream(self, term: str, bytes_: float, footprint: float) -> None:
        if bytes_ > 0:
            self.streams.append(Stream(term, bytes_, footprint))


WorkOf = Callable[[KernelCall, Work], None]
_known: dict[type[Kernel], WorkOf] = {}
FunctionT = TypeVar("FunctionT", bound=WorkOf)


def counts(*kinds: type[Kernel]) -> Callable[[FunctionT], FunctionT]:
    """Register a function that adds the work of one thread, the one with the most, to a `Work`."""

    def register(function: FunctionT) -> FunctionT:
        _known.update(dict.fromkeys(kinds, function))
        return function

    return register


def is_counted(kernel: Kernel) -> bool:
    """Return whether the work of a kernel is known."""
    return type(kernel) in _registered()


def _registered() -> dict[type[Kernel], WorkOf]:
    from fewbit.cost.cpu import contractions, depthwise, quantize_rows

    del contractions, depthwise, quantize_rows
    return _known


def work_of(call: KernelCall) -> Work:
    """Return the work of the thread that has the most of it."""
    count = _registered().get(type(call.kernel))
    if count is None:
        raise UnsupportedError(
            f"the cost of '{call.kernel.symbol}' is not known",
            hint="register its work with fewbit.cost.cpu.work.counts",
        )
    work = Work()
    count(call, work)
    if call.calls > 1:
        work.counts = {term: call.calls * count for term, count in work.counts.items()}
        work.streams = [Stream(s.term, s.bytes * call.calls, s.footprint) for s in work.streams]
    return work
