"""What a kernel must know of a processor: how wide a vector is, and how many registers hold one.

An `Isa` names an LLVM target in full (triple, processor, features), so the code that compiles a
module needs nothing else. The shape of a tile follows from the registers alone: the accumulators
of a tile stay in registers for a whole reduction, so they, a vector of weights each and a
broadcast must fit.

Names without a system mean Linux; `x86-64-v3-windows` is the same processor with another triple.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace

from fewbit.errors import UnsupportedError
from fewbit.toolchain.llvm import host_features, host_processor
from fewbit.toolchain.system import LINUX, MACOS, SYSTEMS, System, host_system, system_of

FLOAT_BITS = 32
TALLEST = 12
"""The most rows of a tile: each has a pointer, in a register if it can."""


@dataclass(frozen=True)
class DotProduct:
    """How a processor multiplies integers: `step` factors of a lane at once, added to its sum.

    `kernels/integer/dot.py` has, under the same name, the instructions.
    """

    name: str
    step: int
    """Integers that are multiplied and summed at once, for each lane."""
    factor_bits: int
    """What factors are widened to."""
    unsigned_weights: bool = False
    """Whether one of the factors must be unsigned: weights are, by a bias of 128."""
    popcount_bits: int = 0
    """Bits of x times bits of w, at most, whose dot products are faster by popcount."""
    popcount_feature: str = ""
    """What a processor must have for that."""
    operations: float = 1.0
    """Vector operations for a dot product; more are needed for each row and vector of weights."""
    row_operations: float = 0.0
    vector_operations: float = 0.0
    latency: float = 4.0


VNNI = DotProduct(
    name="vnni",
    step=4,
    factor_bits=8,
    unsigned_weights=True,
    popcount_bits=2,
    popcount_feature="avx512vpopcntdq",
    latency=5,
)
SDOT = DotProduct(name="sdot", step=4, factor_bits=8, popcount_bits=1)
MADD = DotProduct(
    name="madd",
    step=2,
    factor_bits=16,
    popcount_bits=3,
    operations=2,
    row_operations=1,
    vector_operations=1,
    latency=6,
)
PLAIN = DotProduct(
    name="plain",
    step=1,
    factor_bits=32,
    popcount_bits=2,
    operations=2,
    row_operations=1,
    vector_operations=1,
    latency=11,
)


@dataclass(frozen=True)
class Isa:
    """A processor to generate code for. `of` gives those known by name, `host` this machine."""

    name: str
    triple: str
    cpu: str
    features: str
    vector_bits: int
    """Bits of a vector register; 32 says that there are no vectors."""
    registers: int
    fma: bool = True
    """Whether multiply and add round once. Without it, they are two operations."""
    dot: DotProduct = PLAIN
    chosen_vectors: int = 0
    """Vectors in a row of the widest tile, if tuned; 0 is the default."""
    chosen_depth: int = 0
    """Elements of K in a cache block, if tuned; 0 is the default."""
    counts_bits: bool = True
    """Whether the narrowest integers are multiplied by popcount."""
    index_bits: int = 64
    """Bits of a size or an address."""
    abi: str = ""
    """How functions are called, where the triple leaves that open."""
    is_static: bool = False
    """Whether code stays where it is linked to be."""
    unrolls: bool = True
    """Whether LLVM may unroll loops."""

    @staticmethod
    def of(name: str) -> Isa:
        """Return the processor of this name; `host` is this machine."""
        if name == "host":
            return Isa.host()
        isa = _find(canonical_name(name))
        if isa is None:
            raise UnsupportedError(
                f"no kernels are generated for '{name}'",
                hint=f"one of: {', '.join((*names(), *elsewhere()))}, host",
            )
        return isa

    @staticmethod
    def host() -> Isa:
        """Return this machine, with every feature that it has."""
        features = host_features()
        known = family(host_architecture() or "", host_system())
        base = next((isa for isa in known if isa.runs_on(features)), None)
        if base is None:
            raise UnsupportedError(
                f"no kernels are generated for this machine ({platform.machine()})",
                hint=f"name a processor to compile for: {', '.join(names())}",
            )
        return replace(
            base,
            name="host",
            cpu=host_processor(),
            features=",".join(f"+{feature}" for feature in sorted(features)),
        )

    def runs_on(self, features: set[str], machine: str | None = None) -> bool:
        """Return whether a machine (by default this one) with these features executes this code."""
        is_here = self.architecture == host_architecture(machine) and self.system == host_system()
        return is_here and self.needs <= features

    @property
    def architecture(self) -> str:
        """The family of processors that this is one of: `x86_64`, `aarch64`, `riscv64`."""
        return self.triple.partition("-")[0]

    @property
    def processor(self) -> str:
        """The name without that of a system."""
        return _split(self.name)[0]

    @property
    def system(self) -> System:
        """The system that loads its libraries."""
        return system_of(self.triple)

    @property
    def baseline(self) -> Isa:
        """The processor of the family whose code all others execute."""
        if self.architecture == "x86_64":
            return replace(self, cpu="x86-64", features="")
        return on_system(Isa.of(self.architecture), self.system) or self

    @property
    def needs(self) -> set[str]:
        """Features that a processor must have to execute this code; for processors by name."""
        return _NEEDS[self.processor]

    @property
    def lanes(self) -> int:
        """Floats in a vector."""
        return self.vector_bits // FLOAT_BITS

    @property
    def step(self) -> int:
        """Integers of one dot product, for each lane."""
        return self.dot.step

    @property
    def bit_products(self) -> int:
        """The most bits of x times bits of w for which popcount is faster than multiplying."""
        feature = self.dot.popcount_feature
        is_missing = feature and f"+{feature}" not in self.features
        return 0 if is_missing or not self.counts_bits else self.dot.popcount_bits

    @property
    def tile_vectors(self) -> int:
        """Vectors in a row of the widest tile."""
        return self.chosen_vectors or (4 if self.registers >= 32 else 2)

    def tile_rows(self, vectors: int) -> int:
        """Return the rows of the tallest tile of this width."""
        return min(TALLEST, (self.registers - vectors - 2) // vectors)

    @property
    def panel_width(self) -> int:
        """Output channels of the widest panel of weights."""
        return self.tile_vectors * self.lanes

    @property
    def block_depth(self) -> int:
        """Elements of K in a cache block: so much of a panel and of the rows stays in cache."""
        return self.chosen_depth or 384


def names() -> tuple[str, ...]:
    """Return the processors that `Isa.of` knows."""
    return tuple(_KNOWN)


def elsewhere() -> tuple[str, ...]:
    """Return names of processors on systems other than Linux; any processor of a family has one."""
    return ("x86-64-windows", "x86-64-macos", "aarch64-macos", "aarch64-android")


def is_known(name: str) -> bool:
    """Return whether a name, of a processor or with that of a system, is one of ours."""
    return _find(canonical_name(name)) is not None


def canonical_name(name: str) -> str:
    """Return our name of a processor; that of an architecture is the one that all of it run."""
    processor, system = _split(name.lower())
    known = ALIASES.get(processor, processor if system else name)
    return f"{known}-{system}" if system else known


def on_system(isa: Isa, system: System) -> Isa | None:
    """Return the same processor on a system, or None where we know of no such machines."""
    if system is isa.system:
        return isa
    triple = _TRIPLES.get((isa.architecture, system.name))
    name, _ = _split(isa.name)
    if triple is None or (name, system) == ("aarch64-dotprod", MACOS):
        return None
    suffix = "" if system is LINUX else f"-{system.name}"
    found = replace(isa, name=f"{name}{suffix}", triple=triple)
    if (isa.architecture, system) != ("aarch64", MACOS):
        return found
    return replace(found, cpu="apple-m1", features="+neon,+dotprod", dot=SDOT)


_TRIPLES = {
    ("x86_64", "windows"): "x86_64-pc-windows-msvc",
    ("x86_64", "macos"): "x86_64-apple-macosx11.0.0",
    ("aarch64", "macos"): "aarch64-apple-macosx11.0.0",
    ("aarch64", "android"): "aarch64-linux-android23",
    ("aarch64", "linux"): "aarch64-unknown-linux-gnu",
    ("x86_64", "linux"): "x86_64-unknown-linux-gnu",
}


def _split(name: str) -> tuple[str, str]:
    """Return the names of a processor and of a system; the latter is empty for Linux."""
    processor, _, system = name.rpartition("-")
    return (processor, system) if system in ("windows", "macos", "android") else (name, "")


def _find(name: str) -> Isa | None:
    processor, system = _split(name)
    isa = _KNOWN.get(processor)
    return isa if isa is None or not system else on_system(isa, SYSTEMS[system])


def family(architecture: str, system: System = LINUX) -> tuple[Isa, ...]:
    """Return the processors of one architecture, best first."""
    on = (on_system(i, system) for i in _BY_PREFERENCE if i.architecture == architecture)
    return tuple(isa for isa in on if isa is not None)


def _x86(name: str, bits: int, registers: int, fma: bool = True) -> Isa:
    return Isa(name, "x86_64-unknown-linux-gnu", name, "", bits, registers, fma, MADD)


_V3 = _x86("x86-64-v3", 256, 16)
_V4 = _x86("x86-64-v4", 512, 32)
_VNNI = replace(_V4, name="x86-64-v4-vnni", features="+avx512vnni", dot=VNNI)
_ARM = Isa("aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon", 128, 32)
_KNOWN = {
    isa.name: isa
    for isa in (
        _x86("x86-64-v2", 128, 16, fma=False),
        _V3,
        replace(_V3, name="x86-64-v3-vnni", features="+avxvnni", dot=VNNI),
        _V4,
        _VNNI,
        replace(
            _VNNI,
            name="x86-64-v4-popcnt",
            features="+avx512vnni,+avx512vpopcntdq,+avx512bitalg,+gfni",
        ),
        _ARM,
        replace(_ARM, name="aarch64-dotprod", features="+neon,+dotprod", dot=SDOT),
        Isa("riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 32, 32),
        Isa(
            "riscv64-v",
            "riscv64-unknown-linux-gnu",
            "generic-rv64",
            "+m,+a,+f,+d,+c,+v,+zvl128b",
            128,
            32,
        ),
    )
}

ALIASES = {
    "arm64": "aarch64",
    "armv8": "aarch64",
    "amd64": "x86-64-v2",
    "x64": "x86-64-v2",
    "x86-64": "x86-64-v2",
    "x86_64": "x86-64-v2",
    "rv64gc": "riscv64",
    "rv64gcv": "riscv64-v",
}
"""What others call these processors: systems, containers, compilers."""

_SSE4 = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf"}
_AVX2 = _SSE4 | {"avx", "avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe"}
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_NEEDS = {
    "x86-64-v2": _SSE4,
    "x86-64-v3": _AVX2,
    "x86-64-v3-vnni": _AVX2 | {"avxvnni"},
    "x86-64-v4": _AVX512,
    "x86-64-v4-vnni": _AVX512 | {"avx512vnni"},
    "x86-64-v4-popcnt": _AVX512 | {"avx512vnni", "avx512vpopcntdq", "avx512bitalg", "gfni"},
    "aarch64": {"neon"},
    "aarch64-dotprod": {"neon", "dotprod"},
    "riscv64": set[str](),
    "riscv64-v": {"v"},
}

_BY_PREFERENCE = tuple(
    _KNOWN[name]
    for name in (
        *("x86-64-v4-popcnt", "x86-64-v4-vnni", "x86-64-v4"),
        *("x86-64-v3-vnni", "x86-64-v3", "x86-64-v2"),
        *("aarch64-dotprod", "aarch64", "riscv64-v", "riscv64"),
    )
)

_ARCHITECTURES = {
    "x86_64": "x86_64",
    "AMD64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "riscv64": "riscv64",
}


def host_architecture(machine: str | None = None) -> str | None:
    """Return the family of a machine's processor (by default this one's); None if unknown."""
    return _ARCHITECTURES.get(machine or platform.machine())
