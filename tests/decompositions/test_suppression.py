"""Non-maximum suppression, compared with ONNX's reference and with torchvision's rule."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from torch import Tensor

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.frontends import import_model
from fewbit.frontends.onnx import import_onnx
from tests.frontends.torch.agreement import Function


def model(
    sizes: tuple[int, int, Any], most: int, score: float | None = None, center: int = 0
) -> Any:
    batches, classes, boxes = sizes
    constants = [
        helper.make_tensor("most", TensorProto.INT64, [1], [most]),
        helper.make_tensor("iou", TensorProto.FLOAT, [1], [0.25]),
    ]
    names = ["boxes", "scores", "most", "iou"]
    if score is not None:
        constants.append(helper.make_tensor("score", TensorProto.FLOAT, [1], [score]))
        names.append("score")
    node = helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=center)
    inputs = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [batches, boxes, 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batches, classes, boxes]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [None, 3])]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def data(batches: int, classes: int, boxes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(boxes)
    corners = np.sort(rng.uniform(0, 10, [batches, boxes, 2, 2]), 2)
    scores = rng.normal(size=[batches, classes, boxes])
    scores[..., ::5] = 0.5  # Of equal scores, the first box wins.
    return corners.reshape(batches, boxes, 4).astype(np.float32), scores.astype(np.float32)


@pytest.mark.parametrize(
    ("sizes", "most", "score", "center"),
    [
        ((2, 3, 17), 4, None, 0),
        ((1, 2, 20), 100, 0.1, 1),
        ((1, 1, 9), 3, 50.0, 0),
        ((1, 1, 5), 0, None, 0),
    ],
    ids=["batches", "more-than-there-are", "none", "zero-asked-for"],
)
def test_onnx(sizes: tuple[int, int, int], most: int, score: float | None, center: int) -> None:
    given = model(sizes, most, score, center)
    boxes, scores = data(*sizes)
    wanted = np.zeros([0, 3], np.int64)
    if most > 0:
        evaluator: Any = ReferenceEvaluator(given)
        wanted = evaluator.run(None, {"boxes": boxes, "scores": scores})[0]
    program = import_onnx(given)
    runner = fewbit.compile(program).runner
    for threads in (1, 3):
        np.testing.assert_array_equal(runner(boxes, scores, threads=threads)[0], wanted)
    np.testing.assert_array_equal(program.run(boxes, scores)[0], wanted)


@pytest.mark.slow
def test_any_number_of_boxes() -> None:
    given = model((1, 2, "n"), 6, 0.0)
    program = import_onnx(given)
    runner = fewbit.compile(program).runner
    for count in (20, 3, 1, 0):
        boxes, scores = data(1, 2, count)
        (wanted,) = cast(Any, ReferenceEvaluator(given)).run(
            None, {"boxes": boxes, "scores": scores}
        )
        for results in (program.run(boxes, scores), runner(boxes, scores)):
            np.testing.assert_array_equal(results[0], wanted)


def test_nan_is_the_lowest_score() -> None:
    program = import_onnx(model((1, 1, 3), 3))
    boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]], np.float32)
    scores = np.array([[[np.nan, -np.inf, 1]]], np.float32)
    for results in (program.run(boxes, scores), fewbit.compile(program).runner(boxes, scores)):
        np.testing.assert_array_equal(results[0][:, 2], [2, 0, 1])


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """torchvision's own rule, box by box."""
    kept: list[int] = []
    for i in torch.argsort(scores, descending=True, stable=True).numpy():
        if all(_overlap(boxes[i], boxes[j]) <= iou_threshold for j in kept):
            kept.append(int(i))
    return torch.tensor(kept, dtype=torch.int64)


def _overlap(a: Tensor, b: Tensor) -> float:
    width, height = (torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp(min=0)
    areas = (a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod()
    return float(width * height / (areas - width * height))


@pytest.fixture(scope="module")
def vision() -> Any:
    """The op as torchvision registers it, unless that is here."""
    library: Any = torch.library.Library("torchvision", "FRAGMENT")
    if not hasattr(torch.ops.torchvision, "nms"):
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", nms, "CPU")
        cast(Any, torch.library).register_fake("torchvision::nms", _fake, lib=library)
    yield torch.ops.torchvision.nms
    library._destroy()


def _fake(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    count = cast(Any, torch.library).get_ctx().new_dynamic_size()
    return dets.new_empty([count], dtype=torch.int64)


def test_torchvision(vision: Any) -> None:
    boxes, scores = (from_numpy(each[0]) for each in data(1, 1, 20))
    scores = scores[0]
    model = Function(lambda b, s: b[vision(b, s, 0.2)])
    program = import_model(model, (boxes, scores))
    wanted = boxes[nms(boxes, scores, 0.2)]
    arrays = boxes.numpy(), scores.numpy()
    for results in (program.run(*arrays), fewbit.compile(program).runner(*arrays)):
        np.testing.assert_array_equal(results[0], wanted.numpy())
