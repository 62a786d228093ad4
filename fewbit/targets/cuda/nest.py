"""Loops as CUDA C++: the body of a kernel or a function, and the memory it reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fewbit.targets.cuda.memory import Memory

BLOCK = 256
"""Threads of a block."""


@dataclass
class Nest:
    """A generated kernel, and where its arguments lie."""

    body: str
    """Statements, with `$` for the number of the thread, and `p0`, `p1` … for the pointers."""
    types: list[str]
    """What the pointers point to, and how: `const float*`."""
    threads: int
    """Each with an element, or a lane of its warp."""
    pointers: list[Memory]
    written: list[Memory]
    fill: float | None = None
    """What all elements become, if that is all it does."""
    copies: Memory | None = None
    """What it writes as it is, if that is all it does."""
    layer: str = ""
    work: int = 1
    """Turns of all loops together."""
    block: int = BLOCK
    """Threads of a block."""
    in_order: bool = False
    """Whether it is several loops, one after another, of one block."""
    may_alias: bool = True
    """Whether what it writes may be in what another pointer reads."""
    functions: str = ""
    """Definitions that its body calls, with `@` for its name."""
    read: frozenset[int] = frozenset()
    """The numbers of pointers from which it reads."""
    by_lanes: bool = False
    """Whether a warp shares each of its sums."""
    whole_body: str = ""
    """The same by all threads of a block together, if the order of its sums does not matter."""

    @property
    def text(self) -> str:
        """The definition of the kernel, with `@` for its name."""
        restrict = "" if self.may_alias else " __restrict__"
        parameters = ", ".join(f"{type}{restrict} p{i}" for i, type in enumerate(self.types))
        head = f'extern "C" __global__ void @({parameters}) {{\n'
        return f"{self.functions}{head}  WAIT;\n{self.body.replace('$', 'THREAD')}}}\n"

    def as_function(self, name: str, whole: bool = False) -> str:
        """Return the definition of a function of a thread's number and the pointers.

        `whole` is the one that all threads of a block execute together.
        """
        parameters = ", ".join(f"{type} p{i}" for i, type in enumerate(self.types))
        head = f"DEVICE void {name}(u64 thread, {parameters}) {{\n"
        return f"{head}{(self.whole_body if whole else self.body).replace('$', 'thread')}}}\n"

    @property
    def writes(self) -> list[Memory]:
        return self.written

    @property
    def reads(self) -> list[Memory]:
        return [memory for i, memory in enumerate(self.pointers) if i in self.read]

    def move(self, place: Callable[[Memory], Memory]) -> Nest:
        """Return the same loops on memory that lies elsewhere."""
        pointers, written = map(place, self.pointers), map(place, self.written)
        return replace(self, pointers=list(pointers), written=list(written))
