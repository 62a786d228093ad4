"""What a transformation did to a model, and what it left alone and why.

Nothing is skipped silently: a module that looks like a candidate and was not transformed is in
`left` with a reason in words. Callers who care pass a report in and read it afterwards, so that
the functions can return the model alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fused:
    """`module` was folded into `layers`, or exchanged a scale with them (module paths)."""

    module: str
    layers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.module} -> {', '.join(self.layers)}"


@dataclass(frozen=True)
class Left:
    """`module` was left as it is."""

    module: str
    reason: str

    def __str__(self) -> str:
        return f"{self.module} left: {self.reason}"


@dataclass
class FusionReport:
    """Filled by the function it is passed to: `fuse_batch_norm(model, x, report=report)`."""

    fused: list[Fused] = field(default_factory=list[Fused])
    left: list[Left] = field(default_factory=list[Left])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(layer, module) for every layer that took part."""
        return [(layer, entry.module) for entry in self.fused for layer in entry.layers]

    def reason(self, module: str) -> str | None:
        """Why `module` was left; None if it was not."""
        return next((entry.reason for entry in self.left if entry.module == module), None)

    def __str__(self) -> str:
        return "\n".join(str(entry) for entry in [*self.fused, *self.left]) or "nothing to do"
