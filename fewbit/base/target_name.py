"""The name of a target as users write it, `cpu:riscv64`: the one place that takes it apart."""

from __future__ import annotations

from typing import NamedTuple


class TargetName(NamedTuple):
    kind: str
    """By which the registry knows the target."""
    detail: str = ""
    """What stands behind the colon, which is the target's own matter."""

    @classmethod
    def parse(cls, text: str) -> TargetName:
        kind, _, detail = text.partition(":")
        return cls(kind, detail)

    def __str__(self) -> str:
        return f"{self.kind}:{self.detail}" if self.detail else self.kind
