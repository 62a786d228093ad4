"""The program of the accelerator: a block of tiled loops for each layer, as JSON.

The original simulator has no instructions in bytes, so this is a form of our own. A block names its
loops, the outermost first, and says inside how many of them each stream is loaded: sums are also
stored where they were loaded. Inside all loops a tile is computed.
"""

from __future__ import annotations

from typing import Literal

from fewbit.base.folders import Record
from fewbit.targets.bitfusion.accelerator import MICO, Accelerator
from fewbit.targets.bitfusion.bricks import digit_count
from fewbit.targets.bitfusion.layer import Layer
from fewbit.targets.bitfusion.schedule import Schedule, plan, residence

Stream = Literal["weight", "act", "out"]
LoopName = Literal["batch", "columns", "rows", "inputs", "outputs"]


class Loop(Record):
    """A loop over tiles of one dimension."""

    over: LoopName
    count: int
    tile: int


class Transfer(Record):
    """What is loaded at each iteration of the innermost of so many loops."""

    stream: Stream
    inside: int
    bits: int


class Shape(Record):
    """A convolution, or a matmul where `image` and `kernel` are 1 x 1; channels of one group."""

    batch: int
    inputs: int
    outputs: int
    image: tuple[int, int]
    """Rows and columns of the output."""
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    dilation: tuple[int, int]


class Block(Record):
    """One layer."""

    layer: str
    shape: Shape
    groups: int
    """How often the block runs, on the next channels each time."""
    act_bits: int
    weight_bits: int
    bricks: tuple[int, int]
    """Digits of an activation and of a weight; their product is the bricks of a multiplication."""
    unfolded: bool
    """Whether the host lays out the window of each pixel (im2col)."""
    loops: tuple[Loop, ...]
    transfers: tuple[Transfer, ...]

    def for_batch(self, batch: int, accelerator: Accelerator) -> Block:
        """Return the same layer for a batch of another size, scheduled anew."""
        if batch == self.shape.batch:
            return self
        shape = self.shape.model_copy(update={"batch": batch})
        bits = self.act_bits, self.weight_bits
        return make_block(self.layer, shape, self.groups, bits, self.unfolded, accelerator)

    @property
    def cost_layer(self) -> Layer:
        """The layer as the cost model takes it, with all groups."""
        shape = self.shape
        return Layer(
            shape.batch,
            shape.inputs * self.groups,
            shape.outputs * self.groups,
            self.act_bits,
            self.weight_bits,
            shape.image,
            shape.kernel,
            shape.stride,
            self.groups,
            self.unfolded,
        )


class Blocks(Record):
    """All layers that the accelerator runs, in the order of the program."""

    format: Literal["fewbit-bitfusion"] = "fewbit-bitfusion"
    version: Literal[1] = 1
    accelerator: str
    """By its name: what it is scheduled for."""
    blocks: tuple[Block, ...]


def make_block(
    layer: str,
    shape: Shape,
    groups: int,
    bits: tuple[int, int],
    unfolded: bool,
    accelerator: Accelerator = MICO,
) -> Block:
    """Return the block of a layer, by its best schedule; `bits` are of activations and weights."""
    act_bits, weight_bits = bits
    single = Layer(
        shape.batch,
        shape.inputs,
        shape.outputs,
        act_bits,
        weight_bits,
        shape.image,
        shape.kernel,
        shape.stride,
        im2col=unfolded,
    )
    schedule, _ = plan(single, accelerator)
    turning = {loop: count for loop, count in schedule.counts.items() if count > 1}
    held = residence(single, Schedule(turning, schedule.tile), accelerator)
    return Block(
        layer=layer,
        shape=shape,
        groups=groups,
        act_bits=act_bits,
        weight_bits=weight_bits,
        bricks=(digit_count(act_bits), digit_count(weight_bits)),
        unfolded=unfolded,
        loops=tuple(
            Loop.model_validate({"over": loop, "count": count, "tile": schedule.tile[loop]})
            for loop, count in turning.items()
        ),
        transfers=tuple(
            Transfer.model_validate({"stream": stream, "inside": inside, "bits": size})
            for stream, (inside, size) in held.items()
        ),
    )
