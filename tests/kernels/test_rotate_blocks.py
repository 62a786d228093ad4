"""Blocks are rotated to the bits that `fewbit.numerics` gives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UsageError
from fewbit.kernels import Isa, RotateBlocks, module_text
from fewbit.numerics.hadamard import rotate
from tests.kernels.machine import Call, address, guarded, load, on_threads

BLOCKS = (4, 8, 16, 32, 64, 128, 256)


@cache
def compiled(isa: Isa) -> dict[int, Call]:
    kernels = [RotateBlocks(isa, block) for block in BLOCKS if RotateBlocks.takes(isa, block)]
    calls = load(module_text(kernels, isa), isa, {each.symbol: "ppiii" for each in kernels})
    return {kernel.block: calls[kernel.symbol] for kernel in kernels}


@settings(max_examples=80)
@given(data=st.data(), blocks=st.integers(0, 9), threads=st.integers(1, 3))
def test_as_the_numerics(isa: Isa, data: st.DataObject, blocks: int, threads: int) -> None:
    block = data.draw(st.sampled_from(list(compiled(isa))))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale = 10.0 ** data.draw(st.integers(-30, 30))
    x = guarded((rng.standard_normal(blocks * block) * scale).astype(np.float32))
    y = guarded(np.full(blocks * block, np.nan, np.float32))
    call = compiled(isa)[block]
    on_threads(threads, lambda t, ts: call(address(x), address(y), blocks, t, ts))
    assert y.tobytes() == rotate(x.reshape(blocks, block), block).tobytes()


def test_blocks_are_whole_vectors_that_stay_in_registers(isa: Isa) -> None:
    assert not RotateBlocks.takes(isa, isa.lanes // 2)
    assert RotateBlocks.takes(isa, isa.lanes)
    assert RotateBlocks.takes(isa, 128)
    assert not RotateBlocks.takes(isa, 512)
    with pytest.raises(UsageError, match="power of two"):
        RotateBlocks(isa, 48)
