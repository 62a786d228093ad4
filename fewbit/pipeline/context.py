"""What passes know beside the module: the weight store, the target, and analysis results.

All but the store are *facts*: objects that are asked for by their class. A target puts in what it
is (`Isa`, `Hardware`, a BLAS library), a pass what later ones need (calls of kernels, the arena).
A pass that misses a fact says how to get it, because `fewbit-opt` runs passes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from fewbit.errors import UsageError
from fewbit.ir.context import register_dialects
from fewbit.program.program import Program
from fewbit.program.store import WeightStore

T = TypeVar("T")


@dataclass
class CompileContext(Context):
    """An xDSL context with weights and facts; any pass of xDSL takes it."""

    store: WeightStore = field(default_factory=WeightStore)
    recipe: str | None = None
    """How the program was quantized, for manifests."""
    facts: dict[type[Any], Any] = field(default_factory=dict[type[Any], Any])

    def put(self, fact: object, kind: type[Any] | None = None) -> None:
        """Keep a fact, under its own class or one that it is derived from."""
        self.facts[kind or type(fact)] = fact

    def find(self, kind: type[T]) -> T | None:
        """Return the fact of a class, if there is one."""
        return cast("T | None", self.facts.get(kind))

    def get(self, kind: type[T]) -> T:
        """Return the fact of a class, which must be there."""
        fact = self.find(kind)
        if fact is None:
            raise UsageError(
                f"a pass needs to know {_words(kind)}, and nothing before it said so",
                hint="give the target with -t, and run the passes in front of it too: "
                "'fewbit-opt --print-pipeline -t TARGET' prints all of them",
            )
        return fact

    def program(self, module: ModuleOp) -> Program:
        """Return a module with the weights that it refers to."""
        return Program(module, self.store, self.recipe)

    def clone(self) -> CompileContext:
        copy = make_compile_context(
            self.store, self.recipe, allow_unregistered=self.allow_unregistered
        )
        copy.facts = dict(self.facts)
        return copy


def make_compile_context(
    store: WeightStore | None = None,
    recipe: str | None = None,
    facts: Iterable[object] | Mapping[type[Any], object] = (),
    *,
    allow_unregistered: bool = False,
) -> CompileContext:
    """Make a context that knows every dialect; its store is a copy, to which passes may add."""
    own = WeightStore()
    if store is not None:
        own.merge(store)
    ctx = CompileContext(allow_unregistered=allow_unregistered, store=own, recipe=recipe)
    register_dialects(ctx)
    if isinstance(facts, Mapping):
        ctx.facts.update(cast("Mapping[type[Any], object]", facts))
    else:
        for fact in facts:
            ctx.put(fact)
    return ctx


def compile_context(ctx: Context) -> CompileContext:
    """Return the context of a pass that needs weights or facts; other tools give a plain one."""
    if isinstance(ctx, CompileContext):
        return ctx
    raise UsageError(
        "this pass needs the weights of a program or what its target is, which this tool has not",
        hint="run it with fewbit-opt or fewbit compile",
    )


def _words(kind: type[Any]) -> str:
    """Return the name of a class in words: `KernelCalls` is `the kernel calls`."""
    letters = "".join(f" {c.lower()}" if c.isupper() else c for c in kind.__name__)
    return f"the{letters}"
