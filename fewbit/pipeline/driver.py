"""The one driver: runs pipelines, verifies, inserts, times, shows and stops.

`fewbit-opt` verifies after each pass. A compilation verifies the program that it is given and what
passes of the user's made of it. Where somebody looks at stages, or `FEWBIT_VERIFY` is set, as in
all tests, it verifies each stage. Otherwise passes of ours are trusted until upstream's parser,
which verifies all that it reads: to do it in Python too was a fifth of the time of a compilation.

Observers are told of every pass, watchers of every stage; dumps, diffs and times come from them. A
module that fails verification is shown to observers all the same, since that is when one wants to
see it; then the error leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from fewbit.errors import Error, PassError, Place
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.forms import form_of, text_of, verify_module
from fewbit.pipeline.passes import Conversion, FunctionPass, Pass, input_form
from fewbit.pipeline.registry import resolve
from fewbit.pipeline.stage import Pipeline, Stage
from fewbit.pipeline.to_upstream import ToUpstream

Given = str | Callable[[Any], None]
"""A pass of the user's: by its text, or a function of the module."""
Inserted = Mapping[str, Sequence[Given]]
"""Passes to run after a stage, by its name."""
Watcher = Callable[[str, str], None]
"""Told the name of a stage and the text of the program after it."""


@dataclass(frozen=True)
class Step:
    """One pass that was run; number 0 is the program as it was given."""

    number: int
    name: str
    spec: str
    """The pass with its options."""
    seconds: float
    stage: str = ""


class Observer(Protocol):
    def __call__(self, step: Step, module: Any, /) -> None: ...


@dataclass
class Driver:
    """How pipelines are run; the same for `fewbit-opt` and for every target."""

    ctx: CompileContext
    inserted: Inserted
    watch: Watcher | None = None
    observers: Sequence[Observer] = ()
    verify_passes: bool = False
    """Whether a module is verified after each pass, too."""
    verify_stages: bool = True
    """Whether what passes of ours made in xDSL is verified after each stage."""
    steps: int = 0

    def run(self, pipeline: Pipeline, module: Any) -> Any:
        """Run all stages and return the program after the last."""
        for stage in pipeline.stages:
            module = self.run_stage(stage, module)
        return module

    def run_stage(self, stage: Stage, module: Any) -> Any:
        for spec in stage.passes:
            module = self.run_pass(resolve(spec, form_of(module)), module, stage.name)
        if self.verify_stages or not stage.passes or form_of(module) != "xdsl":
            verify_module(module, stage.name)
        for given in self.inserted.get(stage.name, ()):
            each = FunctionPass(given) if callable(given) else resolve(given, form_of(module))
            module = self.run_pass(each, module, stage.name)
            verify_module(module, stage.name)
        if self.watch is not None:
            self.watch(stage.name, text_of(module))
        return module

    def run_pass(self, each: Pass, module: Any, stage: str = "") -> Any:
        """Apply a pass; an error names the pass that raised it or broke the module."""
        start = perf_counter()
        module = self._apply(each, module)
        self.steps += 1
        step = Step(self.steps, each.name, str(each), perf_counter() - start, stage)
        self.show(step, module)
        return module

    def show(self, step: Step, module: Any) -> None:
        """Verify a module if that is wanted, and tell observers."""
        if self.verify_passes:
            try:
                verify_module(module, step.name if step.number else None)
            except Error:
                # Printing an invalid module may fail too, and must not hide why it is invalid.
                with suppress(Exception):
                    self._tell(step, module)
                raise
        self._tell(step, module)

    def _tell(self, step: Step, module: Any) -> None:
        for observer in self.observers:
            observer(step, module)

    def _apply(self, each: Pass, module: Any) -> Any:
        try:
            module = self._convert_for(each, module)
            if isinstance(each, Conversion):
                return each.convert(self.ctx, module)
            each.apply(self.ctx, module)
        except Error as e:
            raise e.at(stage=each.name) from e.__cause__
        except Exception as e:
            # A pass of xDSL or of a plug-in may raise anything; what it was working on is known.
            raise PassError(
                f"the pass failed: {type(e).__name__}: {e}",
                place=Place(stage=each.name),
                hint="--debug shows where, and --dump-ir the program before it",
            ) from e
        return module

    def _convert_for(self, each: Pass, module: Any) -> Any:
        """Convert the module to the form that a pass takes: from xDSL to upstream, where needed."""
        if input_form(each) == "upstream" and form_of(module) == "xdsl":
            return ToUpstream().convert(self.ctx, module)
        return module
