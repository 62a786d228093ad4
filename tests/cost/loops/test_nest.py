"""Loop nests as numbers: footprints, strides, kinds, signatures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fewbit.cost.loops import Access, Index, Loop, LoopNest
from tests.cost.loops.nests import BODY, convolution, matmul


def test_counts_of_a_product() -> None:
    nest = matmul(4, 5, 6, bits=4)
    assert nest.macs == 120
    assert nest.operations == 240
    assert nest.bytes == 4 * 4 * 6 + 5 * 6 // 2 + 4 * 4 * 5
    assert nest.shape_class == "contraction"
    assert nest.accesses[0].stride(0) == 6
    assert nest.accesses[1].stride(1) == 1


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.data())
def test_footprints_of_windows(
    out: int, channels: int, stride: int, dilation: int, data: st.DataObject
) -> None:
    nest = convolution(out, channels, stride, dilation)
    tile = data.draw(st.tuples(*(st.integers(1, loop.extent) for loop in nest.loops)))
    touched = {stride * i + dilation * w for i in range(tile[0]) for w in range(tile[2])}
    reach = max(touched) - min(touched) + 1
    assert nest.accesses[0].footprint(tile) == 4 * reach
    assert nest.accesses[1].footprint(tile) == 4 * tile[2] * tile[1]
    assert nest.shape_class == "convolution"


def test_a_unit_loop_does_not_change_the_signature() -> None:
    plain = matmul(4, 5, 6)
    loops = (Loop(1, "parallel", dynamic=True), *plain.loops)

    def deeper(access: Access) -> Access:
        moved = [Index((0, *index.coefficients)) for index in access.indices or ()]
        first = Index((1, 0, 0, 0))
        return Access(access.role, access.element, 32, (1, *access.shape), (first, *moved))

    accesses = tuple(map(deeper, plain.accesses))
    batched = LoopNest("linalg.batch_matmul", loops, accesses, BODY, 1)
    assert batched.signature == plain.signature
    assert batched.without_units()[1] == (1, 2, 3)
    assert matmul(4, 5, 7).signature != plain.signature


def test_widths_are_part_of_the_signature() -> None:
    assert matmul(4, 5, 6, bits=4).signature != matmul(4, 5, 6, bits=8).signature
