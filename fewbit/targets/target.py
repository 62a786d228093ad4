"""What a target is: the stages that a program goes through, its options, and what runs the result.

`targets/registry.py` lists all of them by name. Nothing else knows one by its name: the command
line, `fewbit.compile`, `fewbit.load` and benchmarks ask the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fewbit.artifact import Folder
from fewbit.errors import UsageError
from fewbit.program import Program
from fewbit.quant.float_weights import FloatWeights

Pass = str | Callable[[Any], None]
Inserted = Mapping[str, Sequence[Pass]]
"""Passes to run after a stage, by its name."""
Watcher = Callable[[str, str], None]
"""Told the name of a stage and the text of the program after it."""

NO_TUNING = "none"
"""In the place of a tuning database: what searches found is not used."""


@dataclass(frozen=True)
class Request:
    """What is asked of a target."""

    target: str
    """As the user wrote it, `cpu:riscv64`."""
    name: str = "model"
    """What the result is called."""
    passes: Inserted = field(default_factory=dict[str, Sequence[Pass]])
    watch: Watcher | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The target's own, by their names in Python; those that were not given are absent."""
    float_weights: FloatWeights | None = None
    """Of a quantized program, weights that have no few bits; the manifest names them."""

    @property
    def detail(self) -> str:
        """What stands behind the colon."""
        return self.target.partition(":")[2]


class Target(ABC):
    """A kind of machine or runtime that programs are compiled for."""

    stages: tuple[str, ...]
    """In the order in which a program goes through them."""
    ours: tuple[str, ...]
    """Stages at which it is an xDSL module, which passes of ours run on."""
    upstream: tuple[str, ...] = ()
    """Stages at which upstream's passes run on it."""
    suffixes: Mapping[str, str] = MappingProxyType({})
    """Of files with the text after a stage, where that is not MLIR."""
    options: frozenset[str]
    """Names of the keyword arguments that `fewbit.compile` hands to it."""
    parts: tuple[str, ...] = ()
    """Names that may follow a stage's, `kernel:x86-64-v3`, where it has several texts."""

    @abstractmethod
    def check(self, request: Request) -> None:
        """Refuse what cannot be compiled, before any work is done."""

    @abstractmethod
    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        """Go through all stages and write an artifact."""

    @abstractmethod
    def lower(self, program: Program, stage: str, request: Request) -> str:
        """The text of a program after a stage."""

    @abstractmethod
    def load(self, folder: Folder) -> Any:
        """What runs an artifact on this machine: a function of arrays that gives a tuple."""

    def reads(self, path: Path) -> bool:
        """Whether the target's own compiler takes this file, and no program is made of it."""
        return False

    def compile_file(self, path: Path, request: Request, output: Path) -> Folder:
        """Write an artifact of a file that it `reads`."""
        raise NotImplementedError

    def check_stage(self, stage: str) -> None:
        if stage not in self.stages:
            hint = f"stages are {', '.join(self.stages)}"
            raise UsageError(f"there is no stage '{stage}'", hint=hint)

    def check_insertable(self, stage: str) -> None:
        places = (*self.ours, *self.upstream)
        if stage not in places:
            raise UsageError(
                f"no pass can be inserted after '{stage}'",
                hint=f"stages for passes are {', '.join(places)}",
            )
