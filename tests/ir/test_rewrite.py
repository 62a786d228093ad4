import pytest
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from fewbit.errors import PassError, Place, UnsupportedError
from fewbit.ir.locations import UNKNOWN_LOC, file_location
from fewbit.ir.parse import parse_module
from fewbit.ir.rewrite import rewrite
from fewbit.ir.walk import nested_ops


class Rename(RewritePattern):
    """Replaces an op named `old` by one named `new`."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = StringAttr(old), StringAttr(new)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if op.attributes.get("n") != self.old:
            return
        rewriter.replace(
            op,
            test.TestOp(
                operands=list(op.operands),
                result_types=list(op.result_types),
                attributes={"n": self.new},
            ),
        )


class AToB(Rename):
    def __init__(self) -> None:
        super().__init__("a", "b")


class BToC(Rename):
    def __init__(self) -> None:
        super().__init__("b", "c")


class BToA(Rename):
    def __init__(self) -> None:
        super().__init__("b", "a")


class Flip(RewritePattern):
    """Changes an op in place, to and fro."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        to = "b" if op.attributes.get("n") == StringAttr("a") else "a"
        op.attributes["n"] = StringAttr(to)
        rewriter.notify_op_modified(op)


class Double(RewritePattern):
    """Grows without end: one op becomes two of the same."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [test.TestOp(), test.TestOp()], [])


class FoldAdd(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddiOp, rewriter: PatternRewriter) -> None:
        left, right = op.lhs.owner, op.rhs.owner
        if not isinstance(left, arith.ConstantOp) or not isinstance(right, arith.ConstantOp):
            return
        rewriter.replace(op, arith.ConstantOp.from_int_and_width(1, 32))


class EraseDeadAdd(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddiOp, rewriter: PatternRewriter) -> None:
        if op.result.first_use is None:
            rewriter.erase(op)


def named(name: str) -> test.TestOp:
    return test.TestOp(attributes={"n": StringAttr(name)})


def names(module: ModuleOp) -> list[str]:
    return [
        n.data for op in nested_ops(module) if isinstance(n := op.attributes.get("n"), StringAttr)
    ]


@pytest.mark.parametrize("patterns", [[AToB(), BToC()], [BToC(), AToB()]])
def test_two_steps_reach_the_fixpoint_in_any_order(patterns: list[RewritePattern]):
    module = ModuleOp([named("a"), named("x"), named("b"), named("a")])
    report = rewrite(module, patterns)
    assert names(module) == ["c", "x", "c", "c"]
    assert report.by_pattern == {"AToB": 2, "BToC": 3}
    assert (report.rewrites, report.rounds) == (5, 2)


def test_nothing_to_do():
    module = ModuleOp([named("x")])
    report = rewrite(module, [AToB()])
    assert (report.rounds, report.rewrites, report.by_pattern) == (0, 0, {})


def test_patterns_that_undo_each_other_are_named_with_their_place():
    op = named("a")
    op.location = file_location("net.mlir", 7, 3)
    with pytest.raises(PassError, match="no fixpoint") as caught:
        rewrite(ModuleOp([named("x"), op]), [AToB(), BToA(), BToC()])
    assert "AToB, BToA" in caught.value.what
    assert "BToC" not in caught.value.what
    assert caught.value.place == Place(file="net.mlir", line=7, column=3, op="test.op")


def test_flipping_in_place_is_reported():
    with pytest.raises(PassError, match="still rewriting: Flip"):
        rewrite(ModuleOp([named("a")]), [Flip()])


def test_growth_without_end_is_reported():
    with pytest.raises(PassError, match="still rewriting: Double"):
        rewrite(ModuleOp([test.TestOp() for _ in range(100)]), [Double()])


def test_max_rounds_is_the_length_of_the_chain():
    module = ModuleOp([named("a")])
    with pytest.raises(PassError):
        rewrite(module.clone(), [AToB(), BToC(), Rename("c", "d")], max_rounds=2)
    assert rewrite(module, [AToB(), BToC(), Rename("c", "d")], max_rounds=3).rounds == 3


def chain(length: int) -> ModuleOp:
    one = arith.ConstantOp.from_int_and_width(1, 32)
    ops: list[Operation] = [one]
    for _ in range(length):
        ops.append(arith.AddiOp(ops[-1], one))
    return ModuleOp(ops)


def test_long_chain_forwards_is_one_round():
    module = chain(500)
    report = rewrite(module, [FoldAdd()])
    assert (report.rewrites, report.rounds) == (500, 1)
    assert not any(isinstance(op, arith.AddiOp) for op in module.ops)


def test_long_chain_backwards_is_one_round():
    module = chain(500)
    report = rewrite(module, [EraseDeadAdd()])
    assert (report.rewrites, report.rounds) == (500, 1)
    assert len(module.ops) == 1


def test_rewrites_follow_each_other_without_sweeping_the_module_for_each():
    """One sweep, what follows from it, and the sweep that confirms: a few matches for each op."""
    tried = 0

    class Counted(EraseDeadAdd):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            nonlocal tried
            tried += 1
            super().match_and_rewrite(op, rewriter)

    class CountedStep(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            nonlocal tried
            tried += 1
            name = op.attributes["n"]
            assert isinstance(name, StringAttr)
            if int(name.data) < 20:
                rewriter.replace(op, named(str(int(name.data) + 1)))

    rewrite(chain(500), [Counted()])
    assert tried < 4 * 500
    tried = 0
    rewrite(ModuleOp([named("0") for _ in range(100)]), [CountedStep()])
    assert tried < 2 * 20 * 100


def test_op_that_shrinks_step_by_step_is_no_endless_rewriting():
    class DropOne(RewritePattern):
        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: test.TestOp, rewriter: PatternRewriter) -> None:
            if op.operands:
                rewriter.replace(op, test.TestOp(operands=list(op.operands[1:])))

    one = arith.ConstantOp.from_int_and_width(1, 32)
    module = ModuleOp([one, test.TestOp(operands=[one.result] * 300)])
    assert rewrite(module, [DropOne()]).rounds == 300


def test_ops_in_regions_are_rewritten_and_so_are_inserted_regions():
    class Wrap(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if op.attributes.get("n") == StringAttr("wrap"):
                rewriter.replace(op, test.TestOp(regions=[Region(Block([named("a")]))]))

    inner = test.TestOp(regions=[Region(Block([named("a"), named("wrap")]))])
    module = ModuleOp([inner])
    rewrite(module, [Wrap(), AToB()])
    assert names(module) == ["b", "b"]


def test_inserted_ops_get_the_location_of_what_they_replace():
    module = parse_module("""%0 = arith.constant 1 : i32
%1 = arith.addi %0, %0 : i32""")
    rewrite(module, [FoldAdd()])
    lines = [op.location for op in module.ops]
    assert lines == [file_location("<text>", 1, 1), file_location("<text>", 2, 1)]


def test_inserted_ops_keep_a_location_of_their_own():
    mine = file_location("mine", 1, 1)

    class Located(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if op.location == UNKNOWN_LOC:
                heir = test.TestOp()
                heir.location = mine
                rewriter.replace(op, heir)

    module = ModuleOp([test.TestOp()])
    rewrite(module, [Located()])
    assert [op.location for op in module.ops] == [mine]


def test_fixpoint_holds_where_a_rewrite_enables_a_far_match():
    """Nothing links the two ops, so only the sweep at the end can find the second match."""

    class OnlyWhenNoA(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            block = op.parent
            assert block is not None
            if op.attributes.get("n") != StringAttr("waits"):
                return
            if any(o.attributes.get("n") == StringAttr("a") for o in block.ops):
                return
            rewriter.replace(op, named("done"))

    module = ModuleOp([named("waits"), named("a")])
    rewrite(module, [OnlyWhenNoA(), AToB()])
    assert names(module) == ["done", "b"]


def test_failing_pattern_is_an_error_with_its_place():
    class Breaks(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            raise KeyError("k")

    with pytest.raises(PassError, match="the pattern Breaks failed") as caught:
        rewrite(parse_module("%0 = arith.constant 1 : i32"), [Breaks()])
    assert caught.value.place.line == 1


def test_error_of_a_pattern_gets_its_place():
    class Refuses(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            raise UnsupportedError("no")

    with pytest.raises(UnsupportedError) as caught:
        rewrite(parse_module("%0 = arith.constant 1 : i32"), [Refuses()])
    assert (caught.value.place.line, caught.value.place.op) == (1, "arith.constant")


def test_values_stay_connected():
    producer = test.TestOp(attributes={"n": StringAttr("a")}, result_types=[i32])
    user = test.TestOp(operands=[producer.results[0]])
    module = ModuleOp([producer, user])
    rewrite(module, [AToB(), BToC()])
    definition = user.operands[0].owner
    assert isinstance(definition, Operation)
    assert definition.attributes["n"] == StringAttr("c")
    assert definition.parent is module.body.block


def test_a_selective_pattern_is_asked_only_about_its_ops():
    asked: list[str] = []

    class Selective(RewritePattern):
        def may_match(self, kind: type[Operation]) -> bool:
            return kind is arith.ConstantOp

        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
            asked.append(op.name)

    rewrite(
        parse_module("%0 = arith.constant 1 : i32\n%1 = arith.addi %0, %0 : i32"), [Selective()]
    )
    assert asked == ["arith.constant"]
