"""Gemmini's commands, one class each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from fewbit.errors import UnsupportedError
from fewbit.simulators.gemmini.command import GARBAGE, Command, Dram, bits


class Dataflow(IntEnum):
    OUTPUT_STATIONARY = 0
    WEIGHT_STATIONARY = 1


class Act(IntEnum):
    NONE = 0
    RELU = 1
    LAYERNORM = 2
    IGELU = 3
    SOFTMAX = 4


@dataclass(frozen=True)
class ConfigExecute(Command):
    """How matmuls are computed."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_ex", 0
    dataflow: int = bits(1, 2, 1, Dataflow.WEIGHT_STATIONARY)
    activation: int = bits(1, 3, 2)
    only_strides: int = bits(1, 7, 1)
    a_transpose: int = bits(1, 8, 1)
    b_transpose: int = bits(1, 9, 1)
    a_stride: int = bits(1, 16, 16, 1)
    acc_scale: float = bits(1, 32, 32, 1.0, "f32")
    shift: int = bits(2, 0, 32)
    c_stride: int = bits(2, 48, 16, 1)


@dataclass(frozen=True)
class ConfigLoad(Command):
    """How `mvin` (id 0), `mvin2` (1) or `mvin3` (2) reads."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_ld", 1
    shrunk: int = bits(1, 2, 1)
    id: int = bits(1, 3, 2)
    pixel_repeats: int = bits(1, 8, 8, 1)
    block_stride: int = bits(1, 16, 16, 16)
    scale: float = bits(1, 32, 32, 1.0, "f32")
    stride: int = bits(2, 0, 64)


@dataclass(frozen=True)
class ConfigStore(Command):
    """How `mvout` writes: scaled, activated, pooled."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_st", 2
    activation: int = bits(1, 2, 2)
    pool_stride: int = bits(1, 4, 2)
    pool_size: int = bits(1, 6, 2)
    upad: int = bits(1, 8, 2)
    lpad: int = bits(1, 10, 2)
    pool_out_dim: int = bits(1, 24, 8)
    porows: int = bits(1, 32, 8)
    pocols: int = bits(1, 40, 8)
    orows: int = bits(1, 48, 8)
    ocols: int = bits(1, 56, 8)
    stride: int = bits(2, 0, 32)
    scale: float = bits(2, 32, 32, 1.0, "f32")


@dataclass(frozen=True)
class ConfigNorm(Command):
    """Constants of I-BERT's functions, and the statistics that the next `mvout` works on."""

    FUNCT, MNEMONIC, SELECTOR = 0, "config_norm", 3
    stat_id: int = bits(1, 8, 8)
    act_msb: int = bits(1, 16, 1)
    only_stat_id: int = bits(1, 17, 1)
    constant_type: int = bits(1, 18, 1)
    constant: int = bits(1, 32, 32, 0, "signed")
    qb: int = bits(2, 0, 32, 0, "signed")
    qc: int = bits(2, 32, 32, 0, "signed")


@dataclass(frozen=True)
class _Move(Command):
    dram: Dram = bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    local: int = bits(2, 0, 32)
    cols: int = bits(2, 32, 16, 16)
    rows: int = bits(2, 48, 16, 16)


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
    """What the array will hold, and where the next matmul's result goes."""

    FUNCT, MNEMONIC = 6, "preload"
    bd: int = bits(1, 0, 32, GARBAGE)
    bd_cols: int = bits(1, 32, 16, 16)
    bd_rows: int = bits(1, 48, 16, 16)
    c: int = bits(2, 0, 32, GARBAGE)
    c_cols: int = bits(2, 32, 16, 16)
    c_rows: int = bits(2, 48, 16, 16)


@dataclass(frozen=True)
class _Compute(Command):
    a: int = bits(1, 0, 32)
    a_cols: int = bits(1, 32, 16, 16)
    a_rows: int = bits(1, 48, 16, 16)
    bd: int = bits(2, 0, 32, GARBAGE)
    bd_cols: int = bits(2, 32, 16, 16)
    bd_rows: int = bits(2, 48, 16, 16)


@dataclass(frozen=True)
class ComputePreloaded(_Compute):
    """A matmul with what was preloaded."""

    FUNCT, MNEMONIC = 4, "compute.preloaded"


@dataclass(frozen=True)
class ComputeAccumulated(_Compute):
    """A matmul with what the array still holds."""

    FUNCT, MNEMONIC = 5, "compute.accumulated"


@dataclass(frozen=True)
class Flush(Command):
    """Forget translated addresses; `skip` gives up the access that waits for one."""

    FUNCT, MNEMONIC = 7, "flush"
    skip: int = bits(1, 0, 1)


@dataclass(frozen=True)
class LoopBounds(Command):
    FUNCT, MNEMONIC = 9, "loop_ws.bounds"
    pad_i: int = bits(1, 0, 16)
    pad_j: int = bits(1, 16, 16)
    pad_k: int = bits(1, 32, 16)
    i: int = bits(2, 0, 16)
    j: int = bits(2, 16, 16)
    k: int = bits(2, 32, 16)


@dataclass(frozen=True)
class LoopAddressesAB(Command):
    FUNCT, MNEMONIC = 10, "loop_ws.addresses_ab"
    a: Dram = bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    b: Dram = bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopAddressesDC(Command):
    FUNCT, MNEMONIC = 11, "loop_ws.addresses_dc"
    d: Dram = bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    c: Dram = bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopStridesAB(Command):
    FUNCT, MNEMONIC = 12, "loop_ws.strides_ab"
    a: int = bits(1, 0, 64)
    b: int = bits(2, 0, 64)


@dataclass(frozen=True)
class LoopStridesDC(Command):
    FUNCT, MNEMONIC = 13, "loop_ws.strides_dc"
    d: int = bits(1, 0, 64)
    c: int = bits(2, 0, 64)


@dataclass(frozen=True)
class LoopWs(Command):
    """A tile's whole matmul, or with `resadd` the sum of two tiles."""

    FUNCT, MNEMONIC = 8, "loop_ws"
    accumulate: int = bits(1, 0, 1)
    full_c: int = bits(1, 1, 1)
    low_d: int = bits(1, 2, 1)
    activation: int = bits(1, 8, 3)
    b_spad_id: int = bits(1, 16, 2)
    a_spad_id: int = bits(1, 18, 2)
    a_transpose: int = bits(2, 0, 1)
    b_transpose: int = bits(2, 1, 1)
    resadd: int = bits(2, 2, 1)


@dataclass(frozen=True)
class LoopConv1(Command):
    FUNCT, MNEMONIC = 16, "loop_conv_ws.1"
    batch_size: int = bits(1, 0, 16)
    in_row_dim: int = bits(1, 16, 16)
    in_channels: int = bits(1, 32, 16)
    out_channels: int = bits(1, 48, 16)
    out_row_dim: int = bits(2, 0, 16)
    pool_out_row_dim: int = bits(2, 16, 16)
    out_col_dim: int = bits(2, 32, 16)
    stride: int = bits(2, 48, 8)
    padding: int = bits(2, 56, 8)


@dataclass(frozen=True)
class LoopConv2(Command):
    FUNCT, MNEMONIC = 17, "loop_conv_ws.2"
    pool_padding: int = bits(1, 0, 8)
    pool_stride: int = bits(1, 8, 8)
    pool_size: int = bits(1, 16, 16)
    pool_out_col_dim: int = bits(1, 32, 16)
    kernel_dim: int = bits(1, 48, 16)
    pochs: int = bits(2, 0, 16)
    pocols: int = bits(2, 16, 16)
    porows: int = bits(2, 32, 16)
    batches: int = bits(2, 48, 16)


@dataclass(frozen=True)
class LoopConv3(Command):
    FUNCT, MNEMONIC = 18, "loop_conv_ws.3"
    lpad: int = bits(1, 0, 16)
    kchs: int = bits(1, 16, 16)
    kcols: int = bits(1, 32, 16)
    krows: int = bits(1, 48, 16)
    in_col_dim: int = bits(2, 0, 16)
    plpad: int = bits(2, 16, 8)
    dpad: int = bits(2, 24, 8)
    upad: int = bits(2, 32, 16)
    rpad: int = bits(2, 48, 16)


@dataclass(frozen=True)
class LoopConv4(Command):
    FUNCT, MNEMONIC = 19, "loop_conv_ws.4"
    kernel_dilation: int = bits(1, 0, 8)
    pdpad: int = bits(1, 10, 8)
    pupad: int = bits(1, 21, 8)
    prpad: int = bits(1, 32, 16)
    orows: int = bits(1, 48, 16)
    ocols: int = bits(2, 0, 16)
    out_stride: int = bits(2, 16, 16)
    weight_stride: int = bits(2, 32, 16)
    in_stride: int = bits(2, 48, 16)


@dataclass(frozen=True)
class LoopConv5(Command):
    FUNCT, MNEMONIC = 20, "loop_conv_ws.5"
    weights: Dram = bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    output: Dram = bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopConv6(Command):
    FUNCT, MNEMONIC = 21, "loop_conv_ws.6"
    bias: Dram = bits(1, 0, 64, 0, "dram")  # noqa: RUF009
    input: Dram = bits(2, 0, 64, 0, "dram")  # noqa: RUF009


@dataclass(frozen=True)
class LoopConvWs(Command):
    """A tile's whole convolution, with max pooling if asked for."""

    FUNCT, MNEMONIC = 15, "loop_conv_ws"
    no_bias: int = bits(1, 0, 1)
    wrot180: int = bits(1, 1, 1)
    trans_output_1203: int = bits(1, 2, 1)
    trans_weight_1203: int = bits(1, 3, 1)
    trans_weight_0132: int = bits(1, 4, 1)
    trans_input_3120: int = bits(1, 5, 1)
    depthwise: int = bits(1, 6, 1)
    max_pixels_per_row: int = bits(1, 8, 8, 1)
    b_spad_id: int = bits(1, 16, 2)
    a_spad_id: int = bits(1, 18, 2)
    no_pool: int = bits(2, 0, 1)
    downsample: int = bits(2, 1, 1)
    input_dilated: int = bits(2, 2, 1)
    activation: int = bits(2, 3, 2)


@dataclass(frozen=True)
class Counter(Command):
    """Read, set or reset performance counters; the one command with a result."""

    FUNCT, MNEMONIC = 126, "counter"
    reset: int = bits(1, 0, 1)
    snapshot_reset: int = bits(1, 1, 1)
    snapshot: int = bits(1, 2, 1)
    configure: int = bits(1, 3, 1)
    index: int = bits(1, 4, 3)
    event: int = bits(1, 12, 6)
    external: int = bits(1, 31, 1)


COMMANDS: tuple[type[Command], ...] = (
    ConfigExecute, ConfigLoad, ConfigStore, ConfigNorm, Mvin, Mvin2, Mvin3, Mvout,
    Preload, ComputePreloaded, ComputeAccumulated, Flush,
    LoopWs, LoopBounds, LoopAddressesAB, LoopAddressesDC, LoopStridesAB, LoopStridesDC,
    LoopConvWs, LoopConv1, LoopConv2, LoopConv3, LoopConv4, LoopConv5, LoopConv6, Counter,
)  # fmt: skip
"""Every command there is."""

_BY_NUMBER = {(command.FUNCT, command.SELECTOR): command for command in COMMANDS}


def decode(funct: int, rs1: int, rs2: int) -> Command:
    """Decode the command that the port carries."""
    selector = rs1 & 3 if funct == ConfigExecute.FUNCT else None
    kind = _BY_NUMBER.get((funct, selector))
    if kind is None:
        raise UnsupportedError(f"there is no command with the number {funct}")
    return kind.decode(rs1, rs2)
