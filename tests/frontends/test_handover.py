"""What worker processes hand over, and how their failures are told."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fewbit.errors import OpenSizesWarning, UnsupportedError
from fewbit.frontends.handover import import_handover, run_worker, write_handover
from fewbit.frontends.input_shape import InputShape
from fewbit.ir.layers import layers

TEXT = b"""
func.func public @main(%w: tensor<2x3xf32>, %x: tensor<4x2xf32>) -> tensor<4x3xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}"""


def test_weights_keep_their_places_and_names(tmp_path: Path) -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_handover(tmp_path, TEXT, {0: ("block/dense/kernel", weight)}, ["image"])
    program = import_handover(tmp_path, "model")
    assert list(layers(program.module)) == ["block.dense"]
    assert program.signature.inputs[0].name == "image"
    x = np.ones((4, 2), np.float32)
    np.testing.assert_array_equal(program.run(x)[0], x @ weight)


def test_a_batch_that_the_model_leaves_open_is_said(tmp_path: Path) -> None:
    weight = np.zeros((2, 3), np.float32)
    write_handover(tmp_path, TEXT, {0: ("w", weight)}, ["image"], {"image": (None, 2), "t": (3,)})
    with pytest.warns(OpenSizesWarning, match="--input-shape 8x2 --input-shape 3"):
        import_handover(tmp_path, "model")


def test_a_worker_gets_shapes_and_environment(tmp_path: Path) -> None:
    code = "import os, sys; open(sys.argv[2] + '/seen', 'w').write(sys.argv[3] + os.environ['A'])"
    shapes = [InputShape((1, 2), "i64"), (3,)]
    run_worker([sys.executable, "-c", code], Path("m"), tmp_path, shapes, {"A": "b"})
    assert (tmp_path / "seen").read_text() == '["1x2:i64", "3:f32"]b'


def test_the_last_words_of_a_worker_are_the_error(tmp_path: Path) -> None:
    code = "import sys; print('before', file=sys.stderr); sys.exit('no such layer')"
    with pytest.raises(UnsupportedError) as caught:
        run_worker([sys.executable, "-c", code], Path("model.keras"), tmp_path, None, {})
    assert caught.value.what == "the model is not exported: no such layer"
    assert caught.value.excerpt == "  before"
    assert "model.keras" in str(caught.value)


def test_a_traceback_of_a_worker_is_not_shown(tmp_path: Path) -> None:
    code = "def load():\n    raise ValueError('no such layer:\\n  dense')\nload()"
    with pytest.raises(UnsupportedError) as caught:
        run_worker([sys.executable, "-c", code], Path("model.keras"), tmp_path, None, {})
    assert caught.value.what == "the model is not exported: dense"
    assert caught.value.excerpt == "  ValueError: no such layer:"
