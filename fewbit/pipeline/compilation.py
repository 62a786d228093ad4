"""A program on its way through a pipeline: what it is now, and how far it has come.

To lower a program is to compile it and stop early: both are the same object, run to another stage.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.passes import ModulePass

from fewbit.pipeline.context import CompileContext, make_compile_context
from fewbit.pipeline.driver import Driver, Given, Inserted, Observer, Watcher
from fewbit.pipeline.forms import text_of
from fewbit.pipeline.registry import parse_passes
from fewbit.pipeline.stage import Pipeline
from fewbit.program.program import Program

VERIFY = "FEWBIT_VERIFY"
"""The environment variable with which each stage is verified, also if nobody looks at it."""


@dataclass
class Compilation:
    pipeline: Pipeline
    ctx: CompileContext
    module: Any
    """The program as the library holds it that the stage works with."""
    inserted: Inserted = field(default_factory=dict[str, Sequence[Given]])
    watch: Watcher | None = None
    observers: Sequence[Observer] = ()
    reached: str | None = None
    """The last stage that was run."""

    def run(self, last: str | None = None) -> Compilation:
        """Run up to a stage, or to the end."""
        pipeline = self.pipeline if last is None else self.pipeline.until(last)
        if self.reached is not None:
            pipeline = pipeline.after(self.reached)
        driver = Driver(
            self.ctx,
            self.inserted,
            self.watch,
            self.observers,
            verify_stages=self.is_watched or VERIFY in os.environ,
        )
        for stage in pipeline.stages:
            self.module = driver.run_stage(stage, self.module)
            self.reached = stage.name
        return self

    @property
    def is_watched(self) -> bool:
        """Whether somebody looks at stages or changes them."""
        return bool(self.inserted or self.watch or self.observers)

    @property
    def text(self) -> str:
        """The program after the last stage that was run, as text."""
        return text_of(self.module)

    @property
    def program(self) -> Program:
        """The module with its weights, while xDSL holds it."""
        return self.ctx.program(self.module)

    def branch(self, ctx: CompileContext, watch: Watcher | None) -> Compilation:
        """Return a compilation that goes on from here, with a module and context of its own."""
        return replace(self, ctx=ctx, module=self.module.clone(), watch=watch)


def run_passes(program: Program, *passes: str | ModulePass) -> Program:
    """Return a copy of a program, changed by passes on xDSL and verified after each."""
    return _run(replace(program, module=program.module.clone()), passes, verify=True)


def apply_passes(program: Program, *passes: str | ModulePass) -> Program:
    """Change a program by passes on xDSL, in place; whoever calls this verifies what it made."""
    return _run(program, passes, verify=False)


def _run(program: Program, passes: Sequence[str | ModulePass], *, verify: bool) -> Program:
    ctx = make_compile_context(program.store, program.recipe)
    driver = Driver(ctx, {}, verify_passes=verify)
    for each in passes:
        for one in parse_passes(each) if isinstance(each, str) else (each,):
            driver.run_pass(one, program.module)
    return replace(program, store=ctx.store)
