"""Control flow of a function under construction, in SSA form from the start.

Loops and conditions are `with` blocks, with what a loop changes as its carried values: no optimizer
is needed to keep an accumulator in a register.

    with f.loop(0, count, carried=[zero]) as loop:
        (total,) = loop.carried
        loop.carry(total + f.load("i64", table, loop.index))
    (total,) = loop.results
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fewbit.llvm.instructions import Instructions
from fewbit.llvm.types import I1, I64, Int, IrTypeError
from fewbit.llvm.values import Value


@dataclass
class Loop:
    """An open loop: the `index`, the values `carried` into this iteration, and `results` after it.

    The body may set the `step` to the next index.
    """

    index: Value
    carried: list[Value]
    step: Value | int
    following: list[Value]
    results: list[Value]

    def carry(self, *values: Value) -> None:
        """Set what the next iteration starts with."""
        self.following = list(values)


class ControlFlow(Instructions):
    """Basic blocks, and loops and conditions made of them."""

    def __init__(self, name: str, index: Int = I64) -> None:
        super().__init__(name, index)
        self._block = "entry"

    def _label(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def _begin(self, label: str) -> None:
        self.ended = False
        self._write(f"{label}:")
        self._block = label

    def _jump(self, label: str) -> None:
        self._write(f"br label %{label}")
        self.ended = True

    def _branch(self, condition: Value, yes: str, no: str, marks: str = "") -> None:
        if condition.type != I1:
            raise IrTypeError(f"{condition.typed} is no condition")
        self._write(f"br i1 {condition}, label %{yes}, label %{no}{marks}")
        self.ended = True

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """Execute the body if the condition holds."""
        body, end = self._label("then"), self._label("end")
        self._branch(condition, body, end)
        self._begin(body)
        yield
        if not self.ended:
            self._jump(end)
        self._begin(end)

    @contextmanager
    def unless(self, condition: Value, *, rarely: bool = False) -> Generator[None]:
        """Execute the body, which must return, where the condition does not hold."""
        on, off = self._label("on"), self._label("off")
        self._branch(condition, on, off, ", !prof !0" if rarely else "")
        self._begin(off)
        yield
        if not self.ended:
            raise IrTypeError(f"'{self.name}' goes on where a condition does not hold")
        self._begin(on)

    def wait_until(self, evaluate: Callable[[], Value]) -> None:
        """Evaluate a condition again and again until it holds."""
        body, end = self._label("wait"), self._label("end")
        self._jump(body)
        self._begin(body)
        self._branch(evaluate(), end, body)
        self._begin(end)

    @contextmanager
    def loop(
        self,
        start: Value | int,
        stop: Value | int,
        step: Value | int = 1,
        *,
        carried: Sequence[Value] = (),
        hot: bool = False,
    ) -> Generator[Loop]:
        """Count from start up to stop. A hot loop tests at its end: it runs at least once."""
        body, end = self._label("loop"), self._label("end")
        before, head = self._block, self._label("test")
        first = body if hot else head
        self._jump(first)
        self._begin(first)
        starts = [self.integer(start), *carried]
        place = len(self._lines)
        phis = [self.emit(v.type, "phi") for v in starts]
        if not hot:
            self._branch(phis[0] < stop, body, end)
            self._begin(body)
        loop = Loop(phis[0], phis[1:], step, [], phis[1:])
        yield loop
        following = [phis[0] + loop.step, *loop.following]
        latch = self._block
        if hot:
            self._branch(following[0] < stop, body, end)
            loop.results = loop.following
        else:
            self._jump(head)
        self._begin(end)
        for i, (phi, value, later) in enumerate(zip(phis, starts, following, strict=True)):
            incoming = f"[{value}, %{before}], [{phi.like(later)}, %{latch}]"
            self._lines[place + i] = f"{phi} = phi {phi.type} {incoming}"
