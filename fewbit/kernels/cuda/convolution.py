"""One convolution: its sizes, its types, and what a kernel takes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from math import inf, isfinite

from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.plan import BYTES, Buffer, Pointer

DTYPES = ("f32", "tf32", "f16", "bf16", "i8")
LAYOUTS = ("nhwc", "nchw")


@dataclass(frozen=True)
class Epilogue:
    """What is done to a sum before it is stored: clamp(sum + bias + add, low, high)."""

    bias: bool = False
    """A float for each filter."""
    add: bool = False
    """A tensor like the result."""
    low: float = -inf
    high: float = inf

    def defines(self) -> dict[str, str | int]:
        bounds = {"LOW": self.low, "HIGH": self.high}
        return {
            "HAS_EPILOGUE": 1,
            "HAS_BIAS": int(self.bias),
            "HAS_ADD": int(self.add),
            **{name: f"{bound!r}f" for name, bound in bounds.items() if isfinite(bound)},
        }


@dataclass(frozen=True)
class Convolution:
    """y[n, oh, ow, f] = sum of x[n, ih, iw, c] w[f, kh, kw, c], or channels-first (NCHW).

    Integers give their sums (i32); floats are summed in f32 and rounded to their own type.
    """

    batch: int
    height: int
    width: int
    channels: int
    filters: int
    kh: int
    kw: int
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    dtype: str = "f16"
    layout: str = "nhwc"
    epilogue: Epilogue | None = None
    """Floats only; the first of the ladder, Triton's and CUTLASS's have none."""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UsageError(f"'{self.dtype}' is no type of convolutions", hint=", ".join(DTYPES))
        if self.layout not in LAYOUTS:
            raise UsageError(f"'{self.layout}' is no layout", hint=" or ".join(LAYOUTS))
        if self.channels % self.groups or self.filters % self.groups:
            raise ShapeError(
                f"{self.channels} channels and {self.filters} filters do not make"
                f" {self.groups} groups"
            )
        if min(self.out_height, self.out_width, self.batch, self.channels, self.filters) < 1:
            raise ShapeError("the filter does not fit into the padded image")

    @property
    def out_height(self) -> int:
        return _places(self.height, self.kh, self.stride[0], self.padding[0], self.dilation[0])

    @property
    def out_width(self) -> int:
        return _places(self.width, self.kw, self.stride[1], self.padding[1], self.dilation[1])

    @property
    def pixels(self) -> int:
        """Outputs of one filter: M of the implicit GEMM."""
        return self.batch * self.out_height * self.out_width

    @property
    def depth(self) -> int:
        """Multiplications of one output: K of the implicit GEMM."""
        return self.kh * self.kw * self.channels // self.groups

    @property
    def operations(self) -> int:
        return 2 * self.pixels * self.filters * self.depth

    @property
    def unit(self) -> int:
        """Bytes of an input's element."""
        return BYTES[self.dtype]

    @property
    def result(self) -> str:
        return {"i8": "i32", "tf32": "f32"}.get(self.dtype, self.dtype)

    @property
    def is_depthwise(self) -> bool:
        return self.groups == self.channels == self.filters

    @property
    def bytes(self) -> int:
        """The fewest that a run can move."""
        return sum(buffer.bytes for buffer in self.buffers().values())

    def buffers(self) -> dict[str, Buffer]:
        inner = self.channels // self.groups
        x = (self.batch, self.height, self.width, self.channels)
        w = (self.filters, self.kh, self.kw, inner)
        y = (self.batch, self.out_height, self.out_width, self.filters)
        if self.layout == "nchw":
            x, w, y = ((s[0], s[3], s[1], s[2]) for s in (x, w, y))
        dtype = "f32" if self.dtype == "tf32" else self.dtype
        more: dict[str, Buffer] = {}
        if self.epilogue is not None and self.epilogue.bias:
            more["bias"] = Buffer("f32", (self.filters,))
        if self.epilogue is not None and self.epilogue.add:
            more["add"] = Buffer(self.result, y)
        return {
            "x": Buffer(dtype, x),
            "w": Buffer(dtype, w),
            **more,
            "y": Buffer(self.result, y, "out"),
        }

    def arguments(self) -> tuple[Pointer, ...]:
        """Return the arguments of a kernel after x and w; what is absent is not read."""
        y = Pointer("y")
        if self.epilogue is None:
            return (y,)
        bias = Pointer("bias") if self.epilogue.bias else y
        return y, bias, Pointer("add") if self.epilogue.add else y

    def defines(self) -> dict[str, str | int]:
        """Return the macros of the sources."""
        sizes = {
            "BATCH": self.batch,
            "HEIGHT": self.height,
            "WIDTH": self.width,
            "CHANNELS": self.channels,
            "FILTERS": self.filters,
            "KH": self.kh,
            "KW": self.kw,
            "OH": self.out_height,
            "OW": self.out_width,
            "GROUPS": self.groups,
            "NHWC": int(self.layout == "nhwc"),
        }
        for name in ("stride", "padding", "dilation"):
            short = "PAD" if name == "padding" else name.upper()
            sizes[f"{short}_H"], sizes[f"{short}_W"] = getattr(self, name)
        finish = {"HAS_EPILOGUE": 0} if self.epilogue is None else self.epilogue.defines()
        return {**element(self.dtype), **sizes, **finish}

    def check(self, arch: Arch) -> None:
        """Refuse what the generation's tensor cores do not have."""
        if self.dtype in ("bf16", "tf32") and not arch.has_bf16:
            raise UnsupportedError(
                f"{arch.name} has no {self.dtype} in its tensor cores", hint="use f16, or f32"
            )

    @staticmethod
    def parse(text: str) -> Convolution:
        """Parse `n32,56x56,64,64,k3`: images, size, channels, filters, filter size; then stride
        `s2`, padding `p0` (half of the filter if not given), dilation `d2`, groups `g4`; `p0x1` for
        rows and columns."""
        match = re.fullmatch(
            r"n(\d+),(\d+)x(\d+),(\d+),(\d+),k(\d+)(?:x(\d+))?((?:,[spdg]\d+(?:x\d+)?)*)",
            text.strip(),
        )
        if match is None:
            raise UsageError(
                f"'{text}' is no shape of a convolution",
                hint="write n32,56x56,64,64,k3 and, if needed, ,s2,p0,d2,g4",
            )
        n, h, w, c, f, kh = (int(part) for part in match.groups()[:6])
        kw = int(match.group(7) or kh)
        more = {part[0]: _pair(part[1:]) for part in match.group(8).split(",")[1:]}
        stride, dilation = more.get("s", (1, 1)), more.get("d", (1, 1))
        half = (kh // 2 * dilation[0], kw // 2 * dilation[1])
        groups = more.get("g", (1, 1))[0]
        return Convolution(n, h, w, c, f, kh, kw, stride, more.get("p", half), dilation, groups)

    def of(self, dtype: str, layout: str) -> Convolution:
        return replace(self, dtype=dtype, layout=layout)

    def __str__(self) -> str:
        more = [
            letter + _text(getattr(self, name))
            for letter, name in (("s", "stride"), ("p", "padding"), ("d", "dilation"))
            if getattr(self, name) != _default(self, name)
        ]
        groups = [f"g{self.groups}"] if self.groups > 1 else []
        k = "k" + _text((self.kh, self.kw))
        size = f"{self.height}x{self.width}"
        return ",".join(
            [f"n{self.batch}", size, str(self.channels), str(self.filters), k, *more, *groups]
        )


def _pair(text: str) -> tuple[int, int]:
    first, _, second = text.partition("x")
    return int(first), int(second or first)


def _text(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}x{pair[1]}"


def element(dtype: str) -> dict[str, int]:
    """Return the macro that names the type of a source's inputs."""
    return {f"ELEMENT_{'F32' if dtype == 'tf32' else dtype.upper()}": 1}


def _default(conv: Convolution, name: str) -> tuple[int, int]:
    if name == "padding":
        return (conv.kh // 2 * conv.dilation[0], conv.kw // 2 * conv.dilation[1])
    return next(f.default for f in fields(conv) if f.name == name)  # pyright: ignore[reportReturnType]


def _places(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
