"""Benchmarks of single ops that a target has, each a subcommand of `fewbit bench`."""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.targets.options import Options


@dataclass(frozen=True)
class Bench:
    """A benchmark that a target has."""

    name: str
    help: str
    options: type[Options]
    place: str
    """The function, `package.module:function`: it takes the options by name, and `as_json`."""
