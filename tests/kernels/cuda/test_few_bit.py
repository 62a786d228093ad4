"""Words of weights, read as the kernel's lanes read them, give the matmul's result."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fewbit.errors import ShapeError, UnsupportedError
from fewbit.kernels.cuda.arch import AMPERE, HOPPER, TURING
from fewbit.kernels.cuda.few_bit import (
    FEW_BIT,
    FewBitMatmul,
    arrange,
    arrange_scales,
    repack,
    shared_bytes,
)
from fewbit.numerics.packing import pack
from fewbit.numerics.widths import Width

WIDTHS = (1, 1.58, 2, 3, 4, 5, 8)


def operand(problem: FewBitMatmul, word: int, register: int, value: int) -> int:
    """Return a value of a lane's operand register, decoded as the kernel does it."""
    bits = problem.bits
    if problem.dtype == "i8":
        shift = 8 - bits - register % (8 // bits) * bits
        byte = (word << shift) >> (8 * value) & 0xFF & ~((1 << (8 - bits)) - 1)
        return (byte - 256 if byte > 127 else byte) >> (8 - bits)
    if bits == 8:
        return (word >> (16 * (register % 2) + 8 * value) & 0xFF) - 128
    field = word >> (register % (16 // bits) * bits) >> (16 * value) & ((1 << bits) - 1)
    return field - (1 << (bits - 1))


def multiply(
    problem: FewBitMatmul, words: npt.NDArray[np.uint32], x: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return x qᵀ from words: lane by lane, register by register, with the kernel's indices."""
    unit, step, depth = problem.unit, problem.step, problem.depth
    per, y = 4 // unit, np.zeros((len(x), problem.blocks * 16), np.int64)
    in_word, quarters = 32 // (problem.bits * per), problem.words // 4
    for block, u, lane in np.ndindex(problem.blocks, problem.padded_k // depth, 32):
        for number in range(problem.words * in_word):
            load, half, i = number // 8, number // 4 % 2, number % 4
            at = number // in_word
            word = int(words[block, u * quarters + at // 4, lane, at % 4])
            n = block * 16 + lane // 4 + i % 2 * 8
            for value in range(per):
                k = u * depth + load * 2 * step + i // 2 * per + value
                if problem.narrow:
                    k += half * step + lane % 4 * (8 // unit)
                else:
                    k += half * (8 // unit) + lane % 4 * (16 // unit)
                y[:, n] += x[:, k] * operand(problem, word, number, value)
    return y[:, : problem.n]


@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("dtype", ["f16", "i8"])
@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_read_the_weights_that_were_packed(width: float, dtype: str, groups: int) -> None:
    rng = np.random.default_rng(int(width * 100))
    wide = Width.of(width)
    problem = FewBitMatmul(2, 19, 256, wide, groups, dtype)
    assert problem.narrow == (groups == 8 and dtype == "i8")
    q = rng.integers(wide.qmin, wide.qmax + 1, (19, 256)).astype(np.int8)
    if wide.is_binary:
        q[q == 0] = 1
    words = repack(problem, pack(q, wide), wide)
    assert words.shape == problem.buffers()["q"].shape
    x = rng.integers(-5, 6, (2, 256))
    np.testing.assert_array_equal(multiply(problem, words, x), x @ q.T.astype(np.int64))


@pytest.mark.parametrize(("dtype", "groups"), [("f16", 1), ("f16", 9), ("i8", 1), ("i8", 9)])
def test_rows_that_fill_no_unit(dtype: str, groups: int) -> None:
    """288 is four and a half units: weights and scales behind it are zeros."""
    rng = np.random.default_rng(0)
    problem = FewBitMatmul(2, 19, 288, Width.of(4), groups, dtype)
    assert FEW_BIT.refuse(problem, HOPPER) is None
    assert all(config["stages"] for config in FEW_BIT.configs(problem, HOPPER))
    q = rng.integers(-8, 8, (19, 288)).astype(np.int8)
    x = np.zeros((2, 320), np.int64)
    x[:, :288] = rng.integers(-5, 6, (2, 288))
    result = multiply(problem, arrange(problem, q), x)
    np.testing.assert_array_equal(result, x[:, :288] @ q.T.astype(np.int64))
    scales = arrange_scales(problem, rng.random((19, groups), np.float32) + 1)
    assert scales.shape == problem.buffers()["scale"].shape
    assert (scales[:groups, :19] > 0).all()
    assert not scales[groups:].any()


def test_weights_of_another_shape_are_refused() -> None:
    problem = FewBitMatmul(1, 16, 64, Width.of(4))
    with pytest.raises(ShapeError, match=r"\(8, 64\)"):
        arrange(problem, np.zeros((8, 64), np.int8))


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (FewBitMatmul(1, 64, 100, Width.of(4)), "multiple of 16 bytes"),
        (FewBitMatmul(1, 64, 192, Width.of(4), 8), "groups"),
        (FewBitMatmul(1, 64, 256, Width.of(8), 1, "bf16"), "mantissa"),
    ],
)
def test_what_the_kernel_cannot_do_is_said(problem: FewBitMatmul, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        FEW_BIT.plan(problem, HOPPER)
    with pytest.raises(UnsupportedError, match="turing"):
        FEW_BIT.plan(problem, TURING)


def test_settings_fit() -> None:
    for arch in (AMPERE, HOPPER):
        for m in (1, 8, 16, 64):
            problem = FewBitMatmul(m, 4096, 4096, Width.of(4), 32, "bf16")
            configs = FEW_BIT.configs(problem, arch)
            assert configs
            assert all(arch.fits(shared_bytes(problem, config)) for config in configs)
            assert arch is HOPPER or all(config["cluster"] == 1 for config in configs)
            assert m > 16 or any(config["stages"] == 0 for config in configs)
