"""A functional model: the state of the accelerator, and what every command does to it.

It computes what the hardware computes, command by command, in numpy, and counts what happens; it
knows no time. Loop commands are executed as the commands that the hardware expands them to
(`loop_matmul.py`, `loop_conv.py`). What leaves the accumulator as bytes goes from i32 to f32, times
the scale, is rounded half to even and saturated, then ReLU; read in full, it is i32, unchanged.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fewbit.errors import InterpretError, UnsupportedError
from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import ACCUMULATE, ACCUMULATOR, FULL, GARBAGE, Command
from fewbit.simulators.gemmini.commands import Act, Dataflow
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.loop_conv import ConvLoop, conv_commands
from fewbit.simulators.gemmini.loop_matmul import matmul_commands
from fewbit.simulators.gemmini.memory import Memory, rows_of
from fewbit.simulators.gemmini.normalization import Ints, Normalization, Step

ROW = 0x3FFFFFF
"""The bits of a local address that number a row."""


@dataclass
class Events:
    """What happened."""

    commands: int = 0
    """How many the host sent."""
    executed: Tally[str] = field(default_factory=Tally[str])
    """Commands by name, with those that loop commands were expanded to."""
    bytes_read: int = 0
    bytes_written: int = 0
    macs: int = 0
    """Multiplications of elements that are there; the padding of tiles is not counted."""

    @property
    def computes(self) -> int:
        return self.executed["compute.preloaded"] + self.executed["compute.accumulated"]

    def utilization(self, hardware: Hardware) -> float:
        """Return the part of the array's multiplications that were wanted, while it computed."""
        return self.macs / (self.computes * hardware.dim**3) if self.computes else 0.0

    def __sub__(self, before: Events) -> Events:
        return Events(
            self.commands - before.commands,
            self.executed - before.executed,
            self.bytes_read - before.bytes_read,
            self.bytes_written - before.bytes_written,
            self.macs - before.macs,
        )

    def copy(self) -> Events:
        return self - Events()


class Model:
    """One accelerator."""

    def __init__(self, hardware: Hardware | None = None) -> None:
        self.hardware = hardware or Hardware()
        dim = self.hardware.dim
        self.scratchpad = np.zeros((self.hardware.scratchpad_rows, dim), np.int8)
        self.accumulator = np.zeros((self.hardware.accumulator_rows, dim), np.int32)
        self.array = np.zeros((dim, dim), np.int32)
        """What the array holds: a weight, or the sums of the output-stationary dataflow."""
        self.execution = c.ConfigExecute()
        self.loads = [c.ConfigLoad(id=number) for number in range(3)]
        self.store = c.ConfigStore()
        self.softmax = False
        self.preloaded = c.Preload()
        self.normalization = Normalization()
        self.loop: dict[type[Command], Any] = {}
        self.conv_rows = (0, 0)
        """Where in the accumulator the next convolution's bias and sums begin."""
        self.counters = [0] * 8
        self.events = Events()

    def execute(self, funct: int, rs1: int, rs2: int, memory: Memory) -> int:
        """Execute a command and return its result, which only `counter` has."""
        command = c.decode(funct, rs1, rs2)
        self.events.commands += 1
        return self.run(command, memory)

    def run_all(self, commands: Iterable[Command], memory: Memory) -> None:
        for command in commands:
            self.execute(*command.encode(), memory)

    def run(self, command: Command, memory: Memory) -> int:
        self.events.executed[command.MNEMONIC] += 1
        match command:
            case c.Mvin():
                self._move_in(command, self.loads[0], memory)
            case c.Mvin2():
                self._move_in(command, self.loads[1], memory)
            case c.Mvin3():
                self._move_in(command, self.loads[2], memory)
            case c.Mvout():
                self._move_out(command, memory)
            case c.Preload():
                self.preloaded = command
            case c.ComputePreloaded():
                self._preload()
                self._compute(command)
            case c.ComputeAccumulated():
                self._compute(command)
            case c.ConfigExecute() | c.ConfigLoad() | c.ConfigStore() | c.ConfigNorm():
                self._configure(command)
            case c.LoopWs():
                self._loop_ws(command, memory)
            case c.LoopConvWs():
                self._loop_conv_ws(command, memory)
            case c.Counter():
                return self._counter(command)
            case c.Flush():
                pass  # Addresses are not translated here: there is nothing to forget.
            case _:
                self.loop[type(command)] = command
        return 0

    def _configure(self, command: Command) -> None:
        match command:
            case c.ConfigExecute(only_strides=1):
                kept = self.execution
                self.execution = replace(kept, a_stride=command.a_stride, c_stride=command.c_stride)
            case c.ConfigExecute():
                _check_transposes(command)
                self.execution = command
            case c.ConfigLoad():
                if command.id == 3:
                    raise UnsupportedError("there are three load configurations: 0, 1 and 2")
                self.loads[command.id] = command
            case c.ConfigStore():
                self.store = command
            case c.ConfigNorm():
                self.normalization.configure(command)
                if not command.only_stat_id:
                    self.softmax = bool(command.act_msb)
            case _:
                raise AssertionError(command)

    @property
    def _activation(self) -> Act:
        return Act.SOFTMAX if self.softmax else Act(self.store.activation)

    def _local(self, address: int, rows: int, stride: int = 1) -> Any:
        """Return a view of rows in either memory."""
        whole = self.accumulator if address & ACCUMULATOR else self.scratchpad
        first = address & ROW
        last = first + max(rows - 1, 0) * stride
        if last >= len(whole):
            name = "accumulator" if address & ACCUMULATOR else "scratchpad"
            raise InterpretError(f"row {last} is outside the {name}, which has {len(whole)}")
        return whole[first : last + 1 : stride] if stride else whole[[first] * rows]

    def _move_in(self, move: Any, config: c.ConfigLoad, memory: Memory) -> None:
        dim, rows, cols = self.hardware.dim, move.rows, move.cols
        wide = bool(move.local & ACCUMULATOR) and not config.shrunk
        if move.dram == 0:
            values = np.zeros((rows, cols), np.int32)
        else:
            size = 4 if wide else 1
            raw = np.ascontiguousarray(rows_of(memory, move.dram, rows, config.stride, cols * size))
            values = raw.view("<i4" if wide else np.int8)
            if not wide and config.scale != 1:
                values = _scale(values, np.float32(config.scale))
            self.events.bytes_read += rows * cols * size
        for first in range(0, cols, dim):
            part = values[:, first : first + dim]
            start = move.local + first // dim * config.block_stride
            self._place(part, start)
            for pixel in range(1, config.pixel_repeats):
                # Each row is kept beside its neighbour too, for convolutions of few channels.
                skipped = max(0, pixel - (start & ROW))
                self._place(part[skipped:], start - pixel + skipped, pixel * cols)

    def _place(self, part: Any, local: int, column: int = 0) -> None:
        rows, cols = part.shape
        if rows == 0:
            return
        if column + cols > self.hardware.dim:
            raise InterpretError(f"column {column + cols - 1} is outside a row of either memory")
        there = self._local(local, rows)[:, column : column + cols]
        if local & ACCUMULATOR and local & ACCUMULATE:
            there += part
        else:
            there[...] = part

    def _move_out(self, move: c.Mvout, memory: Memory) -> None:
        if self.store.pool_stride:
            self._pool_out(move, memory)
            return
        dim, rows, cols = self.hardware.dim, move.rows, move.cols
        parts = [self._local(move.local + start, rows) for start in range(0, cols, dim)]
        values = np.concatenate(parts, axis=1)[:, :cols]
        if move.local & ACCUMULATOR:
            step = Step(move.local >> 26 & 7)
            if step != Step.WRITE or self._activation in (Act.LAYERNORM, Act.SOFTMAX):
                for row in values:
                    for start in range(0, cols, dim):
                        last = start + dim >= cols
                        self.normalization.gather(
                            row[start : start + dim], step if last else step.inner
                        )
            if step != Step.WRITE:
                return
            values = self.normalization.apply(values, self._activation)
            if not move.local & FULL:
                values = self._requantize(values)
        raw = np.ascontiguousarray(values).view(np.uint8)
        assert isinstance(move.dram, int)
        rows_of(memory, move.dram, rows, self.store.stride, raw.shape[1])[...] = raw
        self.events.bytes_written += raw.size

    def _requantize(self, values: Ints) -> Any:
        """Scale, saturate and activate values, as bytes."""
        out = _scale(values, np.float32(self.store.scale))
        return np.maximum(out, 0) if self.store.activation == Act.RELU else out

    def _pool_out(self, move: c.Mvout, memory: Memory) -> None:
        config, channels = self.store, move.cols
        image = self._local(move.local, config.orows * config.ocols)[:, :channels]
        if move.local & ACCUMULATOR:
            image = self._requantize(image)
        image = image.reshape(config.orows, config.ocols, channels)
        size, stride = config.pool_size, config.pool_stride
        # What lies outside counts as 0, and not as the lowest value.
        reach = [(n - 1) * stride + size for n in (config.porows, config.pocols)]
        around = np.zeros((*reach, channels), np.int8)
        inner = around[config.upad :, config.lpad :]
        inner[: config.orows, : config.ocols] = image[: inner.shape[0], : inner.shape[1]]
        windows = np.lib.stride_tricks.sliding_window_view(around, (size, size), (0, 1))
        pooled = windows[::stride, ::stride].max(axis=(3, 4)).view(np.uint8)
        assert isinstance(move.dram, int)
        for row, values in enumerate(pooled):
            at = move.dram + row * config.pool_out_dim * config.stride
            rows_of(memory, at, config.pocols, config.stride, channels)[...] = values
        self.events.bytes_written += pooled.size

    def _preload(self) -> None:
        move, dim = self.preloaded, self.hardware.dim
        self.array = np.zeros((dim, dim), np.int32)
        if move.bd == GARBAGE:
            return
        if move.bd & ACCUMULATOR:
            raise UnsupportedError("the array is not preloaded from the accumulator")
        transposed = self.execution.dataflow == Dataflow.WEIGHT_STATIONARY and (
            self.execution.b_transpose
        )
        rows, cols = move.bd_rows, move.bd_cols
        there = self._local(move.bd, cols if transposed else rows)
        self.array[:rows, :cols] = there[:, :rows].T if transposed else there[:, :cols]

    def _compute(self, command: Any) -> None:
        config, out = self.execution, self.preloaded
        a = self._left(command)
        if config.dataflow == Dataflow.WEIGHT_STATIONARY:
            result = a @ self.array
            if command.bd != GARBAGE:
                rows, cols = command.bd_rows, command.bd_cols
                result[:rows, :cols] += self._local(command.bd, rows)[:, :cols]
        else:
            self.array = self.array + a @ self._right(command)
            result = self.array
        self.events.macs += command.a_rows * command.a_cols * out.c_cols
        if out.c == GARBAGE:
            return
        values = result[: out.c_rows, : out.c_cols]
        there = self._local(out.c, out.c_rows, config.c_stride)[:, : out.c_cols]
        if not out.c & ACCUMULATOR:
            shift = 0 if config.dataflow == Dataflow.WEIGHT_STATIONARY else config.shift
            few = np.clip(_shift(values, shift), -128, 127)
            there[...] = np.maximum(few, 0) if config.activation == Act.RELU else few
        elif out.c & ACCUMULATE:
            there += values
        else:
            there[...] = values

    def _left(self, command: Any) -> Ints:
        dim, config = self.hardware.dim, self.execution
        a = np.zeros((dim, dim), np.int32)
        if command.a == GARBAGE:
            return a
        rows, cols = command.a_rows, command.a_cols
        if config.a_transpose:
            a[:rows, :cols] = self._local(command.a, cols, config.a_stride)[:, :rows].T
        else:
            a[:rows, :cols] = self._local(command.a, rows, config.a_stride)[:, :cols]
        return a

    def _right(self, command: Any) -> Ints:
        b = np.zeros((self.hardware.dim, self.hardware.dim), np.int32)
        if command.bd == GARBAGE:
            return b
        rows, cols = command.bd_rows, command.bd_cols
        if self.execution.b_transpose:
            b[:rows, :cols] = self._local(command.bd, cols)[:, :rows].T
        else:
            b[:rows, :cols] = self._local(command.bd, rows)[:, :cols]
        return b

    def _loop_ws(self, command: c.LoopWs, memory: Memory) -> None:
        for each in matmul_commands(command, self.loop, self.hardware):
            self.run(each, memory)

    def _loop_conv_ws(self, command: c.LoopConvWs, memory: Memory) -> None:
        tile = ConvLoop.of(command, self.loop, self.hardware)
        for each in conv_commands(tile, *self.conv_rows, self.store):
            self.run(each, memory)
        bias_row, sum_row = self.conv_rows
        half, whole = self.hardware.half_accumulator, self.hardware.accumulator_rows
        self.conv_rows = (
            (bias_row + half * bool(tile.bias)) % whole,
            (sum_row + half * bool(tile.output)) % whole,
        )

    def _counter(self, command: c.Counter) -> int:
        """Read or set counters. Those of cycles stay 0: the model knows no time."""
        if command.reset:
            self.counters = [0] * len(self.counters)
        return self.counters[command.index]


def _check_transposes(command: c.ConfigExecute) -> None:
    a, b = command.a_transpose, command.b_transpose
    if command.dataflow == Dataflow.WEIGHT_STATIONARY and a and b:
        raise UnsupportedError("weight-stationary matmuls transpose A or B, not both")
    if command.dataflow == Dataflow.OUTPUT_STATIONARY and b and not a:
        raise UnsupportedError("output-stationary matmuls do not transpose B alone")


def _scale(values: Any, scale: np.float32) -> Any:
    """Multiply by the scale in f32, round half to even, and saturate."""
    return np.clip(np.rint(values.astype(np.float32) * scale), -128, 127).astype(np.int8)


def _shift(values: Ints, shift: int) -> Ints:
    """Divide by a power of two, rounded half to even."""
    if shift == 0:
        return values
    wide = values.astype(np.int64)
    down, remainder, half = wide >> shift, wide & (1 << shift) - 1, 1 << shift - 1
    up = (remainder > half) | ((remainder == half) & (down & 1 == 1))
    return (down + up).astype(np.int32)
