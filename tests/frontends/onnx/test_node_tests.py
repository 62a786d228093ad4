"""ONNX's own tests of its ops: none is wrong, none fails without a reason, and most pass.

Here are a few of each group of ops, on the interpreter and compiled; all of them are slow tests, one
of which also says whether the table in the documentation is that of this code.
`benchmarks/onnx_coverage.py --target cpu --jobs 2` runs the second outside of pytest.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "onnx.md"
LEAST = 0.95
"""The share that passes, at least."""

FEW = [
    "add_uint8",
    "and2d",
    "argmax_default_axis_example_select_last_index",
    "averagepool_2d_ceil",
    "batchnorm_epsilon",
    "bitshift_right_uint16",
    "cast_FLOAT_to_INT4",
    "clip",
    "conv_with_strides_and_asymmetric_padding",
    "convtranspose_pads",
    "cumsum_1d_reverse_exclusive",
    "deform_conv_with_multiple_offset_groups",
    "dequantizelinear_axis",
    "det_2d",
    "dft",
    "div_example",
    "einsum_transpose",
    "gather_negative_indices",
    "gridsample_nearest",
    "gru_with_initial_bias",
    "layer_normalization_4d_axis1",
    "lstm_with_peepholes",
    "matmulinteger",
    "maxpool_2d_pads",
    "mod_mixed_sign_int32",
    "nonmaxsuppression_two_batches",
    "nonzero_example",
    "not_2d",
    "pow",
    "qlinearmatmul_2D_uint8_float32",
    "quantizelinear_axis",
    "reduce_log_sum_exp_keepdims_example",
    "reshape_zero_dim",
    "resize_upsample_scales_cubic_align_corners",
    "scatternd_add",
    "slice_neg_steps",
    "softmax_axis_0",
    "top_k_same_values",
    "unique_not_sorted_without_axis",
    "where_example",
]


@cache
def coverage() -> Any:
    spec = importlib.util.spec_from_file_location(
        "onnx_coverage", ROOT / "benchmarks" / "onnx_coverage.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["onnx_coverage"] = module
    spec.loader.exec_module(module)
    return module


@cache
def node_tests() -> dict[str, Any]:
    return {test.name.removeprefix("test_"): test for test in coverage().numeric_tests()}


@pytest.mark.parametrize("name", FEW)
def test_few(name: str) -> None:
    result = coverage().run_test(node_tests()[name])
    assert result.outcome in (coverage().PASSED, coverage().WITH_CONSTANTS), result.reason


COMPILED = ["compress_1", "nonmaxsuppression_center_point_box_format", "nonzero_example"]
"""Data decides on the sizes of their results."""
OTHERS = [
    "nonmaxsuppression_flipped_coordinates",
    "nonmaxsuppression_identical_boxes",
    "nonmaxsuppression_iou_threshold_boundary",
    "nonmaxsuppression_limit_output_size",
    "nonmaxsuppression_single_box",
    "nonmaxsuppression_suppress_by_IOU",
    "nonmaxsuppression_suppress_by_IOU_and_scores",
    "nonmaxsuppression_two_batches",
    "nonmaxsuppression_two_classes",
    "unique_length_1",
    "unique_sorted_without_axis",
]


@pytest.mark.parametrize(
    "name", [*COMPILED, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_compiled(name: str) -> None:
    result = coverage().run_test(node_tests()[name], "cpu")
    assert result.outcome in (coverage().PASSED, coverage().WITH_CONSTANTS), result.reason


def test_what_is_refused_is_refused_by_name() -> None:
    result = coverage().run_test(node_tests()["unique_sorted_with_axis"])
    assert result.outcome == coverage().REFUSED
    assert "Unique" in result.reason


def test_comparison_sees_what_differs() -> None:
    same = np.array([1, 2], np.float32)
    compare = coverage().compare
    assert compare([same], [same], 1e-3, 1e-7) is None
    assert compare([same * 1.0001], [same], 1e-3, 1e-7) is None
    assert "differ by up to" in compare([same * 1.01], [same], 1e-3, 1e-7)
    assert "shape" in compare([same[None]], [same], 1e-3, 1e-7)
    assert "type" in compare([same.astype(np.float64)], [same], 1e-3, 1e-7)
    assert "outputs" in compare([], [same], 1e-3, 1e-7)
    whole = np.array([100000], np.int32)
    assert compare([whole + 1], [whole], 1e-3, 1e-7) is not None
    nan = np.array([np.nan], np.float32)
    assert compare([nan], [nan], 1e-3, 1e-7) is None
    assert compare([same[:1]], [nan], 1e-3, 1e-7) is not None


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_all() -> None:
    results = [coverage().run_test(test) for test in node_tests().values()]
    check_all(results)
    page = PAGE.read_text(encoding="utf-8")
    assert coverage().summary(results) in page, (
        "run benchmarks/onnx_coverage.py --write docs/onnx.md"
    )
    assert coverage().table(results) in page


@pytest.mark.slow
@pytest.mark.timeout(14400)
def test_all_compiled() -> None:
    check_all(list(coverage().run_tests(list(node_tests().values()), "cpu", jobs=2)))


def check_all(results: list[Any]) -> None:
    bad = (coverage().WRONG, coverage().FAILED)
    assert [result for result in results if result.outcome in bad] == []
    passed = [r for r in results if r.outcome in (coverage().PASSED, coverage().WITH_CONSTANTS)]
    assert len(passed) >= LEAST * len(results)


@pytest.mark.parametrize(
    "name",
    [
        "bitcast_float32_to_int32",
        "cast_FLOAT_to_FLOAT8E4M3FN",
        "deform_conv_with_mask_bias",
        "quantizelinear_float4e2m1",
        "roialign_aligned_true",
        "top_k_same_values",
        "unique_not_sorted_without_axis",
    ],
)
def test_few_compiled(name: str) -> None:
    result = coverage().run_test(node_tests()[name], "cpu")
    assert result.outcome in (coverage().PASSED, coverage().WITH_CONSTANTS), result.reason


def test_a_program_without_work_is_compiled() -> None:
    test = node_tests()["reduce_sum_empty_set_non_reduced_axis_zero"]
    assert coverage().run_test(test, "cpu").outcome == coverage().WITH_CONSTANTS


@pytest.mark.parametrize(
    "name",
    [
        "resize_upsample_scales_linear_half_pixel_symmetric",
        "resize_upsample_scales_cubic",
    ],
)
def test_some_that_once_failed_are_compiled(name: str) -> None:
    result = coverage().run_test(node_tests()[name], "cpu")
    assert result.outcome in (coverage().PASSED, coverage().WITH_CONSTANTS), result.reason
