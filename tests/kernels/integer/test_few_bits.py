"""Products with scales for groups have the bits that numpy gives, group after group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
from fewbit.kernels import IntegerMatmul, Isa, module_text
from fewbit.kernels.integer.group_scales import SUPER_GROUPS, ScaleStorage, takes_storage
from fewbit.kernels.stored import takes_halves
from fewbit.numerics.super_blocks import SUPER_BLOCK
from tests.kernels.integer.epilogue import UNTOUCHED, Epilogue, Outputs, Wanted
from tests.kernels.machine import address, compiled_groups, guarded, load, on_threads


def check(
    isa: Isa,
    m: int,
    n: int,
    groups: int,
    each: int,
    bits: int,
    want: Wanted,
    seed: int,
    *,
    shifted: bool = False,
    storage: ScaleStorage = "f32",
    blocks: bool = False,
) -> None:
    """Rows of x and y are one number further apart than they must be."""
    rng, k = np.random.default_rng(seed), groups * each
    x, weight = want.integers(rng, (m, k + 1)), want.weights(rng, (n, k), bits)
    epilogue = Epilogue(want, rng, (m, n + 1))
    storage = storage if takes_storage(isa, storage) else "f32"
    scale = scales(rng, (n, groups), each, storage) * np.float32(2.0**-12)
    offset = scales(rng, (n, groups), each, storage) if shifted else None
    from_zero = weight if offset is None else weight.astype(np.int16) + (1 << bits >> 1)
    rows = np.repeat(epilogue.x_scale, want.together)[:m, None].repeat(groups, 1)
    if blocks:
        rows = guarded(rng.standard_normal((m, groups)).astype(np.float32))
    expected = expect(x[:, :k], from_zero, rows, scale, offset, epilogue)
    kernel = IntegerMatmul(
        isa, "f32", bits, grouped=True, shifted=shifted, storage=storage, blocks=blocks
    )
    packed = guarded(kernel.pack(weight, groups))
    w_scale = guarded(kernel.pack_scale(scale, offset, depth=each))
    call = compiled_groups(isa, shifted, storage, blocks)[bits]
    x_scale, together, _, bias, add = epilogue.scales()
    if blocks:
        x_scale = address(rows)
    for threads in (1, 2, 3):
        (y,) = Outputs(want, (m, n + 1)).arrays
        given = [address(x), k + 1, address(packed), x_scale, together, address(w_scale), bias, add,
                 address(y), n + 1, m, n, k, groups, *epilogue.bounds]  # fmt: skip
        on_threads(threads, lambda t, ts, given=given: call(*given, t, ts))
        assert y[:, :n].tobytes() == expected.tobytes()
        assert (y[:, n:] == UNTOUCHED).all(), "wrote beside the matrix"


def scales(
    rng: np.random.Generator, shape: tuple[int, int], each: int, storage: ScaleStorage
) -> np.ndarray:
    """Return random numbers that lose nothing where they are stored so, nor a 2^12th of them."""
    together = SUPER_BLOCK // each if storage == "super" else 1
    factors = rng.integers(-2047, 2048, (shape[0], shape[1] // together)).astype(np.float32) / 512
    if storage == "f32":
        return rng.standard_normal(shape).astype(np.float32)
    if storage == "f16":
        return factors
    return factors.repeat(together, 1) * rng.integers(-127, 128, shape).astype(np.float32)


def expect(
    x: np.ndarray,
    weight: np.ndarray,
    x_scale: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray | None,
    epilogue: Epilogue,
) -> np.ndarray:
    (m, k), (n, groups) = x.shape, scale.shape
    y = np.zeros((m, n), np.float32)
    for g in range(groups):
        part, rows = slice(g * (k // groups), (g + 1) * (k // groups)), x_scale[:, g, None]
        sums = x[:, part].astype(np.int64) @ weight[:, part].T.astype(np.int64)
        term = sums.astype(np.int32).astype(np.float32) * rows * scale[:, g]
        if offset is not None:
            row_sums = x[:, part].sum(1, dtype=np.int32, keepdims=True)
            term = term + row_sums.astype(np.float32) * rows * offset[:, g]
        y = y + term
    y = y if epilogue.bias is None else y + epilogue.bias[:n]
    y = y if epilogue.add is None else y + epilogue.add[:, :n]
    low, high = (np.float32(bound) for bound in epilogue.bounds)
    return np.minimum(np.maximum(y, low), high)


SIZES = st.tuples(
    st.one_of(st.integers(1, 3), st.integers(4, 30), st.integers(90, 130)),
    st.integers(1, 140),
    st.integers(1, 9),
)
"""Rows, columns and groups."""
Sizes = tuple[int, int, int]
Flags = tuple[bool, bool, bool, bool]


@pytest.mark.on_few
@settings(max_examples=60)
@given(
    sizes=SIZES,
    each=st.one_of(st.integers(4, 70), st.sampled_from([32, 64, 128, 600])),
    bits=st.integers(1, 8),
    flags=st.tuples(*[st.booleans()] * 4),
    together=st.integers(1, 60),
    seed=st.integers(0, 2**32),
)
@example((1, 70, 33), 128, 4, (True, True, False, True), 1, 0)
@example((100, 70, 60), 5, 3, (True, True, False, False), 1, 0)
@example((3, 70, 5000 // 8), 8, 1, (False, False, False, False), 1, 0)
@example((7, 70, 2), 2100, 4, (False, True, True, False), 1, 0)
@example((7, 70, 2), 2100, 8, (False, True, True, False), 1, 0)
def test_groups(
    isa: Isa, sizes: Sizes, each: int, bits: int, flags: Flags, together: int, seed: int
) -> None:
    check(isa, *sizes, each, bits, Wanted("f32", *flags, together), seed)


@pytest.mark.on_few
@settings(max_examples=60)
@given(
    sizes=SIZES,
    each=st.one_of(st.integers(4, 70), st.sampled_from([16, 32, 64, 600])),
    bits=st.integers(2, 7),
    flags=st.tuples(*[st.booleans()] * 4),
    together=st.integers(1, 60),
    seed=st.integers(0, 2**32),
)
@example((1, 70, 18), 32, 4, (True, True, False, True), 1, 0)
@example((7, 70, 2), 2100, 5, (False, True, True, False), 1, 0)
def test_offsets_of_groups(
    isa: Isa, sizes: Sizes, each: int, bits: int, flags: Flags, together: int, seed: int
) -> None:
    check(isa, *sizes, each, bits, Wanted("f32", *flags, together), seed, shifted=True)


@pytest.mark.on_few
@settings(max_examples=40)
@given(
    sizes=SIZES,
    each=st.sampled_from([16, 32, 64]),
    bits=st.integers(2, 7),
    shifted=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_scales_stored_as_f16(
    isa: Isa, sizes: Sizes, each: int, bits: int, shifted: bool, seed: int
) -> None:
    want = Wanted("f32", True, False, False, True, 1)
    check(isa, *sizes, each, bits, want, seed, shifted=shifted, storage="f16")


@pytest.mark.on_few
@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("bits", [4, 8])
def test_far_weights_give_the_same(isa: Isa, bits: int, groups: int) -> None:
    kernel = IntegerMatmul(isa, "f32", bits, grouped=groups > 0, far=True)
    text, rng, n, k = module_text([kernel], isa), np.random.default_rng(bits), 130, 70
    assert "_far_1x1(" in text
    call = load(text, isa, {kernel.symbol: f"pippippppiiii{'i' if groups else ''}ffii"})
    weight = rng.integers(-1 << (bits - 1), 1 << (bits - 1), (n, k)).astype(np.int8)
    packed, ones = guarded(kernel.pack(weight, groups or 1)), np.ones((n, groups or 1), np.float32)
    scale = guarded(kernel.pack_scale(ones) if groups else ones.ravel())
    for m in (1, 7):
        x, y = (
            guarded(rng.integers(-127, 128, (m, k)).astype(np.int8)),
            np.empty((m, n), np.float32),
        )
        sizes = [n, m, n, k, *([groups] if groups else [])]
        given = [address(x), k, address(packed), address(ones), 1 << 62, address(scale), None, None]
        call[kernel.symbol](*given, address(y), *sizes, -np.inf, np.inf, 0, 1)
        assert np.array_equal(y, x.astype(np.int64) @ weight.T.astype(np.int64))


@pytest.mark.on_few
@settings(max_examples=40)
@given(
    sizes=st.tuples(st.integers(1, 130), st.integers(1, 140)),
    supers=st.integers(1, 5),
    each=st.sampled_from(SUPER_GROUPS),
    bits=st.integers(2, 8),
    shifted=st.booleans(),
    blocks=st.booleans(),
    seed=st.integers(0, 2**32),
)
@example((100, 70), 4, 32, 4, True, False, 0)
@example((1, 70), 3, 16, 6, False, True, 0)
def test_scales_stored_as_products(
    isa: Isa,
    sizes: tuple[int, int],
    supers: int,
    each: int,
    bits: int,
    shifted: bool,
    blocks: bool,
    seed: int,
) -> None:
    want = Wanted("f32", True, False, False, True, 1)
    groups = supers * SUPER_BLOCK // each
    shifted = shifted and bits < 8
    check(
        isa, *sizes, groups, each, bits, want, seed,
        shifted=shifted, storage="super", blocks=blocks,
    )  # fmt: skip


@pytest.mark.on_few
@settings(max_examples=60)
@given(
    sizes=SIZES,
    each=st.one_of(st.integers(4, 70), st.sampled_from([16, 32, 64, 600])),
    bits=st.integers(2, 7),
    shifted=st.booleans(),
    flags=st.tuples(*[st.booleans()] * 4),
    seed=st.integers(0, 2**32),
)
@example((1, 70, 18), 32, 4, False, (True, True, False, True), 0)
@example((100, 70, 60), 5, 3, True, (True, True, False, False), 0)
@example((7, 70, 2), 2100, 5, True, (False, True, True, False), 0)
def test_scales_of_rows_for_groups(
    isa: Isa, sizes: Sizes, each: int, bits: int, shifted: bool, flags: Flags, seed: int
) -> None:
    want = Wanted("f32", *flags, 1)
    check(isa, *sizes, each, bits, want, seed, shifted=shifted, blocks=True)


def test_processors_without_f16_take_no_halves() -> None:
    for name in ("x86-64-v2", "riscv64-v", "riscv64"):
        assert not takes_halves(Isa.of(name))
        with pytest.raises(UnsupportedError, match="no scales of groups as f16"):
            IntegerMatmul(Isa.of(name), "f32", 4, grouped=True, storage="f16")


def test_offsets_need_groups_of_fewer_than_eight_bits() -> None:
    isa = Isa.of("x86-64-v3")
    for bits, grouped in ((8, True), (1, True), (4, False)):
        with pytest.raises(UnsupportedError, match="2 to 7 bits"):
            IntegerMatmul(isa, "f32", bits, grouped, shifted=True)
