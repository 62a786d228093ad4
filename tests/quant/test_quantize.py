"""Quantizing programs: what changes, what stays, and that the numbers are those of numerics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewbit.dialects.mico import BitLinearOp, EmbeddingOp, HadamardOp, QuantizedLayerOp
from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.frontends import import_model
from fewbit.ir.layers import layers
from fewbit.ir.locations import place_of
from fewbit.numerics import bitlinear, quantize_weight
from fewbit.numerics.hadamard import rotate
from fewbit.program.program import Program
from fewbit.program.store import WeightStore
from fewbit.quant.quantize import quantize

TEXT = """
mico.constant @fc1.weight : tensor<6x8xf32> = {fc1}
mico.constant @fc1.bias : tensor<6xf32> = dense<0.5>
mico.constant @fc2.weight : tensor<4x6xf32> = {fc2}
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {{
  %h = mico.bitlinear(%x, @fc1.weight, @fc1.bias) : (tensor<?x8xf32>) -> tensor<?x6xf32>
  %r = mico.relu(%h) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %y = mico.bitlinear(%r, @fc2.weight) : (tensor<?x6xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}}
"""
RNG = np.random.default_rng(0)
W1 = RNG.standard_normal((6, 8), dtype=np.float32)
W2 = RNG.standard_normal((4, 6), dtype=np.float32)
X = RNG.standard_normal((3, 8), dtype=np.float32)


@pytest.fixture
def program() -> Program:
    store = WeightStore()
    refs = {name: store.add(f"{name}.weight", data) for name, data in (("fc1", W1), ("fc2", W2))}
    text = TEXT.format(**{name: f'#mico.ref<"{r.key}", "{r.sha256}">' for name, r in refs.items()})
    return Program.parse(text, store)


def expected(first: Any, second: Any) -> Any:
    h = np.maximum(bitlinear(X, first[0], np.full(6, 0.5, np.float32), first[1]), 0)
    return bitlinear(h, second[0], None, second[1])


def test_layers_are_found_by_their_weights(program: Program) -> None:
    assert list(layers(program.module)) == ["fc1", "fc2"]


@pytest.mark.parametrize("width", [1, 1.58, 2, 3, 4, 5, 6, 7, 8])
def test_numbers_are_those_of_numerics(program: Program, width: float) -> None:
    quantized = quantize(program, f"w{width}a8")
    quantized.verify()
    (y,) = quantized.run(X)
    first, second = quantize_weight(W1, width), quantize_weight(W2, width)
    np.testing.assert_array_equal(y, expected((first, 8), (second, 8)))


def test_each_layer_has_its_own_scheme(program: Program) -> None:
    quantized = quantize(program, {"version": 1, "default": "w8a8", "layers": {"fc2": "w4afp"}})
    first, second = (ops[0] for ops in layers(quantized.module).values())
    assert isinstance(first, QuantizedLayerOp)
    assert isinstance(second, QuantizedLayerOp)
    assert (str(first.weight_width), str(first.act_width)) == ("8", "8")
    assert (str(second.weight_width), second.act_width) == ("4", None)
    (y,) = quantized.run(X)
    np.testing.assert_allclose(
        y, expected((quantize_weight(W1, 8), 8), (quantize_weight(W2, 4), None)), rtol=1e-6
    )


def test_groups_and_zero_points(program: Program) -> None:
    quantized = quantize(
        program, {"version": 1, "default": "w4a8-asym", "layers": {"fc1": "w4a8g4"}}
    )
    quantized.verify()
    first = quantize_weight(W1, 4, granularity="group", group=4)
    second = quantize_weight(W2, 4, symmetric=False)
    np.testing.assert_array_equal(quantized.run(X)[0], expected((first, 8), (second, 8)))


def test_given_program_is_not_changed(program: Program) -> None:
    before = program.text()
    (y,) = program.run(X)
    quantize(program, "w2a8")
    assert program.text() == before
    np.testing.assert_array_equal(program.run(X)[0], y)


def test_float_weights_are_gone_and_bytes_are_packed(program: Program) -> None:
    quantized = quantize(program, "w4a8")
    assert quantized.store["fc1.weight"].shape == (6, 4)
    assert quantized.store["fc1.weight"].dtype == np.uint8
    assert quantized.store["fc1.weight.scale"].shape == (6,)
    assert "tensor<6x8xf32>" not in quantized.text()


def test_locations_survive(program: Program) -> None:
    before = [place_of(op) for ops in layers(program.module).values() for op in ops]
    quantized = quantize(program, "w4a8")
    assert [place_of(op) for ops in layers(quantized.module).values() for op in ops] == before


def test_static_scales_come_from_calibration(program: Program) -> None:
    quantized = quantize(program, "w8a8-static", {"fc1": 0.02, "fc2": 0.05})
    assert all(
        isinstance(op, BitLinearOp) and op.act_scale is not None
        for ops in layers(quantized.module).values()
        for op in ops
    )
    with pytest.raises(UsageError, match="fc2") as caught:
        quantize(program, "w8a8-static", {"fc1": 0.02})
    assert "calibrat" in (caught.value.hint or "")


def test_quantizing_twice_is_refused(program: Program) -> None:
    with pytest.raises(UsageError, match="already") as caught:
        quantize(quantize(program, "w8a8"), "w4a8")
    assert caught.value.place.layer == "fc1"


def test_group_that_does_not_divide_names_the_layer(program: Program) -> None:
    with pytest.raises(Exception, match="fc2"):
        quantize(program, "w4a8g8")


def test_saved_and_loaded_program_gives_the_same(program: Program, tmp_path: Any) -> None:
    quantized = quantize(program, "w3a8")
    quantized.save(tmp_path / "q")
    loaded = Program.load(tmp_path / "q")
    loaded.verify()
    assert loaded.recipe == "w3a8"
    before, after = (
        [place_of(op) for ops in layers(p.module).values() for op in ops]
        for p in (quantized, loaded)
    )
    assert before == after, "places survive in the file"
    np.testing.assert_array_equal(loaded.run(X)[0], quantized.run(X)[0])


TIED = """
mico.constant @embed.weight : tensor<10x4xf32> = {w}
func.func @main(%ids: tensor<3xi64>) -> tensor<3x10xf32> {{
  %x = mico.embedding(%ids, @embed.weight) : (tensor<3xi64>) -> tensor<3x4xf32>
  %y = mico.bitlinear(%x, @embed.weight) : (tensor<3x4xf32>) -> tensor<3x10xf32>
  func.return %y : tensor<3x10xf32>
}}
"""


def tied() -> tuple[Program, Any]:
    store = WeightStore()
    table = RNG.standard_normal((10, 4), dtype=np.float32)
    ref = store.add("embed.weight", table)
    return Program.parse(TIED.format(w=f'#mico.ref<"{ref.key}", "{ref.sha256}">'), store), table


def test_rotated_layers_get_rotated_inputs(program: Program) -> None:
    quantized = quantize(program, "w4a8,fc1=w4a8h8")
    (y,) = quantized.run(X)
    first = bitlinear(rotate(X, 8), quantize_weight(rotate(W1, 8), 4), np.full(6, 0.5), 8)
    expected = bitlinear(np.maximum(first, 0), quantize_weight(W2, 4), None, 8)
    np.testing.assert_array_equal(y, expected)
    ops = [op for op in quantized.module.walk() if isinstance(op, HadamardOp)]
    first_layer = layers(quantized.module)["fc1"][0]
    assert [op.location for op in ops] == [first_layer.location]


def test_a_rotated_table_gives_its_rows_back() -> None:
    program, table = tied()
    quantized = quantize(program, "w8a8h4")
    quantized.verify()
    assert sorted(quantized.store.keys()) == ["embed.weight", "embed.weight.scale"]
    tokens = np.array([1, 2, 9])
    (y,) = quantized.run(tokens)
    stored = quantize_weight(rotate(table, 4), 8)
    rows = rotate(stored.dequantize()[tokens], 4)
    np.testing.assert_allclose(rows, table[tokens], atol=0.02)
    np.testing.assert_array_equal(y, bitlinear(rotate(rows, 4), stored, None, 8))


def test_a_rotation_that_does_not_fit_names_the_layer(program: Program) -> None:
    with pytest.raises(ShapeError, match="blocks of 8 do not divide") as error:
        quantize(program, "w4a8h8")
    assert error.value.place.layer == "fc2"


def test_a_convolution_is_not_rotated() -> None:
    with pytest.raises(UnsupportedError, match="convolution cannot be rotated") as error:
        quantize(import_model("zoo:lenet"), "w8a8h2")
    assert error.value.place.layer == "conv1"


def test_tied_weights_share_one_constant() -> None:
    program, _ = tied()
    quantized = quantize(program, "w4a8")
    quantized.verify()
    assert sorted(quantized.store.keys()) == ["embed.weight", "embed.weight.scale"]
    (ops,) = layers(quantized.module).values()
    assert [type(op) for op in ops] == [EmbeddingOp, BitLinearOp]
    quantized.run(np.array([1, 2, 9]))


@pytest.mark.parametrize("scheme", ["w8a8", "w4a8g2-offset", "w4a8g2-mse", "w2a8"])
def test_rows_at_a_time_give_the_same(
    program: Program, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = quantize(program, scheme)
    monkeypatch.setattr("fewbit.program.store.BLOCK", 40)
    monkeypatch.setattr("fewbit.quant.quantize.BLOCK", 40)
    monkeypatch.setattr("fewbit.quant.large_weights.BLOCK", 40)
    parts = quantize(program, scheme)
    assert parts.text() == whole.text()
    assert {key: parts.store.hash(key) for key in parts.store} == {
        key: whole.store.hash(key) for key in whole.store
    }
