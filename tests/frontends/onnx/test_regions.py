"""Deformable convolutions and pooled boxes on random shapes, against ONNX's own evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewbit.program.program import Program

pytest.importorskip("onnx")

from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import fewbit
from fewbit.errors import UnsupportedError
from fewbit.frontends.onnx import import_onnx


def model_of(op: str, arrays: dict[str, np.ndarray], **attributes: Any) -> Any:
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
    node = helper.make_node(op, [*arrays], ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info(name, kinds[array.dtype], array.shape)
        for name, array in arrays.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    opset = helper.make_opsetid("", 19)
    return helper.make_model(
        helper.make_graph([node], "g", inputs, [output]), opset_imports=[opset]
    )


def check(op: str, arrays: dict[str, np.ndarray], **attributes: Any) -> None:
    model = model_of(op, arrays, **attributes)
    evaluator: Any = ReferenceEvaluator(model)
    (expected,) = evaluator.run(None, arrays)
    program = import_onnx(model)
    (interpreted,) = program.run(*arrays.values())
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    compiled = fewbit.compile(program)(*arrays.values())
    np.testing.assert_allclose(compiled, interpreted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("groups", "offset_groups"), [(1, 1), (2, 1), (1, 2)])
def test_deformable_convolution(groups: int, offset_groups: int) -> None:
    rng = np.random.default_rng(groups + offset_groups)
    arrays = {
        "x": rng.standard_normal((2, 4, 7, 6)),
        "w": rng.standard_normal((4, 4 // groups, 3, 2)),
        "offset": rng.standard_normal((2, 12 * offset_groups, 3, 4)),
        "b": rng.standard_normal(4),
        "mask": rng.random((2, 6 * offset_groups, 3, 4)),
    }
    check(
        "DeformConv",
        {name: array.astype(np.float32) for name, array in arrays.items()},
        group=groups,
        offset_group=offset_groups,
        pads=[1, 0, 1, 0],
        strides=[2, 1],
        dilations=[2, 2],
    )


def boxes() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    corners = rng.uniform(-2, 9, (5, 4)).astype(np.float32)
    corners[:, 2:] = corners[:, :2] + rng.uniform(0.1, 9, (5, 2))
    x = rng.standard_normal((2, 3, 8, 9)).astype(np.float32)
    return {"x": x, "boxes": corners, "images": rng.integers(0, 2, 5)}


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_pooled_boxes(mode: str, coordinates: str) -> None:
    sizes = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.75}
    check("RoiAlign", boxes(), mode=mode, coordinate_transformation_mode=coordinates, **sizes)


def test_a_number_of_samples_that_depends_on_data_is_refused() -> None:
    model = model_of("RoiAlign", boxes(), output_height=2, output_width=2)
    with pytest.raises(UnsupportedError, match="RoiAlign cannot be imported: how many samples"):
        import_onnx(model)


def test_a_signal_of_rank_2() -> None:
    x = np.random.default_rng(0).standard_normal((2, 40)).astype(np.float32)
    window = np.hanning(16).astype(np.float32)
    step = np.array(8)
    programs: list[Program] = []
    for shape in ((2, 40), (2, 40, 1)):
        arrays = {"x": x.reshape(shape), "step": step, "window": window}
        model = model_of("STFT", arrays)
        programs.append(import_onnx(model, constants={"step": step}))
    flat = programs[0].run(x, window)[0]
    np.testing.assert_array_equal(flat, programs[1].run(x[..., None], window)[0])
    assert flat.shape == (2, 4, 9, 2)
