"""The pattern driver: rewrites a module to a fixpoint, and says so when there is none.

Ops wait on a worklist; what a rewrite inserts or changes goes back on it, and when it is empty
the whole module is swept once more, so that at the end no pattern matches anywhere. Each op
carries its *round*: one more than the round of the op whose rewrite created or changed it. Honest
pattern sets need few rounds however large the module is; patterns that undo each other, or grow
without end, need one more each time. So a round past `max_rounds` means that there is no
fixpoint, and the error names the patterns that were still at work.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriterListener, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.worklist import Worklist

from fewbit.errors import Error, PassError
from fewbit.ir.locations import is_known, place_of
from fewbit.ir.walk import nested_ops

MAX_ROUNDS = 1000
RECENT = 32
"""How many of the last rewrites are blamed when there is no fixpoint."""


@dataclass(frozen=True)
class RewriteReport:
    rounds: int
    """The longest chain of rewrites, each of what the one before it created."""
    rewrites: int
    by_pattern: Mapping[str, int]


def rewrite(
    module: ModuleOp, patterns: Sequence[RewritePattern], *, max_rounds: int = MAX_ROUNDS
) -> RewriteReport:
    """Apply `patterns`, the first that matches first, until none matches any op of `module`.

    Ops that a pattern inserts without a location get that of the op which it rewrote.
    """
    return _Driver(module, patterns, max_rounds).run()


@runtime_checkable
class Selective(Protocol):
    """A pattern that says which classes of ops it looks at, so that others cost nothing."""

    def may_match(self, kind: type[Operation]) -> bool: ...


def _may_match(pattern: RewritePattern, kind: type[Operation]) -> bool:
    return not isinstance(pattern, Selective) or pattern.may_match(kind)


class _Driver:
    def __init__(
        self, module: ModuleOp, patterns: Sequence[RewritePattern], max_rounds: int
    ) -> None:
        self._module = module
        self._patterns = patterns
        self._max_rounds = max_rounds
        self._worklist: Worklist[Operation] = Worklist()
        self._rounds: dict[Operation, int] = {}
        self._fired: Counter[str] = Counter()
        self._recent: deque[str] = deque(maxlen=RECENT)
        self._root: Operation = module
        """The op that is being rewritten."""
        self._candidates: dict[type[Operation], list[RewritePattern]] = {}
        self._listener = PatternRewriterListener(
            operation_insertion_handler=[self._on_insert],
            operation_removal_handler=[self._on_remove],
            operation_modification_handler=[self._on_modify],
            operation_replacement_handler=[self._on_replace],
        )

    def run(self) -> RewriteReport:
        ops = [op for op in nested_ops(self._module) if op is not self._module]
        while self._sweep(ops):
            ops = [op for op in nested_ops(self._module) if op is not self._module]
        return RewriteReport(
            rounds=max(self._rounds.values(), default=0),
            rewrites=self._fired.total(),
            by_pattern=dict(self._fired),
        )

    def _sweep(self, ops: Sequence[Operation]) -> bool:
        """Process `ops` and all that follows from them; return whether anything was rewritten."""
        before = self._fired.total()
        for op in reversed(ops):
            self._push(op)
        while self._worklist:
            op = self._worklist.pop()
            if op.parent is None or not self._rewrite_once(op):
                continue
            if self._rounds[op] > self._max_rounds:
                raise self._no_fixpoint(op)
        return self._fired.total() > before

    def _push(self, op: Operation) -> None:
        """Put an op on the worklist, if there is a pattern for its class."""
        if self._patterns_for(type(op)):
            self._worklist.push(op)

    def _patterns_for(self, kind: type[Operation]) -> list[RewritePattern]:
        """Return the patterns that may match an op of this class; most ops have none."""
        if kind not in self._candidates:
            patterns = self._patterns
            self._candidates[kind] = [p for p in patterns if _may_match(p, kind)]
        return self._candidates[kind]

    def _rewrite_once(self, op: Operation) -> bool:
        self._root = op
        rewriter = PatternRewriter(op)
        rewriter.extend_from_listener(self._listener)
        for pattern in self._patterns_for(type(op)):
            name = type(pattern).__name__
            rewriter.insertion_point = InsertPoint.before(op)
            try:
                pattern.match_and_rewrite(op, rewriter)
            except Error as e:
                raise e.at(**vars(place_of(op))) from e.__cause__
            except Exception as e:
                raise PassError(f"the pattern {name} failed: {e}", place=place_of(op)) from e
            if not rewriter.has_done_action:
                continue
            self._fired[name] += 1
            self._recent.append(name)
            self._rounds[op] = self._rounds.get(op, 0) + 1
            if op.parent is not None:
                self._worklist.push(op)
            return True
        return False

    def _no_fixpoint(self, op: Operation) -> PassError:
        names = ", ".join(sorted(set(self._recent)))
        return PassError(
            f"no fixpoint after {self._fired.total()} rewrites; still rewriting: {names}",
            place=place_of(op),
            hint="these patterns undo or re-create each other's work; "
            "give each form only one pattern that leaves it",
        )

    def _on_insert(self, op: Operation) -> None:
        round_of_root = self._rounds.get(self._root, 0)
        for new in nested_ops(op):
            if not is_known(new.location):
                new.location = self._root.location
            self._rounds[new] = max(self._rounds.get(new, 0), round_of_root + 1)
            self._push(new)

    def _on_remove(self, op: Operation) -> None:
        self._push_definitions(op.operands)
        for gone in nested_ops(op):
            self._worklist.remove(gone)

    def _on_modify(self, op: Operation) -> None:
        self._push(op)
        self._push_users(op.results)

    def _on_replace(self, op: Operation, _: Sequence[SSAValue | None]) -> None:
        self._push_users(op.results)

    def _push_definitions(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            if isinstance(owner := value.owner, Operation) and owner.parent is not None:
                self._push(owner)

    def _push_users(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            for use in value.uses:
                self._push(use.operation)
