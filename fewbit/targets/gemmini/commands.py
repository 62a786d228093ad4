"""Gemmini's commands: one class each, whose fields say where in the two operands they lie.

A command is a RoCC instruction (custom-3) with a number, `funct`, and two 64-bit operands. `encode`
and `decode` follow the fields' places, so no command has code of its own. An address in DRAM may be
a `Pointer`, an offset into a buffer that has no place yet; `bound` gives it one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

from fewbit.errors import UnsupportedError, UsageError

Kind = Literal["unsigned", "signed", "f32", "dram"]

GARBAGE = 0xFFFFFFFF
"""The local address that stands for none: zeros where it is read, nothing where it is written."""
ACCUMULATOR = 1 << 31
ACCUMULATE = 1 << 30
FULL = 1 << 29
"""Bits of a local address: in the accumulator, added to it, and read as whole i32."""


class Dataflow(IntEnum):
    OUTPUT_STATIONARY = 0
    WEIGHT_STATIONARY = 1


class Act(IntEnum):
    NONE = 0
    RELU = 1
    LAYERNORM = 2
    IGELU = 3
    SOFTMAX = 4


class Encoded(NamedTuple):
    """What the port carries: 128 bits and a number."""

    funct: int
    rs1: int
    rs2: int


@dataclass(frozen=True)
class Pointer:
    """A place in DRAM before addresses are known."""

    buffer: str
    offset: int = 0

    def __add__(self, bytes: int) -> Pointer:
        return Pointer(self.buffer, self.offset + bytes)

    def __str__(self) -> str:
        return f"{self.buffer}+{self.offset:#x}" if self.offset else self.buffer


Dram = int | Pointer
"""An address; 0 for zeros, or for what is left out."""


class Place(NamedTuple):
    """Where a field lies."""

    operand: Literal[1, 2]
    low: int
    width: int
    kind: Kind


def _bits(
    operand: Literal[1, 2], low: int, width: int, default: Any = 0, kind: Kind = "unsigned"
) -> Any:
    return field(default=default, metadata={"place": Place(operand, low, width, kind)})


@dataclass(frozen=True)
class Command:
    """One command; the names of its classes are those of the assembly text."""

    FUNCT: ClassVar[int]
    MNEMONIC: ClassVar[str]
    SELECTOR: ClassVar[int | None] = None
    """What the two lowest bits of the first operand are, where several share a number."""

    @classmethod
    @cache
    def places(cls) -> dict[str, Place]:
        return {each.name: each.metadata["place"] for each in fields(cls)}

    def encode(self) -> Encoded:
        words = [self.SELECTOR or 0, 0]
        for name, place in self.places().items():
            words[place.operand - 1] |= self._field(name, place) << place.low
        return Encoded(self.FUNCT, *words)

    def _field(self, name: str, place: Place) -> int:
        value = getattr(self, name)
        if isinstance(value, Pointer):
            raise UsageError(f"{self.MNEMONIC} has the address {value}, which has no place yet")
        if place.kind == "f32":
            return int.from_bytes(struct.pack("<f", value), "little")
        number, limit = int(value), 1 << place.width
        if place.kind == "signed" and -limit // 2 <= number < limit // 2:
            return number % limit
        if not 0 <= number < limit:
            raise UnsupportedError(
                f"{self.MNEMONIC} has {place.width} bits for '{name}', and {number} does not fit"
            )
        return number

    @classmethod
    def decoded(cls, rs1: int, rs2: int) -> Self:
        values: dict[str, Any] = {}
        for name, place in cls.places().items():
            word = (rs1, rs2)[place.operand - 1] >> place.low & (1 << place.width) - 1
            if place.kind == "f32":
                word = struct.unpack("<f", word.to_bytes(4, "little"))[0]
            elif place.kind == "signed" and word >> place.width - 1:
                word -= 1 << place.width
            values[name] = word
        return cls(**values)

    @property
    def pointers(self) -> dict[int, Pointer]:
        """By operand, 1 or 2, the pointers that have no place yet."""
        found = {place.operand: getattr(self, name) for name, place in self.places().items()}
        return {operand: p for operand, p in found.items() if isinstance(p, Pointer)}

    def bound(self, bases: Mapping[str, int]) -> Self:
        """The command with addresses for pointers."""
        moved = {
            name: bases[value.buffer] + value.offset
            for name in self.places()
            if isinstance(value := getattr(self, name), Pointer)
        }
        return replace(self, **moved) if moved else self

    def __str__(self) -> str:
        shown = [
            f"{name}={_shown(name, getattr(self, name), place)}"
            for name, place in self.places().items()
            if getattr(self, name) or name in _ALWAYS
        ]
        return f"{self.MNEMONIC} {', '.join(shown)}".rstrip()


_ALWAYS = ("rows", "cols", "local", "i", "j", "k", "a", "b", "c", "d", "dram", "dataflow")


def _shown(name: str, value: Any, place: Place) -> str:
    if place.kind == "dram":
        return str(value) if isinstance(value, Pointer) else f"{value:#x}"
    if place.width == 32 and name in ("local", "bd", "a", "c"):
        return local_text(value)
    return f"{value:.9g}" if place.kind == "f32" else str(value)


def local_text(address: int) -> str:
    """A local address in words: `sp[16]`, `acc[0]`, `acc+[0]` where it is added to."""
    if address == GARBAGE:
        return "none"
    if not address & ACCUMULATOR:
        return f"sp[{address}]"
    row = address & 0x3FFFFFF
    norm = address >> 26 & 7
    added, full = "+" * bool(address & ACCUMULATE), ".i32" * bool(address & FULL)
    return f"acc{added}{full}[{row}]{f'.norm{norm}' if norm else ''}"


@dataclass(frozen=True)
class ConfigExecute(Command):
    """How products are computed."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_ex", 0
    dataflow: int = _bits(1, 2, 1, Dataflow.WEIGHT_STATIONARY)
    activation: int = _bits(1, 3, 2)
    only_strides: int = _bits(1, 7, 1)
    a_transpose: int = _bits(1, 8, 1)
    b_transpose: int = _bits(1, 9, 1)
    a_stride: int = _bits(1, 16, 16, 1)
    acc_scale: float = _bits(1, 32, 32, 1.0, "f32")
    shift: int = _bits(2, 0, 32)
    c_stride: int = _bits(2, 48, 16, 1)


@dataclass(frozen=True)
class ConfigLoad(Command):
    """How `mvin` (id 0), `mvin2` (1) or `mvin3` (2) reads."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_ld", 1
    shrunk: int = _bits(1, 2, 1)
    id: int = _bits(1, 3, 2)
    pixel_repeats: int = _bits(1, 8, 8, 1)
    block_stride: int = _bits(1, 16, 16, 16)
    scale: float = _bits(1, 32, 32, 1.0, "f32")
    stride: int = _bits(2, 0, 64)


@dataclass(frozen=True)
class ConfigStore(Command):
    """How `mvout` writes: scaled, activated, pooled."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_st", 2
    activation: int = _bits(1, 2, 2)
    pool_stride: int = _bits(1, 4, 2)
    pool_size: int = _bits(1, 6, 2)
    upad: int = _bits(1, 8, 2)
    lpad: int = _bits(1, 10, 2)
    pool_out_dim: int = _bits(1, 24, 8)
    porows: int = _bits(1, 32, 8)
    pocols: int = _bits(1, 40, 8)
    orows: int = _bits(1, 48, 8)
    ocols: int = _bits(1, 56, 8)
    stride: int = _bits(2, 0, 32)
    scale: float = _bits(2, 32, 32, 1.0, "f32")


@dataclass(frozen=True)
class ConfigNorm(Command):
    """Constants of I-BERT's functions, and the statistics that the next `mvout` works on."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_norm", 3
    stat_id: int = _bits(1, 8, 8)
    act_msb: int = _bits(1, 16, 1)
    only_stat_id: int = _bits(1, 17, 1)
    constant_type: int = _bits(1, 18, 1)
    constant: int = _bits(1, 32, 32, 0, "signed")
    qb: int = _bits(2, 0, 32, 0, "signed")
    qc: int = _bits(2, 32, 32, 0, "signed")


@dataclass(frozen=True)
class _Move(Command):
    dram: Dram = _bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    local: int = _bits(2, 0, 32)
    cols: int = _bits(2, 32, 16, 16)
    rows: int = _bits(2, 48, 16, 16)


@dataclass(frozen=True)
class Mvin(_Move):
    """DRAM to scratchpad or accumulator."""

    FUNCT, MNEMONIC = 2, "mvin"


@dataclass(frozen=True)
class Mvin2(_Move):
    """The same, as the second configuration says."""

    FUNCT, MNEMONIC = 1, "mvin2"


@dataclass(frozen=True)
class Mvin3(_Move):
    """The same, as the third configuration says."""

    FUNCT, MNEMONIC = 14, "mvin3"


@dataclass(frozen=True)
class Mvout(_Move):
    """Scratchpad or accumulator to DRAM."""

    FUNCT, MNEMONIC = 3, "mvout"


@dataclass(frozen=True)
class Preload(Command):
    """What the array will hold, and where the next product goes."""

    FUNCT, MNEMONIC = 6, "preload"
    bd: int = _bits(1, 0, 32, GARBAGE)
    bd_cols: int = _bits(1, 32, 16, 16)
    bd_rows: int = _bits(1, 48, 16, 16)
    c: int = _bits(2, 0, 32, GARBAGE)
    c_cols: int = _bits(2, 32, 16, 16)
    c_rows: int = _bits(2, 48, 16, 16)


@dataclass(frozen=True)
class _Compute(Command):
    a: int = _bits(1, 0, 32)
    a_cols: int = _bits(1, 32, 16, 16)
    a_rows: int = _bits(1, 48, 16, 16)
    bd: int = _bits(2, 0, 32, GARBAGE)
    bd_cols: int = _bits(2, 32, 16, 16)
    bd_rows: int = _bits(2, 48, 16, 16)


@dataclass(frozen=True)
class ComputePreloaded(_Compute):
    """A product with what was preloaded."""

    FUNCT, MNEMONIC = 4, "compute.preloaded"


@dataclass(frozen=True)
class ComputeAccumulated(_Compute):
    """A product with what the array still holds."""

    FUNCT, MNEMONIC = 5, "compute.accumulated"


@dataclass(frozen=True)
class Flush(Command):
    """Flush the TLB."""

    FUNCT, MNEMONIC = 7, "flush"
    skip: int = _bits(1, 0, 1)


@dataclass(frozen=True)
class LoopBounds(Command):
    FUNCT, MNEMONIC = 9, "loop_ws.bounds"
    pad_i: int = _bits(1, 0, 16)
    pad_j: int = _bits(1, 16, 16)
    pad_k: int = _bits(1, 32, 16)
    i: int = _bits(2, 0, 16)
    j: int = _bits(2, 16, 16)
    k: int = _bits(2, 32, 16)


@dataclass(frozen=True)
class LoopAddressesAB(Command):
    FUNCT, MNEMONIC = 10, "loop_ws.addresses_ab"
    a: Dram = _bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    b: Dram = _bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopAddressesDC(Command):
    FUNCT, MNEMONIC = 11, "loop_ws.addresses_dc"
    d: Dram = _bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    c: Dram = _bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopStridesAB(Command):
    FUNCT, MNEMONIC = 12, "loop_ws.strides_ab"
    a: int = _bits(1, 0, 64)
    b: int = _bits(2, 0, 64)


@dataclass(frozen=True)
class LoopStridesDC(Command):
    FUNCT, MNEMONIC = 13, "loop_ws.strides_dc"
    d: int = _bits(1, 0, 64)
    c: int = _bits(2, 0, 64)


@dataclass(frozen=True)
class LoopWs(Command):
    """A tile's whole product, or with `resadd` the sum of two tiles."""

    FUNCT, MNEMONIC = 8, "loop_ws"
    accumulate: int = _bits(1, 0, 1)
    full_c: int = _bits(1, 1, 1)
    low_d: int = _bits(1, 2, 1)
    activation: int = _bits(1, 8, 3)
    b_spad_id: int = _bits(1, 16, 2)
    a_spad_id: int = _bits(1, 18, 2)
    a_transpose: int = _bits(2, 0, 1)
    b_transpose: int = _bits(2, 1, 1)
    resadd: int = _bits(2, 2, 1)


@dataclass(frozen=True)
class LoopConv1(Command):
    FUNCT, MNEMONIC = 16, "loop_conv_ws.1"
    batch_size: int = _bits(1, 0, 16)
    in_row_dim: int = _bits(1, 16, 16)
    in_channels: int = _bits(1, 32, 16)
    out_channels: int = _bits(1, 48, 16)
    out_row_dim: int = _bits(2, 0, 16)
    pool_out_row_dim: int = _bits(2, 16, 16)
    out_col_dim: int = _bits(2, 32, 16)
    stride: int = _bits(2, 48, 8)
    padding: int = _bits(2, 56, 8)


@dataclass(frozen=True)
class LoopConv2(Command):
    FUNCT, MNEMONIC = 17, "loop_conv_ws.2"
    pool_padding: int = _bits(1, 0, 8)
    pool_stride: int = _bits(1, 8, 8)
    pool_size: int = _bits(1, 16, 16)
    pool_out_col_dim: int = _bits(1, 32, 16)
    kernel_dim: int = _bits(1, 48, 16)
    pochs: int = _bits(2, 0, 16)
    pocols: int = _bits(2, 16, 16)
    porows: int = _bits(2, 32, 16)
    batches: int = _bits(2, 48, 16)


@dataclass(frozen=True)
class LoopConv3(Command):
    FUNCT, MNEMONIC = 18, "loop_conv_ws.3"
    lpad: int = _bits(1, 0, 16)
    kchs: int = _bits(1, 16, 16)
    kcols: int = _bits(1, 32, 16)
    krows: int = _bits(1, 48, 16)
    in_col_dim: int = _bits(2, 0, 16)
    plpad: int = _bits(2, 16, 8)
    dpad: int = _bits(2, 24, 8)
    upad: int = _bits(2, 32, 16)
    rpad: int = _bits(2, 48, 16)


@dataclass(frozen=True)
class LoopConv4(Command):
    FUNCT, MNEMONIC = 19, "loop_conv_ws.4"
    kernel_dilation: int = _bits(1, 0, 8)
    pdpad: int = _bits(1, 10, 8)
    pupad: int = _bits(1, 21, 8)
    prpad: int = _bits(1, 32, 16)
    orows: int = _bits(1, 48, 16)
    ocols: int = _bits(2, 0, 16)
    out_stride: int = _bits(2, 16, 16)
    weight_stride: int = _bits(2, 32, 16)
    in_stride: int = _bits(2, 48, 16)


@dataclass(frozen=True)
class LoopConv5(Command):
    FUNCT, MNEMONIC = 20, "loop_conv_ws.5"
    weights: Dram = _bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    output: Dram = _bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopConv6(Command):
    FUNCT, MNEMONIC = 21, "loop_conv_ws.6"
    bias: Dram = _bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    input: Dram = _bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopConvWs(Command):
    """A tile's whole convolution, with max pooling if asked for."""

    FUNCT, MNEMONIC = 15, "loop_conv_ws"
    no_bias: int = _bits(1, 0, 1)
    wrot180: int = _bits(1, 1, 1)
    trans_output_1203: int = _bits(1, 2, 1)
    trans_weight_1203: int = _bits(1, 3, 1)
    trans_weight_0132: int = _bits(1, 4, 1)
    trans_input_3120: int = _bits(1, 5, 1)
    depthwise: int = _bits(1, 6, 1)
    max_pixels_per_row: int = _bits(1, 8, 8, 1)
    b_spad_id: int = _bits(1, 16, 2)
    a_spad_id: int = _bits(1, 18, 2)
    no_pool: int = _bits(2, 0, 1)
    downsample: int = _bits(2, 1, 1)
    input_dilated: int = _bits(2, 2, 1)
    activation: int = _bits(2, 3, 2)


@dataclass(frozen=True)
class Counter(Command):
    """Read, set or reset performance counters; the one command with a result."""

    FUNCT, MNEMONIC = 126, "counter"
    reset: int = _bits(1, 0, 1)
    snapshot_reset: int = _bits(1, 1, 1)
    snapshot: int = _bits(1, 2, 1)
    configure: int = _bits(1, 3, 1)
    index: int = _bits(1, 4, 3)
    event: int = _bits(1, 12, 6)
    external: int = _bits(1, 31, 1)


COMMANDS: tuple[type[Command], ...] = (
    ConfigExecute, ConfigLoad, ConfigStore, ConfigNorm, Mvin, Mvin2, Mvin3, Mvout,
    Preload, ComputePreloaded, ComputeAccumulated, Flush,
    LoopWs, LoopBounds, LoopAddressesAB, LoopAddressesDC, LoopStridesAB, LoopStridesDC,
    LoopConvWs, LoopConv1, LoopConv2, LoopConv3, LoopConv4, LoopConv5, LoopConv6, Counter,
)  # fmt: skip
"""Every command there is."""

_BY_NUMBER = {(command.FUNCT, command.SELECTOR): command for command in COMMANDS}


def decode(funct: int, rs1: int, rs2: int) -> Command:
    """The command that the port carries."""
    selector = rs1 & 3 if funct == ConfigExecute.FUNCT else None
    found = _BY_NUMBER.get((funct, selector))
    if found is None:
        raise UnsupportedError(f"there is no command with the number {funct}")
    return found.decoded(rs1, rs2)
