"""What a kernel's blocks compute before their own work, where that is few numbers.

A kernel that takes a prologue calls it once, with all its threads, and finds what it made in shared
memory. The prologue waits for the launch before; the kernel asks for its weights earlier.
"""

from __future__ import annotations

from dataclasses import dataclass

_MACROS = ("DEVICE", "LANES", "THREAD", "TURN", "WIDTH", "WARPS", "BARRIER", "FROM", "WAIT")
"""What texts of prologues define, and kernels may define otherwise."""


@dataclass(frozen=True)
class Prologue:
    """A function `prologue` of shared memory, whether the block is the first, and pointers."""

    text: str
    """CUDA C++ that defines it; WIDTH is the number of threads, and WARPS that of warps."""
    types: tuple[str, ...]
    """What its pointers point to."""
    shared: int
    """Bytes of shared memory that it uses, from the first on."""
    places: tuple[tuple[str, int], ...]
    """Where it leaves operands of the kernel there."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(f"p{i}" for i in range(len(self.types)))

    def before(self, source: str, threads: int) -> str:
        """Return the source of a kernel with the prologue before it."""
        declared = "".join(f", {type} p{i}" for i, type in enumerate(self.types))
        given = "".join(f", {name}" for name in self.arguments)
        places = [f"#define {name.upper()}_AT {at}" for name, at in self.places]
        return "\n".join(
            [
                f"#define WIDTH {threads}",
                f"#define WARPS {threads // 32}",
                "#define AT_ONCE 4",
                self.text,
                *(f"#undef {name}" for name in _MACROS),
                f"#define PARAMETERS {declared}",
                f"#define PROLOGUE(memory, first) prologue(memory, first{given})",
                *places,
                source,
            ]
        )
