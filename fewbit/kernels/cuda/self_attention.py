"""Multi-head self-attention with its projections: x to queries, keys and values, attention, output.

Three launches, and nothing between them. One matmul makes queries, keys and values of all heads,
[batch, length, 3, heads, size]; attention reads them there, and stores heads side by side, in rows
that the last matmul takes. The compiler makes the same of a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fewbit.errors import UnsupportedError, UsageError
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.attention_wgmma import ATTENTION_WGMMA
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.convolution import Convolution, Epilogue
from fewbit.kernels.cuda.family import Config, Family, Problem
from fewbit.kernels.cuda.plan import BYTES, Argument, Buffer, Launch, Plan, Pointer, Scalar


@dataclass(frozen=True)
class SelfAttention:
    """y[b, i] = out(attention(queries, keys, values of x)); weights are [outputs, inputs]."""

    batch: int
    heads: int
    length: int
    size: int
    causal: bool = False
    dtype: str = "f16"

    @property
    def width(self) -> int:
        return self.heads * self.size

    @property
    def projection(self) -> Convolution:
        """The first matmul, as a convolution of one tap."""
        return self._matmul(3 * self.width)

    @property
    def attention(self) -> Attention:
        inner = (self.length * 3 * self.width, self.size, 3 * self.width)
        outer = (self.length * self.width, self.size, self.width)
        return Attention(
            self.batch,
            self.heads,
            self.length,
            self.length,
            self.size,
            self.causal,
            dtype=self.dtype,
            strides=(inner, inner, inner, outer),
        )

    @property
    def output_projection(self) -> Convolution:
        """The last matmul."""
        return self._matmul(self.width)

    def _matmul(self, filters: int) -> Convolution:
        rows = self.batch * self.length
        finish = Epilogue(bias=True)
        return Convolution(rows, 1, 1, self.width, filters, 1, 1, dtype=self.dtype, epilogue=finish)

    @property
    def operations(self) -> int:
        parts = (self.projection, self.attention, self.output_projection)
        return sum(part.operations for part in parts)

    @property
    def bytes(self) -> int:
        """The fewest that a run can move."""
        return sum(b.bytes for b in self.buffers().values() if b.role != "work")

    def buffers(self) -> dict[str, Buffer]:
        rows, width = (self.batch, self.length), self.width
        return {
            "x": Buffer(self.dtype, (*rows, width)),
            "qkv_weight": Buffer(self.dtype, (3 * width, width)),
            "qkv_bias": Buffer("f32", (3 * width,)),
            "out_weight": Buffer(self.dtype, (width, width)),
            "out_bias": Buffer("f32", (width,)),
            "qkv": Buffer(self.dtype, (*rows, 3, self.heads, self.size), "work"),
            "heads": Buffer(self.dtype, (*rows, self.heads, self.size), "work"),
            "y": Buffer(self.dtype, (*rows, width), "out"),
        }

    @staticmethod
    def parse(text: str) -> SelfAttention:
        """Parse `32x12x197x64`: sequences, heads, length, size of a head; `,causal`."""
        match = re.fullmatch(r"(\d+)x(\d+)x(\d+)x(\d+)(,causal)?", text.strip())
        if match is None:
            raise UsageError(
                f"'{text}' is no shape of attention",
                hint="write 32x12x197x64 (batch, heads, length, size) and, if needed, ,causal",
            )
        batch, heads, length, size = (int(part) for part in match.groups()[:4])
        return SelfAttention(batch, heads, length, size, match.group(5) is not None)

    def __str__(self) -> str:
        sizes = f"{self.batch}x{self.heads}x{self.length}x{self.size}"
        return sizes + (",causal" if self.causal else "")


def refuse(problem: SelfAttention, arch: Arch) -> str | None:
    """Return why it is not three launches, if it is not."""
    return ATTENTION_WGMMA.refuse(problem.attention, arch)


def self_attention_plan(problem: SelfAttention, arch: Arch) -> Plan:
    """Return the plan, with the best settings known."""
    reason = refuse(problem, arch)
    if reason is not None:
        raise UnsupportedError(f"there is no plan for {problem}: {reason}")
    width = problem.width * BYTES[problem.dtype]
    qkv = {name: Pointer("qkv", i * width) for i, name in enumerate("qkv")}
    first = {"x": Pointer("x"), "w": Pointer("qkv_weight"), "bias": Pointer("qkv_bias")}
    last = {"x": Pointer("heads"), "w": Pointer("out_weight"), "bias": Pointer("out_bias")}
    attention = problem.attention
    parts = (
        (_matmul(problem.projection, arch), {**first, "y": Pointer("qkv")}),
        (
            _best(ATTENTION_WGMMA, "attention", f"{attention}|{attention.dtype}", attention, arch),
            {**qkv, "lengths": Pointer("x"), "y": Pointer("heads")},
        ),
        (_matmul(problem.output_projection, arch), {**last, "y": Pointer("y")}),
    )
    launches, images = list[Launch](), list[bytes]()
    for plan, places in parts:
        for launch in plan.launches:
            given = tuple(_bind(argument, places) for argument in launch.arguments)
            launches.append(replace(launch, image=launch.image + len(images), arguments=given))
        images += plan.images
    return Plan("self_attention", arch.code, problem.buffers(), tuple(launches), tuple(images))


def _matmul(problem: Convolution, arch: Arch) -> Plan:
    key = f"{problem}|{problem.dtype}|nhwc"
    return _best(LADDER["wgmma"], "conv2d", key, problem, arch)


def _best(family: Family[Problem], kind: str, key: str, problem: Problem, arch: Arch) -> Plan:
    known = table.find(arch, kind, key, family.name)
    config: Config = family.configs(problem, arch)[0] if known is None else known.config
    return family.build(problem, config, arch)


def _bind(argument: Argument, places: Mapping[str, Pointer]) -> Argument:
    if isinstance(argument, Scalar):
        return argument
    place = places[argument.buffer]
    if isinstance(argument, Pointer):
        return place
    return replace(argument, buffer=place.buffer, offset=place.offset)
