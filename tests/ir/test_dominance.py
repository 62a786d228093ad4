import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, cf, func, scf, test
from xdsl.dialects.builtin import ModuleOp, i1, i32
from xdsl.ir import Block, Operation, Region

from fewbit.errors import VerifyError
from fewbit.ir.dominance import check_dominance, immediate_dominators
from fewbit.ir.parse import parse_module


def check(text: str) -> None:
    check_dominance(parse_module(text))


def complaint(text: str) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        check(text)
    return caught.value


def test_straight_code_is_accepted():
    check("""
    func.func @f(%a: i32) -> i32 {
      %b = arith.addi %a, %a : i32
      %c = arith.addi %a, %b : i32
      func.return %c : i32
    }""")


def test_use_before_definition_names_both_lines():
    error = complaint("""func.func @f(%a: i32) -> i32 {
  %c = arith.addi %a, %b : i32
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}""")
    assert error.what == "operand 1: %b is used before it is defined"
    assert (error.place.line, error.place.op) == (2, "arith.addi")
    assert error.hint is not None
    assert ":3:" in error.hint


def test_op_may_not_use_its_own_result():
    error = complaint("""func.func @f() {
      %a = arith.addi %a, %a : i32
      func.return
    }""")
    assert "before it is defined" in error.what


def test_nested_region_sees_the_values_around_it():
    check("""
    func.func @f(%c: i1, %a: i32) -> i32 {
      %b = arith.addi %a, %a : i32
      %r = scf.if %c -> (i32) {
        %s = arith.addi %a, %b : i32
        scf.yield %s : i32
      } else {
        scf.yield %b : i32
      }
      func.return %r : i32
    }""")


def test_region_does_not_see_the_results_of_its_own_op():
    error = complaint("""func.func @f(%c: i1, %a: i32) -> i32 {
      %r = scf.if %c -> (i32) {
        scf.yield %r : i32
      } else {
        scf.yield %a : i32
      }
      func.return %r : i32
    }""")
    assert "before it is defined" in error.what


def test_value_of_a_region_is_not_visible_after_it():
    inner = arith.ConstantOp.from_int_and_width(1, 32)
    condition = arith.ConstantOp.from_int_and_width(1, 1)
    branch = scf.IfOp(condition, [], [inner, scf.YieldOp()])
    user = arith.AddiOp(inner, inner)
    with pytest.raises(VerifyError, match="region that does not contain this op"):
        check_dominance(ModuleOp([condition, branch, user]))


def test_value_of_one_branch_is_not_visible_in_the_other():
    inner = arith.ConstantOp.from_int_and_width(1, 32)
    condition = arith.ConstantOp.from_int_and_width(1, 1)
    branch = scf.IfOp(
        condition, [], [inner, scf.YieldOp()], [arith.AddiOp(inner, inner), scf.YieldOp()]
    )
    with pytest.raises(VerifyError, match="region that does not contain this op"):
        check_dominance(ModuleOp([condition, branch]))


def test_isolated_op_does_not_see_outside():
    outside = arith.ConstantOp.from_int_and_width(1, 32)
    inside = func.FuncOp("f", ([], [i32]), Region(Block([func.ReturnOp(outside)])))
    with pytest.raises(VerifyError, match=r"outside of the 'func\.func'.* isolated"):
        check_dominance(ModuleOp([outside, inside]))


def test_isolation_holds_through_regions_between():
    outside = arith.ConstantOp.from_int_and_width(1, 1)
    body = Block([scf.IfOp(outside, [], [scf.YieldOp()]), func.ReturnOp()])
    inside = func.FuncOp("f", ([], []), Region(body))
    with pytest.raises(VerifyError, match="isolated"):
        check_dominance(ModuleOp([outside, inside]))


def test_value_of_an_op_that_is_not_in_the_module():
    stray = arith.ConstantOp.from_int_and_width(1, 32)
    with pytest.raises(VerifyError, match="not in the module"):
        check_dominance(ModuleOp([arith.AddiOp(stray, stray)]))


DIAMOND = """
func.func @f(%c: i1, %a: i32) -> i32 {{
  cf.cond_br %c, ^left, ^right
^left:
  %l = arith.addi %a, %a : i32
  cf.br ^join
^right:
  cf.br ^join
^join:
  func.return {returned} : i32
}}"""


def test_entry_dominates_every_block():
    check(DIAMOND.format(returned="%a"))


def test_one_side_of_a_diamond_does_not_dominate_the_join():
    error = complaint(DIAMOND.format(returned="%l"))
    assert "block that does not dominate this one" in error.what


def test_use_across_blocks_counts_from_within_regions():
    check("""
    func.func @f(%c: i1, %a: i32) {
      %b = arith.addi %a, %a : i32
      cf.br ^next
    ^next:
      scf.if %c {
        %d = arith.addi %b, %b : i32
      }
      func.return
    }""")


def test_use_before_definition_where_there_are_several_blocks():
    error = complaint("""
    func.func @f(%a: i32) {
      %c = arith.addi %b, %a : i32
      %b = arith.addi %a, %a : i32
      cf.br ^next
    ^next:
      func.return
    }""")
    assert "before it is defined" in error.what


def test_loop_header_dominates_its_body_and_not_the_other_way_round():
    loop = """
    func.func @f(%c: i1, %a: i32) {{
      cf.br ^head
    ^head:
      %h = arith.addi %a, {in_head} : i32
      cf.cond_br %c, ^body, ^exit
    ^body:
      %b = arith.addi %h, %h : i32
      cf.br ^head
    ^exit:
      func.return
    }}"""
    check(loop.format(in_head="%a"))
    assert "does not dominate" in complaint(loop.format(in_head="%b")).what


def test_blocks_may_be_listed_out_of_order():
    check("""
    func.func @f(%a: i32) -> i32 {
      cf.br ^first
    ^second:
      func.return %b : i32
    ^first:
      %b = arith.addi %a, %a : i32
      cf.br ^second
    }""")


def test_unreachable_code_is_not_asked():
    check("""
    func.func @f(%a: i32) {
      func.return
    ^dead:
      %x = arith.addi %y, %a : i32
      %y = arith.addi %a, %a : i32
      cf.br ^dead
    }""")


def test_reachable_code_may_not_use_values_of_unreachable_code():
    error = complaint("""
    func.func @f(%a: i32) -> i32 {
      cf.br ^exit
    ^dead:
      %x = arith.addi %a, %a : i32
      cf.br ^exit
    ^exit:
      func.return %x : i32
    }""")
    assert "does not dominate" in error.what


def test_immediate_dominators_of_nested_loops():
    entry, outer, inner, latch, exit_ = blocks = [Block() for _ in range(5)]
    with ImplicitBuilder(entry):
        flag = arith.ConstantOp.from_int_and_width(1, i1)
        cf.BranchOp(outer)
    with ImplicitBuilder(outer):
        cf.BranchOp(inner)
    with ImplicitBuilder(inner):
        cf.ConditionalBranchOp(flag, inner, [], latch, [])
    with ImplicitBuilder(latch):
        cf.ConditionalBranchOp(flag, outer, [], exit_, [])
    with ImplicitBuilder(exit_):
        func.ReturnOp()
    assert immediate_dominators(Region(blocks)) == {
        entry: entry,
        outer: entry,
        inner: outer,
        latch: inner,
        exit_: latch,
    }


def test_irreducible_loop_is_dominated_by_its_fork():
    fork, left, right = blocks = [Block() for _ in range(3)]
    with ImplicitBuilder(fork):
        flag = arith.ConstantOp.from_int_and_width(1, i1)
        cf.ConditionalBranchOp(flag, left, [], right, [])
    with ImplicitBuilder(left):
        cf.BranchOp(right)
    with ImplicitBuilder(right):
        cf.BranchOp(left)
    assert immediate_dominators(Region(blocks)) == {fork: fork, left: fork, right: fork}


def test_nesting_ten_thousand_deep():
    value = arith.ConstantOp.from_int_and_width(1, 32)
    op: Operation = test.TestOp(operands=[value])
    for _ in range(10_000):
        op = test.TestOp(regions=[Region(Block([op]))])
    module = ModuleOp([value, op])
    check_dominance(module)
    value.detach()
    module.body.block.insert_op_after(value, op)
    with pytest.raises(VerifyError, match="before it is defined"):
        check_dominance(module)


def reachable(edges: list[list[int]], without: int | None = None) -> set[int]:
    seen: set[int] = set()
    stack = [0] if without != 0 else []
    while stack:
        block = stack.pop()
        if block not in seen:
            seen.add(block)
            stack.extend(b for b in edges[block] if b != without)
    return seen


@given(st.integers(1, 8).flatmap(lambda n: st.lists(
    st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n
)))  # fmt: skip
def test_dominator_tree_against_the_definition(edges: list[list[int]]):
    """A dominates B if B cannot be reached once A is taken away."""
    blocks = [Block() for _ in edges]
    for block, targets in zip(blocks, edges, strict=True):
        block.add_op(test.TestTermOp(successors=[blocks[t] for t in targets]))
    tree = immediate_dominators(Region(blocks))

    assert {blocks.index(block) for block in tree} == reachable(edges)
    for block in tree:
        dominators = [block]
        while tree[dominators[-1]] is not dominators[-1]:
            dominators.append(tree[dominators[-1]])
        number = blocks.index(block)
        expected = {b for b in reachable(edges) if number not in reachable(edges, without=b)}
        assert {blocks.index(b) for b in dominators} == expected
