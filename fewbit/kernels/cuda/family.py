"""What families of kernels have in common: a problem, and several settings to compute it with.

A family says whether it can compute a problem, with which settings it is worth trying, and compiles
one of them to a plan. Settings are plain numbers by name, so that a table of the best is JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.plan import Plan

Config = Mapping[str, int]
Problem = TypeVar("Problem")


@dataclass(frozen=True)
class Family(Generic[Problem]):
    """One way to compute problems of a kind."""

    name: str
    about: str
    refuse: Callable[[Problem, Arch], str | None]
    """Why it cannot compute the problem, if it cannot."""
    configs: Callable[[Problem, Arch], list[Config]]
    """Settings worth trying; the first is a good guess."""
    build: Callable[[Problem, Config, Arch], Plan]

    def plan(self, problem: Problem, arch: Arch, config: Config | None = None) -> Plan:
        """Return the compiled kernel; with the first of the settings if none are given."""
        reason = self.refuse(problem, arch)
        if reason is not None:
            raise UnsupportedError(f"'{self.name}' cannot compute {problem}: {reason}")
        return self.build(problem, config or self.configs(problem, arch)[0], arch)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
