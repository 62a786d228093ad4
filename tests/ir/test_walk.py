from collections.abc import Callable

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.ir import Block, Operation, Region

from fewbit.ir.walk import Order, Walk, nested_ops, walk


def named(name: str, *children: Operation, pure: bool = False) -> Operation:
    kind = test.TestPureOp if pure else test.TestOp
    regions = [Region(Block(children))] if children else []
    return kind(attributes={"n": StringAttr(name)}, regions=regions, result_types=[i32])


def name_of(op: Operation) -> str:
    name = op.attributes.get("n")
    return name.data if isinstance(name, StringAttr) else op.name


def tree() -> ModuleOp:
    """a(b(c), d), e"""
    return ModuleOp([named("a", named("b", named("c")), named("d")), named("e")])


def visits(
    module: ModuleOp,
    do: dict[str, Callable[[Operation], Walk | None]],
    order: Order = Order.PRE,
) -> list[str]:
    seen: list[str] = []

    def visit(op: Operation) -> Walk | None:
        seen.append(name_of(op))
        return do.get(name_of(op), lambda _: None)(op)

    walk(module, visit, order=order)
    return seen


def erase(op: Operation) -> None:
    assert op.parent is not None
    op.parent.erase_op(op)


def insert_before(op: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(named("new", named("inner")), op)


def insert_after(op: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_after(named("new", named("inner")), op)


def next_of(op: Operation) -> Operation:
    assert op.next_op is not None
    return op.next_op


def parent_of(op: Operation) -> Operation:
    parent = op.parent_op()
    assert parent is not None
    return parent


def test_pre_order_visits_parents_first():
    assert visits(tree(), {}) == ["builtin.module", "a", "b", "c", "d", "e"]


def test_post_order_visits_parents_last():
    assert visits(tree(), {}, Order.POST) == ["c", "b", "d", "a", "e", "builtin.module"]


def test_orders_agree_with_several_regions_and_blocks():
    regions = [
        Region([Block([named("1"), named("2")]), Block([named("3")])]),
        Region(Block([named("4", named("5"))])),
    ]
    module = ModuleOp([test.TestOp(attributes={"n": StringAttr("0")}, regions=regions)])
    assert visits(module, {}) == ["builtin.module", "0", "1", "2", "3", "4", "5"]
    assert visits(module, {}, Order.POST) == ["1", "2", "3", "5", "4", "0", "builtin.module"]


def test_filter_by_class():
    module = ModuleOp([named("x"), named("y", named("z", pure=True)), named("w", pure=True)])
    seen: list[test.TestPureOp] = []
    walk(module, seen.append, of=test.TestPureOp)
    assert [name_of(op) for op in seen] == ["z", "w"]


def test_skip_leaves_out_the_regions_of_that_op_only():
    assert visits(tree(), {"a": lambda _: Walk.SKIP}) == ["builtin.module", "a", "e"]
    assert visits(tree(), {"b": lambda _: Walk.SKIP}) == ["builtin.module", "a", "b", "d", "e"]


def test_skip_has_no_effect_in_post_order():
    everything = visits(tree(), {}, Order.POST)
    assert visits(tree(), {"b": lambda _: Walk.SKIP}, Order.POST) == everything


def test_stop_ends_the_walk_and_is_reported():
    assert visits(tree(), {"b": lambda _: Walk.STOP}) == ["builtin.module", "a", "b"]
    assert walk(tree(), lambda _: Walk.STOP) is Walk.STOP
    assert walk(tree(), lambda _: None) is Walk.ADVANCE


def test_erasing_the_visited_op_ends_its_regions():
    assert visits(tree(), {"a": erase}) == ["builtin.module", "a", "e"]
    assert visits(tree(), {"c": erase}) == ["builtin.module", "a", "b", "c", "d", "e"]


def test_erasing_the_next_op():
    assert visits(tree(), {"b": lambda op: erase(next_of(op))}) == [
        "builtin.module",
        "a",
        "b",
        "c",
        "e",
    ]


def test_erasing_the_visited_op_and_the_next():
    def both(op: Operation) -> None:
        erase(next_of(op))
        erase(op)

    assert visits(tree(), {"b": both}) == ["builtin.module", "a", "b", "e"]


@pytest.mark.parametrize("order", list(Order))
def test_erasing_the_parent(order: Order):
    seen = visits(tree(), {"c": lambda op: erase(parent_of(op))}, order)
    assert (
        seen
        == {
            Order.PRE: ["builtin.module", "a", "b", "c", "d", "e"],
            Order.POST: ["c", "d", "a", "e", "builtin.module"],
        }[order]
    )


def test_erasing_the_grandparent_ends_all_below_it():
    seen = visits(tree(), {"c": lambda op: erase(parent_of(parent_of(op)))})
    assert seen == ["builtin.module", "a", "b", "c", "e"]


def test_detaching_a_parent_without_erasing_it_hides_what_is_below():
    seen = visits(tree(), {"b": lambda op: parent_of(op).detach()})
    assert seen == ["builtin.module", "a", "b", "e"]


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("insert", [insert_before, insert_after])
def test_inserted_ops_are_not_visited(insert: Callable[[Operation], None], order: Order):
    module = tree()
    everything = visits(tree(), {}, order)
    assert visits(module, dict.fromkeys("abcde", insert), order) == everything
    assert sum(name_of(op) == "new" for op in nested_ops(module)) == 5


def test_inserted_op_that_always_inserts_does_not_loop():
    module = ModuleOp([named("a")])
    assert visits(module, {"a": insert_after, "new": insert_after}) == ["builtin.module", "a"]


def test_replacement_is_not_visited_but_moved_children_are():
    def replace(op: Operation) -> None:
        assert op.parent is not None
        heir = test.TestOp(attributes={"n": StringAttr("heir")}, regions=[op.detach_region(0)])
        op.parent.insert_op_before(heir, op)
        erase(op)

    module = tree()
    assert visits(module, {"a": replace}) == ["builtin.module", "a", "b", "c", "d", "e"]
    assert [name_of(op) for op in module.ops] == ["heir", "e"]


def test_walk_of_a_part_stays_in_it():
    module = tree()
    part = module.body.block.first_op
    assert part is not None
    seen: list[str] = []
    walk(part, lambda op: seen.append(name_of(op)))
    assert seen == ["a", "b", "c", "d"]


def test_nesting_ten_thousand_deep():
    op = named("leaf")
    for _ in range(10_000):
        op = named("n", op)
    module = ModuleOp([op])
    assert sum(1 for _ in nested_ops(module)) == 10_002
