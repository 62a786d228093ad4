"""What the writer of LLVM IR writes does what its Python says."""

from __future__ import annotations

import numpy as np

from fewbit.kernels import Isa
from fewbit.kernels.emit import Function
from fewbit.kernels.kernel import Kernel
from tests.kernels.machine import address, load


class Triangle(Kernel):
    """Writes 0 + 1 + … + (count - 1), and 7 after it if the count is 3."""

    @property
    def symbol(self) -> str:
        return "triangle"

    def function(self) -> Function:
        seven = Function(self.isa, "seven", "ptr to")
        seven.store(seven.integer(7), seven.parameters[0])
        f = Function(self.isa, self.symbol, "ptr to, i64 count", public=True)
        to, count = f.parameters
        with f.loop(0, count, carried=[f.integer(0)]) as loop:
            loop.carry(loop.carried[0] + loop.index)
        f.store(loop.results[0], to)
        f.switch(count, [(3, seven)], f.at(to, 1, "i64"))
        return f


class Transpose(Kernel):
    """A square as wide as a vector, rows to columns."""

    @property
    def symbol(self) -> str:
        return "transpose"

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, "ptr x", public=True)
        (x,) = f.parameters
        rows = [f.load(f.vector, x, i) for i in range(self.isa.lanes)]
        for i, row in enumerate(f.transpose(rows)):
            f.store(row, x, i)
        return f


def test_loops_and_choices(isa: Isa) -> None:
    call = load(Triangle(isa).ir(), isa, {"triangle": "pi"})["triangle"]
    for count, expected in ((0, (0, -1)), (1, (0, -1)), (3, (3, 7)), (10, (45, -1))):
        to = np.full(2, -1, np.int64)
        call(address(to), count)
        assert tuple(to) == expected


def test_transpose(isa: Isa) -> None:
    call = load(Transpose(isa).ir(), isa, {"transpose": "p"})["transpose"]
    x = np.arange(isa.lanes**2, dtype=np.float32).reshape(isa.lanes, isa.lanes)
    expected = x.T.copy()
    call(address(x))
    assert np.array_equal(x, expected)


def test_a_function_names_what_it_calls() -> None:
    kernel = Triangle(Isa.of("riscv64"))
    assert [needed.name for needed in kernel.function().needs] == ["seven"]
    assert kernel.declaration() == "declare void @triangle(ptr, i64)"
