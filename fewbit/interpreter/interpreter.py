"""Runs a module on numpy: the oracle that every target must agree with.

An `Interpreter` walks blocks op by op and asks the registry for each op's semantics. Each block
is planned once: its ops with their semantics, operands and the values that die after them, so that
a deep network holds only what is still needed. Every result is checked against its type; a wrong
shape or numpy type stops the run where it arises. Values are unchanged by the run: nothing writes
into an array that an op was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.graph import SubgraphOp
from fewbit.errors import Error, InterpretError, UsageError
from fewbit.interpreter.registry import Entry, Jump, Leave, Outcome, find
from fewbit.interpreter.signature import check_arguments, choose_function
from fewbit.interpreter.values import Value, dtype_of, mismatch, shape_of
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import SymbolTable

if TYPE_CHECKING:
    from fewbit.interpreter.body import Body
    from fewbit.program.program import Program
    from fewbit.program.store import WeightStore

Observer: TypeAlias = Callable[[Operation, Sequence[Value]], None]
"""Called after every op outside of element-wise bodies, with the op's results."""

MAX_STEPS = 1_000_000
NONE: Mapping[str, str] = {}
"""No constants that are read in place of others."""
MAX_DEPTH = 100


def interpret(
    program: ModuleOp | Program,
    *args: ArrayLike,
    function: str | None = None,
    store: WeightStore | None = None,
) -> tuple[Value, ...]:
    """Run a function: the one named, else the only entry, `main` or `forward`.

    A program brings its own weights; those of a bare module are in `store`.
    """
    from fewbit.program.program import Program

    if isinstance(program, Program):
        kept = program.store if store is None else store
        return Interpreter(program.module, kept).call(function, args)
    if not isinstance(program, ModuleOp):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"a {type(program).__name__} cannot be interpreted",
            hint="pass a program, as import_model gives it, or a module, as parse does",
        )
    return Interpreter(program, store).call(function, args)


def evaluate_op(op: Operation, operands: Sequence[Any]) -> list[Value]:
    """Return the results of one op that stands alone, for constant folding."""
    check_semantics(op.walk())
    frame = Frame(Interpreter(ModuleOp([])))
    with np.errstate(all="ignore"):
        outcome = frame.execute(_plan_op(op, ()), operands)
    if isinstance(outcome, Leave | Jump):
        raise InterpretError("a terminator has no results", place=place_of(op))
    return list(outcome)


class Interpreter:
    """A module ready to run; its globals live as long as it does.

    The module must not change between calls. `observe` sees every op's results; `max_steps`
    bounds the blocks that one call may run, so that a loop that never ends is an error.
    """

    def __init__(
        self,
        module: ModuleOp,
        store: WeightStore | None = None,
        *,
        observe: Observer | None = None,
        max_steps: int | None = MAX_STEPS,
    ) -> None:
        self.module = module
        self.store = store
        self.observe = observe
        self.max_steps = max_steps
        self.symbols: Mapping[str, Operation] = SymbolTable(module)
        self.globals: dict[str, Value] = {}
        self.bodies: dict[Block, Body] = {}
        self._plans: dict[Block, list[Step]] = {}
        self._steps = 0
        self._depth = 0
        self._checked = False

    def call(self, name: str | None, args: Sequence[ArrayLike]) -> tuple[Value, ...]:
        """Run the function `name` (None: the entry) on arrays and return arrays that it owns."""
        function = choose_function(self.symbols, name)
        if not self._checked:
            check_semantics(self.module.walk())
            self._checked = True
        arguments = check_arguments(function, args)
        self._steps = self._depth = 0
        with np.errstate(all="ignore"):
            results = self.invoke(function, arguments)
        return tuple(np.array(result) for result in results)

    def call_symbol(
        self,
        name: str,
        of: type[FuncOp | SubgraphOp],
        what: str,
        arguments: Sequence[Value],
        constants: Mapping[str, str] = NONE,
    ) -> Sequence[Value]:
        """Run what a call op names, which has to be of class `of`."""
        callee = self.symbols.get(name)
        if not isinstance(callee, of):
            raise InterpretError(f"calls @{name}, which is not a {what} of the module")
        return self.invoke(callee, arguments, constants)

    def invoke(
        self,
        callee: FuncOp | SubgraphOp,
        arguments: Sequence[Value],
        constants: Mapping[str, str] = NONE,
    ) -> Sequence[Value]:
        """Run a callee in a frame of its own, as a call op does; `constants` replace others."""
        name = callee.sym_name.data
        if not callee.body.blocks:
            raise InterpretError(f"@{name} is declared but has no body")
        if self._depth >= MAX_DEPTH:
            raise InterpretError(
                f"calls nest more than {MAX_DEPTH} deep at @{name}",
                hint="recursion that deep is not interpreted",
            )
        self._depth += 1
        frame = self.frame()
        frame.constants = constants
        results = frame.run(callee.body, arguments)
        self._depth -= 1
        return results

    def frame(self) -> Frame:
        """Return a new frame; a simulator of hardware has frames that give some ops to it."""
        return Frame(self)

    def plan(self, block: Block) -> list[Step]:
        self._steps += 1
        if self.max_steps is not None and self._steps > self.max_steps:
            raise InterpretError(
                f"ran more than {self.max_steps} blocks",
                hint="a loop may never end; if it should run this long, raise max_steps",
            )
        plan = self._plans.get(block)
        if plan is None:
            plan = self._plans[block] = _plan_block(block)
        return plan


@dataclass(frozen=True, slots=True)
class Step:
    """One op of a block, ready to execute."""

    op: Operation
    entry: Entry
    operands: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    expected: tuple[tuple[object, object], ...]
    dying: tuple[SSAValue, ...]


class Frame:
    """The values of one call of a function. Regions in it see the values around them."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.values: dict[SSAValue, Value] = {}
        self.points: list[tuple[int, ...]] = []
        self.constants: Mapping[str, str] = NONE
        """The constants that are read in place of others, by their names."""

    def __getitem__(self, value: SSAValue) -> Value:
        try:
            return self.values[value]
        except KeyError as e:
            raise InterpretError("uses a value from outside of what is being run") from e

    def run(self, region: Region, arguments: Sequence[Value] = ()) -> tuple[Value, ...]:
        """Run a region from its first block until a terminator leaves it."""
        outcome: Outcome = Jump(region.blocks[0], tuple(arguments))
        while isinstance(outcome, Jump):
            outcome = self._run_block(outcome.block, outcome.arguments)
        if isinstance(outcome, Leave):
            return outcome.values
        raise InterpretError("a block does not end in a terminator")

    def _run_block(self, block: Block, arguments: Sequence[Value]) -> Outcome:
        values = self.values
        values.update(zip(block.args, arguments, strict=True))
        outcome: Outcome = ()
        for step in self.interpreter.plan(block):
            outcome = self.execute(step, [self[value] for value in step.operands])
            if isinstance(outcome, Leave | Jump):
                return outcome
            values.update(zip(step.results, outcome, strict=True))
            for value in step.dying:
                values.pop(value, None)
        return outcome

    def execute(self, step: Step, operands: Sequence[Value]) -> Outcome:
        """Give one op its operands, and check what comes back."""
        op = step.op
        outcome = self.evaluate(op, step.entry, operands)
        if isinstance(outcome, Leave | Jump):
            return outcome
        _check_results(step, outcome)
        observe = self.interpreter.observe
        if observe is not None:
            observe(op, outcome)
        return outcome

    def evaluate(self, op: Operation, entry: Entry, operands: Sequence[Value]) -> Outcome:
        """Compute an op's results, unchecked; whatever goes wrong is an error with its place."""
        try:
            return entry.semantics(self, op, operands)
        except Error as e:
            if not e.place:
                e.place = place_of(op)
            raise
        except RecursionError as e:
            raise InterpretError("regions nest too deeply", place=place_of(op)) from e
        except MemoryError as e:
            raise InterpretError(f"out of memory: {e}", place=place_of(op)) from e
        except (VerifyException, ValueError, IndexError, TypeError, ArithmeticError) as e:
            raise InterpretError(f"cannot be evaluated: {e}", place=place_of(op)) from e


def entry_of(op: Operation) -> Entry:
    entry = find(op)
    if entry is None:
        check_semantics([op])
        raise AssertionError("unreachable: the check raises")
    return entry


def check_semantics(ops: Iterable[Operation]) -> None:
    """Refuse to run anything while some op has no semantics; name them all."""
    missing: dict[str, list[Operation]] = {}
    for op in ops:
        if find(op) is None:
            name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
            missing.setdefault(name, []).append(op)
    if not missing:
        return
    lines = [f"  {name}: {_places(users)}" for name, users in sorted(missing.items())]
    raise InterpretError(
        "the interpreter has no semantics for these ops:\n" + "\n".join(lines),
        hint=_missing_hint(missing),
    )


def _places(ops: list[Operation]) -> str:
    places = [place_of(op) for op in ops]
    known = [f"{p.file}:{p.line}:{p.column}" for p in places if p.file is not None]
    return ", ".join(known) if known else f"{len(ops)} times"


def _missing_hint(missing: Mapping[str, object]) -> str:
    if any(name.startswith("linalg.") for name in missing):
        return "rewrite named linalg ops as linalg.generic (linalg-generalize-named-ops)"
    return "lower them, or register their semantics with fewbit.interpreter.register"


def _plan_block(block: Block) -> list[Step]:
    ops = list(block.ops)
    order = {op: i for i, op in enumerate(ops)}
    dying: list[list[SSAValue]] = [[] for _ in ops]
    for i, op in enumerate(ops):
        for value in op.results:
            last = _last_use(value, block, order, i)
            if last is not None:
                dying[last].append(value)
    for value in block.args:
        last = _last_use(value, block, order, 0)
        if last is not None and ops:
            dying[last].append(value)
    return [_plan_op(op, tuple(dead)) for op, dead in zip(ops, dying, strict=True)]


def _plan_op(op: Operation, dying: tuple[SSAValue, ...]) -> Step:
    expected = tuple((dtype_of(r.type), shape_of(r.type)) for r in op.results)
    return Step(op, entry_of(op), tuple(op.operands), tuple(op.results), expected, dying)


def _last_use(
    value: SSAValue, block: Block, order: Mapping[Operation, int], defined: int
) -> int | None:
    """Return the last op of `block` that uses `value`, itself or inside; None if others use it."""
    last = defined
    for use in value.uses:
        op = block.find_ancestor_op_in_block(use.operation)
        if op is None:
            return None
        last = max(last, order[op])
    return last


def _check_results(step: Step, results: Sequence[Value]) -> None:
    if len(results) != len(step.results):
        raise InterpretError(
            f"has {len(step.results)} results, but its semantics gave {len(results)}",
            place=place_of(step.op),
        )
    for result, value, expected in zip(step.results, results, step.expected, strict=True):
        if (value.dtype, value.shape) != expected:
            _check_result(step.op, result.type, value)


def _check_result(op: Operation, type: Attribute, value: Value) -> None:
    wrong = mismatch(value, type)
    if wrong is not None:
        raise InterpretError(f"a result is not of its type: {wrong}", place=place_of(op))
