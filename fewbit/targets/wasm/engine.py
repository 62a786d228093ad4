"""What a WebAssembly engine can do, as LLVM and our kernels know it.

An engine is a core of 32 bits with floats. `wasm` is what every engine runs; `wasm:simd` has
vectors of 128 bits, which browsers have had since 2021 to 2023; `wasm:relaxed` also has the dot
product of bytes, which is exact where one factor is from 0 to 127.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

from fewbit.base.target_name import TargetName
from fewbit.errors import UsageError
from fewbit.targets.mcu.core import Core
from fewbit.toolchain.isa import Isa

_ALWAYS = "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext"
VECTOR_BITS = 128


@dataclass(frozen=True)
class Engine(Core):
    """An engine, with the names by which LLVM knows it."""

    has_vectors: bool = False
    has_byte_dots: bool = False
    """Whether bytes are multiplied and added in fours, one factor from 0 to 127."""

    is_small = False
    has_offsets = True
    rounds_to_floats = True

    @property
    def isa(self) -> Isa:
        bits = VECTOR_BITS if self.has_vectors else 32
        return replace(super().isa, vector_bits=bits, registers=16, fma=False, unrolls=False)

    @property
    def vector_bits(self) -> int:
        return self.isa.vector_bits


def _engine(name: str, about: str, features: str = "", **has: bool) -> Engine:
    every = ",".join(filter(None, (_ALWAYS, features)))
    return Engine(name, about, "wasm32-unknown-unknown", "generic", every, "plain", True, "", **has)


ENGINES = {
    engine.name.partition(":")[2]: engine
    for engine in (
        _engine("wasm", "WebAssembly"),
        _engine("wasm:simd", "WebAssembly with vectors", "+simd128", has_vectors=True),
        _engine(
            "wasm:relaxed",
            "WebAssembly with vectors and dot products of bytes",
            "+simd128,+relaxed-simd",
            has_vectors=True,
            has_byte_dots=True,
        ),
    )
}
DETAILS = tuple(filter(None, ENGINES))


def engine_of(target: str) -> Engine:
    """Return the engine that `wasm` or `wasm:simd` means."""
    detail = TargetName.parse(target).detail
    if detail in ENGINES:
        return ENGINES[detail]
    close = get_close_matches(detail, DETAILS, n=1)
    meant = f"did you mean wasm:{close[0]}? " if close else ""
    raise UsageError(
        f"there is no target '{target}'",
        hint=f"{meant}there are wasm, wasm:{', wasm:'.join(DETAILS)}",
    )
