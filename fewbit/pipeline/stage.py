"""A pipeline as a value: a tuple of named stages, each a tuple of passes by their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fewbit.errors import UsageError
from fewbit.pipeline.passes import Form


@dataclass(frozen=True)
class Stage:
    """Where a compilation can be stopped, looked into and added to."""

    name: str
    passes: tuple[str, ...] = ()
    suffix: str = ".mlir"
    """The ending of a file with its text."""
    form: Form = "xdsl"
    """What holds the program after it, and so which passes of the user's may follow."""


@dataclass(frozen=True)
class Pipeline:
    stages: tuple[Stage, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(stage.name for stage in self.stages)

    def __getitem__(self, name: str) -> Stage:
        return self.stages[self._index(name)]

    def until(self, last: str) -> Pipeline:
        """Return the stages up to this one."""
        return Pipeline(self.stages[: self._index(last) + 1])

    def after(self, first: str) -> Pipeline:
        """Return the stages behind this one."""
        return Pipeline(self.stages[self._index(first) + 1 :])

    def replace_stages(self, *stages: Stage) -> Pipeline:
        """Return the pipeline with some stages in the place of those of the same names."""
        by_name = {stage.name: stage for stage in stages}
        unknown = by_name.keys() - set(self.names)
        assert not unknown, f"no stages {unknown}"
        return Pipeline(tuple(by_name.get(stage.name, stage) for stage in self.stages))

    def with_passes(self, name: str, passes: Sequence[str]) -> Pipeline:
        """Return the pipeline with other passes in one stage."""
        return self.replace_stages(replace(self[name], passes=tuple(passes)))

    @property
    def text(self) -> str:
        """All passes as one list, which `fewbit-opt -p` takes."""
        return ",".join(spec for stage in self.stages for spec in stage.passes)

    def _index(self, name: str) -> int:
        if name not in self.names:
            hint = f"stages are {', '.join(self.names)}"
            raise UsageError(f"there is no stage '{name}'", hint=hint)
        return self.names.index(name)
