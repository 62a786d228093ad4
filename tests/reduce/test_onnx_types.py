"""What is known of the types of tensors behind loops."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, TensorProto, helper

from fewbit.reduce.onnx_graph import cuts_of
from fewbit.reduce.onnx_types import types_of

FLOAT = TensorProto.FLOAT


def loop_model() -> ModelProto:
    """Return a model with a loop that reads a tensor from outside, and a node behind it."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "t"], ["v"]),
            helper.make_node("Identity", ["v"], ["o"]),
            helper.make_node("Identity", ["c"], ["e"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("e", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, None),
            helper.make_tensor_value_info("o", FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["t"]),
        helper.make_node("Loop", ["n", "go", "x"], ["last", "all"], body=body),
        helper.make_node("Abs", ["all"], ["y"]),
    ]
    constants = [
        helper.make_tensor("n", TensorProto.INT64, [], [3]),
        helper.make_tensor("go", TensorProto.BOOL, [], [True]),
    ]
    x, y = (helper.make_tensor_value_info(name, FLOAT, s) for name, s in (("x", [5]), ("y", None)))
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], constants))


def sizes(model: ModelProto, name: str) -> list[int]:
    return [size.dim_value for size in types_of(model)[name].type.tensor_type.shape.dim]


def test_results_of_loops_are_known() -> None:
    model = loop_model()
    assert sizes(model, "last") == [5]
    assert sizes(model, "all") == [0, 5]  # of all rounds, whose number is open
    assert sizes(model, "y") == [0, 5]


def test_a_node_is_cut_from_the_loop_before_it() -> None:
    kinds = [[node.op_type for node in cut.graph.node] for cut in cuts_of(loop_model())]
    assert ["Abs"] in kinds


def test_a_node_that_only_a_body_reads_is_left_out() -> None:
    def body_of(model: ModelProto) -> GraphProto:
        loop = next(node for node in model.graph.node if node.op_type == "Loop")
        return next(attribute.g for attribute in loop.attribute if attribute.name == "body")

    left = [
        cut
        for cut in cuts_of(loop_model())
        if [node.op_type for node in cut.graph.node] == ["Loop", "Abs"]
    ]
    assert any(list(body_of(cut).node[0].input) == ["s", "x"] for cut in left)
