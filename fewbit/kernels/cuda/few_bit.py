"""Matmuls with few-bit weights and few rows (GEMV): what a language model does at each token.

Weights are read once, so the time is that of their bytes. They come packed as everywhere in this
project, a row after another, and are repacked here, when a program is compiled, into the order in
which the lanes of a warp use them. Widths lie in fields of 2, 4 or 8 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import element
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Buffer, Launch, Plan, Pointer
from fewbit.numerics.packing import unpack
from fewbit.numerics.widths import Width, WidthLike

_BLOCK = 16
"""Outputs of one matmul of the tensor cores."""
_PLENTY = 8
"""Blocks of outputs for each multiprocessor with which no warps share k."""
_LANES = {False: (4, 2), True: (2, 4)}
"""Whether a lane's values of two steps lie side by side, or, `narrow`, a step's four lanes."""


@dataclass(frozen=True)
class FewBitMatmul:
    """y[m, n] = sum over k of x[m, k] scale[n, k / group] q[n, k].

    With integer activations, x are bytes and rows of y are multiplied by `row_scale`.
    """

    m: int
    n: int
    k: int
    width: Width
    groups: int = 1
    """Scales of one output, along k."""
    dtype: str = "f16"
    """The type of activations: f16, bf16 or i8."""
    result: str = "f16"

    @property
    def bits(self) -> int:
        """Bits of the field that a weight lies in."""
        return next(bits for bits in (2, 4, 8) if self.width.bits <= bits)

    @property
    def unit(self) -> int:
        return 1 if self.dtype == "i8" else 2

    @property
    def words(self) -> int:
        """32-bit words of a lane that are decoded together."""
        return 8 if self.unit == 1 and self.bits == 8 else 4

    @property
    def step(self) -> int:
        """Values of k that one matmul of the tensor cores takes."""
        return 32 // self.unit

    @property
    def depth(self) -> int:
        """Values of k in the words that are decoded together."""
        return self.words * 32 // self.bits // (16 // self.unit) * self.step

    @property
    def group(self) -> int:
        """Values of k that share a scale."""
        return self.k // self.groups

    @property
    def narrow(self) -> bool:
        """Whether every step of the tensor cores has a scale of its own."""
        return self.groups > 1 and self.group == self.step

    @property
    def padded_k(self) -> int:
        """k in whole units: weights have zeros behind a row, and of x zeros are taken."""
        return ceil_div(self.k, self.depth) * self.depth

    @property
    def padded_groups(self) -> int:
        """Rows of scales, with those of groups behind k."""
        return 1 if self.groups == 1 else self.padded_k // self.group

    @property
    def blocks(self) -> int:
        return ceil_div(self.n, _BLOCK)

    @property
    def operations(self) -> int:
        return 2 * self.m * self.n * self.k

    def buffers(self) -> dict[str, Buffer]:
        return {
            "x": Buffer(self.dtype, (self.m, self.k)),
            "q": Buffer("i32", (self.blocks, self.padded_k // self.depth * self.words // 4, 32, 4)),
            "scale": Buffer("f32", (self.padded_groups, self.blocks * _BLOCK)),
            "row_scale": Buffer("f32", (self.m if self.dtype == "i8" else 1,)),
            "y": Buffer(self.result, (self.m, self.n), "out"),
        }

    def __str__(self) -> str:
        a = 8 if self.dtype == "i8" else 16
        return f"m{self.m},n{self.n},k{self.k},w{self.width}a{a},g{self.group}"


def repack(
    problem: FewBitMatmul, packed: npt.NDArray[np.uint8], width: WidthLike
) -> npt.NDArray[np.uint32]:
    """Repack rows of weights from `fewbit.numerics.packing` for the lanes of a warp."""
    return arrange(problem, unpack(packed, width, problem.k))


def arrange(problem: FewBitMatmul, q: npt.NDArray[np.int8]) -> npt.NDArray[np.uint32]:
    """Return integers [N, K] as words [N / 16, quarters of units, lanes, 4]."""
    if q.shape != (problem.n, problem.k):
        raise ShapeError(f"weights are {q.shape}, not {(problem.n, problem.k)}")
    bits, unit = problem.bits, problem.unit
    padded = np.zeros((problem.blocks * _BLOCK, problem.padded_k), np.int16)
    padded[: problem.n, : problem.k] = q
    if unit == 2:
        padded += 1 << (bits - 1)
    fields = (padded & ((1 << bits) - 1)).astype(np.uint32)
    per, loads = 4 // unit, problem.depth // (2 * problem.step)
    # [block, half of the rows, row, unit, load, lane of 4, half, pair, value]
    split = fields.reshape(problem.blocks, 2, 8, -1, loads, *_LANES[problem.narrow], 2, per)
    if problem.narrow:
        split = split.swapaxes(5, 6)
    lanes = split.transpose(0, 3, 2, 5, 4, 6, 7, 1, 8)
    registers = lanes.reshape(problem.blocks, -1, 32, problem.words, 32 // (bits * per), per)
    words = np.bitwise_or.reduce(registers << shifts_of(bits, per), axis=(-2, -1))
    quarters = words.reshape(problem.blocks, -1, 32, problem.words // 4, 4).swapaxes(2, 3)
    return np.ascontiguousarray(quarters).reshape(problem.buffers()["q"].shape)


def arrange_scales(
    problem: FewBitMatmul, scale: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return scales of outputs, [N, groups] or fewer, as [groups, N], with zeros behind both."""
    wide = np.broadcast_to(scale.reshape(-1, problem.groups), (problem.n, problem.groups))
    arranged = np.zeros((problem.padded_groups, problem.blocks * _BLOCK), np.float32)
    arranged[: problem.groups, : problem.n] = wide.T
    return arranged


def shifts_of(bits: int, per: int) -> npt.NDArray[np.uint32]:
    """Return where a word has the values [register, value of the register]."""
    register = np.arange(32 // (bits * per), dtype=np.uint32)[:, None]
    value = np.arange(per, dtype=np.uint32)
    if per == 2 and bits == 8:
        return register * np.uint32(16) + value * np.uint32(8)
    return register * np.uint32(bits) + value * np.uint32(32 // per)


def _refuse(problem: FewBitMatmul, arch: Arch) -> str | None:
    if not arch.has_async_copies:
        return f"{arch.name} multiplies 16 values of k in two steps"
    if problem.k * problem.unit % 16:
        return "a row of x is not a multiple of 16 bytes"
    if problem.groups > 1 and (reason := _refuse_groups(problem)) is not None:
        return reason
    if problem.bits == 8 and problem.dtype == "bf16":
        return "a byte does not fit into bf16's mantissa"
    return None


def _refuse_groups(problem: FewBitMatmul) -> str | None:
    group = problem.group
    if problem.k % problem.groups or (group % (2 * problem.step) and not problem.narrow):
        return f"groups are neither {problem.step} values nor a multiple of {2 * problem.step}"
    if group % problem.depth and problem.depth % group:
        return f"groups of {group} do not fit into steps of {problem.depth}"
    return None


def few_bit_source(problem: FewBitMatmul, config: Config) -> str:
    return source(
        "prelude.cu",
        "hopper.cu",
        "few_bit_lanes.cu",
        "few_bit.cu" if config["stages"] else "few_bit_direct.cu",
        **few_bit_defines(problem, config),
    )


def few_bit_defines(problem: FewBitMatmul, config: Config) -> dict[str, str | int]:
    """Return what all kernels of this family know of a problem."""
    return {
        **element(problem.dtype),
        f"OUTPUT_{problem.result.upper()}": 1,
        **_field(problem),
        "M": problem.m,
        "N": problem.n,
        "K": problem.padded_k,
        "K_GIVEN": problem.k,
        "GROUPS_K": problem.padded_groups,
        "BITS": problem.bits,
        "BM": config["bm"],
        "WARPS_N": config["warps_n"],
        "WARPS_K": config["warps_k"],
        "ROWS": config["rows"],
        "CLUSTER": config["cluster"],
        "STAGES": config["stages"],
    }


def _field(problem: FewBitMatmul) -> dict[str, str]:
    """Return how a field becomes a number."""
    bits = problem.bits
    if problem.dtype == "i8":
        return {"MASK": hex(0x01010101 * ((1 << 8) - (1 << (8 - bits))))}
    one, base = (0x3C00, 0x6400) if problem.dtype == "f16" else (0x3F80, 0x4300)
    half = 1 << (bits - 1)
    values = {
        "MASK": (1 << bits) - 1,
        "MAGIC": base,
        "MULTIPLY": one,
        "ADD": (base + half) | 0x8000,
    }
    return {name: hex(value * 0x00010001) + "u" for name, value in values.items()}


def _build(problem: FewBitMatmul, config: Config, arch: Arch) -> Plan:
    image = compile_source(few_bit_source(problem, config), arch).image
    outputs = config["warps_n"] * config["rows"] * _BLOCK
    launch = Launch(
        0,
        "few_bit",
        (ceil_div(problem.n, outputs) * config["cluster"], ceil_div(problem.m, config["bm"]), 1),
        config["warps_n"] * config["warps_k"] * 32,
        tuple(Pointer(name) for name in ("x", "q", "scale", "row_scale", "y")),
        shared_bytes(problem, config),
        config["cluster"],
    )
    return Plan("few_bit", arch.code, problem.buffers(), (launch,), (image,))


def shared_bytes(problem: FewBitMatmul, config: Config) -> int:
    """Return the bytes of the ring or of the sums after it; else of activations and sums."""
    warps, rows, columns = config["warps_n"] * config["warps_k"], config["rows"], config["bm"] // 8
    if not config["stages"]:
        high, shares = min(problem.m, config["bm"]), config["cluster"] * config["warps_k"]
        outputs, pitch = config["warps_n"] * rows * _BLOCK, problem.k // shares * problem.unit
        sums = config["warps_k"] * (outputs + 4) + outputs * (config["cluster"] > 1) + 1
        return high * (config["warps_k"] * (ceil_div(pitch, 128) * 128 + 64) + sums * 4)
    loads = problem.depth // (2 * problem.step)
    scales = max(1, problem.depth * problem.padded_groups // problem.padded_k)
    stage = (rows * problem.words // 4 + loads * columns) * 512 + rows * scales * 64
    return max(config["stages"] * warps * stage, warps * rows * _BLOCK * (config["bm"] + 1) * 4)


def _configs(problem: FewBitMatmul, arch: Arch) -> list[Config]:
    configs: list[Config] = []
    tallest = ceil_div(problem.m, 8) * 8
    shapes = _SHAPES if tallest <= 16 else sorted(_SHAPES, key=lambda shape: -shape[2])
    for bm in sorted({min(tallest, size) for size in ((16,) if tallest <= 32 else ()) + (32, 64)}):
        for warps_n, warps_k, rows in shapes:
            blocks = ceil_div(problem.blocks, warps_n * rows)
            for cluster in (1, 2, 4, 8) if arch.has_warpgroups else (1,):
                if (cluster > 1 and blocks * cluster > 4 * arch.multiprocessors) or rows * bm > 128:
                    continue
                shape = {
                    "bm": bm,
                    "warps_n": warps_n,
                    "warps_k": warps_k,
                    "rows": rows,
                    "cluster": cluster,
                }
                configs += [
                    config
                    for config in [*_at_once(problem, shape), *_rings(problem, shape, arch)]
                    if arch.fits(shared_bytes(problem, config))
                ]
    if problem.m <= 8 and problem.blocks >= _PLENTY * arch.multiprocessors:
        configs.sort(key=_by_shares)
    return configs


def _by_shares(config: Config) -> tuple[int, ...]:
    """Return what is least where there are outputs for all warps, and nothing need be shared."""
    shares = config["warps_k"] * config["cluster"]
    return config["stages"] != 0, shares, config["rows"], -config["warps_n"]


def _rings(problem: FewBitMatmul, shape: Config, arch: Arch) -> list[Config]:
    """Return settings with rings no longer than K needs; in clusters where blocks are few."""
    units, shares = problem.padded_k // problem.depth, shape["warps_k"] * shape["cluster"]
    blocks = ceil_div(problem.blocks, shape["warps_n"] * shape["rows"])
    if shape["cluster"] > 1 and 2 * blocks > arch.multiprocessors:
        return []
    longest = max(ceil_div(units, shares), 2)
    return [{**shape, "stages": stages} for stages in (2, 4, 8) if stages <= longest]


def _at_once(problem: FewBitMatmul, shape: Config) -> list[Config]:
    """Return settings without a ring: a warp's weights fit into registers, and shares are even."""
    units, shares = problem.k // problem.depth, shape["warps_k"] * shape["cluster"]
    warps, rows, bm = shape["warps_n"] * shape["warps_k"], shape["rows"], shape["bm"]
    if problem.padded_k != problem.k or units % shares or shape["cluster"] > 4:
        return []
    share, each = problem.k // shares, units // shares
    if share % problem.group and problem.group % share:
        return []
    words = each * problem.words + max(1, share // problem.group)
    registers = rows * (words + bm) + bm // 2 + 22
    if registers * warps * 32 > 65536 or registers > 240:
        return []
    return [{**shape, "stages": 0}]


_SHAPES = (
    (1, 16, 1),
    (1, 8, 1),
    (1, 8, 2),
    (1, 16, 2),
    (2, 8, 1),
    (2, 4, 1),
    (2, 4, 2),
    (2, 8, 2),
    (1, 8, 4),
    (4, 4, 1),
    (4, 8, 1),
    (2, 16, 1),
    (4, 2, 1),
    (4, 2, 2),
    (8, 1, 1),
    (1, 4, 1),
)
"""Warps along n, warps along k, and a warp's blocks of outputs."""

FEW_BIT = Family(
    "few_bit", "weights as the left operand, decoded in registers", _refuse, _configs, _build
)
