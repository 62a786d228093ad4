"""Floats of 4 and 8 bits: every code, and rounding to each format, against ml_dtypes."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
import torch

from fewbit.base.typed_torch import from_numpy

pytest.importorskip("onnx")

from onnx import TensorProto, helper

import fewbit
from fewbit.frontends.onnx import import_onnx
from fewbit.frontends.onnx.small_floats import decode, encode, round_to
from fewbit.frontends.onnx.values import Known

FORMATS: dict[int, Any] = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}
NAMES = {kind: TensorProto.DataType.Name(kind) for kind in FORMATS}  # pyright: ignore


def read(table: Known) -> torch.Tensor:
    return table.tensor


@pytest.mark.parametrize("kind", FORMATS, ids=NAMES.get)
def test_every_code_there_and_back(kind: int) -> None:
    bits = 4 if kind == TensorProto.FLOAT4E2M1 else 8
    codes = np.arange(2**bits).astype(np.uint8)
    values = decode(from_numpy(codes.astype(np.int32)), kind, read).numpy()
    np.testing.assert_array_equal(values, codes.view(FORMATS[kind]).astype(np.float32))
    back = encode(from_numpy(values), kind, read).numpy().astype(np.uint8)
    is_number = ~np.isnan(values)
    np.testing.assert_array_equal(back[is_number], codes[is_number])
    assert np.isnan(back.view(FORMATS[kind]).astype(np.float32))[~is_number].all()


@pytest.mark.parametrize("kind", FORMATS, ids=NAMES.get)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_rounding(kind: int, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(kind)
    values = FORMATS[kind](np.nan_to_num(np.arange(127).astype(np.uint8).view(FORMATS[kind])))
    exact = np.unique(np.nan_to_num(values.astype(np.float64)))
    ties = (exact[1:] + exact[:-1]) / 2
    exact = np.concatenate(
        [rng.standard_normal(500) * 10.0 ** rng.integers(-6, 6, 500), ties, -ties]
    )
    with np.errstate(over="ignore"):
        x: np.ndarray = exact.astype(dtype)
    x = x[np.isfinite(x)]
    largest = float(cast(Any, ml_dtypes.finfo(FORMATS[kind])).max)
    given = from_numpy(x)
    # What ml_dtypes rounds f64 to, it rounds twice.
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    same = single == x
    with np.errstate(all="ignore"):
        bounded = np.clip(single, -largest, largest).astype(FORMATS[kind]).astype(np.float32)
        free = single.astype(FORMATS[kind]).astype(np.float32)
    rounded = round_to(given, kind, read, saturate=True).numpy()
    np.testing.assert_array_equal(rounded[same], bounded[same])
    rounded = round_to(given, kind, read, saturate=False).numpy()
    np.testing.assert_array_equal(rounded[same], free[same])


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two(mode: str) -> None:
    x = np.array([1.0, 1.4, 1.6, 3.0, 1e9, 1e-9, np.nan, np.inf], np.float32)
    exponents = np.log2(x[:6].astype(np.float64))
    whole = {"up": np.ceil, "down": np.floor}.get(mode)
    expected = 2.0 ** (whole(exponents) if whole else np.array([0.0, 0, 1, 2, 30, -30]))
    result = round_to(from_numpy(x), TensorProto.FLOAT8E8M0, read, mode=mode).numpy()
    np.testing.assert_array_equal(result[:6], expected.astype(np.float32))
    assert np.isnan(result[6:]).all()


def test_a_program_takes_and_gives_their_bits() -> None:
    kind, dtype = TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["wide", "wide"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["y"], to=kind),
    ]
    tensors = [helper.make_tensor_value_info(name, kind, [5]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:])
    program = import_onnx(helper.make_model(graph))
    x = np.array([1.0, -0.1, 300.0, 0.001, -0.0], np.float32).astype(dtype)
    wanted = np.clip(2 * x.astype(np.float32), -448, 448).astype(dtype).view(np.uint8)
    (interpreted,) = program.run(x.view(np.uint8))
    np.testing.assert_array_equal(interpreted, wanted)
    np.testing.assert_array_equal(fewbit.compile(program)(x.view(np.uint8)), wanted)
