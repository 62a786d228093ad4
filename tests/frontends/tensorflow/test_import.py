"""SavedModels, exported by a process of their own, equal what TensorFlow computes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.errors import MissingToolError, OpenSizesWarning, UnsupportedError
from fewbit.frontends.tensorflow import PYTHON, import_saved_model
from fewbit.ir.layers import layers
from fewbit.quant.quantize import quantize

MAKE = """
import sys
import numpy as np, tensorflow as tf

class Model(tf.Module):
    def __init__(self):
        rng = np.random.default_rng(0)
        new = lambda name, *shape: tf.Variable(rng.standard_normal(shape).astype("f"), name=name)
        self.kernel, self.offset = new("conv/kernel", 3, 3, 2, 4), new("conv/bias", 4)
        self.dense = new("dense/kernel", 36, 5)

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 2], tf.float32, name="image")])
    def call(self, image):
        x = tf.nn.relu(tf.nn.conv2d(image, self.kernel, 1, "SAME") + self.offset)
        x = tf.nn.max_pool2d(x, 2, 2, "SAME")
        return {"logits": tf.reshape(x, [-1, 36]) @ self.dense, "score": tf.reduce_max(x, [1, 2])}

model = Model()
tf.saved_model.save(model, sys.argv[1], signatures=model.call)
x = np.random.default_rng(1).standard_normal((2, 6, 6, 2)).astype("f")
y = model.call(x)
np.savez(sys.argv[2], x=x, logits=y["logits"].numpy(), score=y["score"].numpy())
"""
RUN = """
import sys
import numpy as np, tensorflow as tf

v1 = tf.compat.v1
with v1.Graph().as_default(), v1.Session() as session:
    signature = v1.saved_model.load(session, ["serve"], sys.argv[1]).signature_def["serving_default"]
    (given,) = signature.inputs.values()
    shape = [1 if d.size < 0 else d.size for d in given.tensor_shape.dim]
    x = np.random.default_rng(0).standard_normal(shape).astype("f")
    names = [info.name for _, info in sorted(signature.outputs.items())]
    np.savez(sys.argv[2], x, *session.run(names, {given.name: x}))
"""


@pytest.fixture
def tensorflow() -> str:
    """A Python that has TensorFlow."""
    if os.environ.get(PYTHON):
        return os.environ[PYTHON]
    if find_spec("tensorflow") is None:
        pytest.skip(f"TensorFlow is not installed, and {PYTHON} names no Python that has it")
    return sys.executable


def run(python: str, code: str, *arguments: object) -> None:
    done = subprocess.run(
        [python, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_a_saved_model(tmp_path: Path, tensorflow: str) -> None:
    run(tensorflow, MAKE, tmp_path / "model", tmp_path / "expected.npz")
    expected = np.load(tmp_path / "expected.npz")
    program = fewbit.import_model(tmp_path / "model", input_shapes=[(2, 6, 6, 2)])
    assert list(layers(program.module)) == ["conv", "dense"]
    logits, score = program.run(expected["x"])
    np.testing.assert_allclose(logits, expected["logits"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(score, expected["score"], rtol=1e-5, atol=1e-5)
    quantize(program, "w4a8").verify()
    with pytest.warns(OpenSizesWarning, match=r"'image' is \?x6x6x2.*--input-shape 8x6x6x2"):
        fixed = import_saved_model(tmp_path / "model")
    assert fixed.signature.inputs[0].shape == (1, 6, 6, 2)
    with pytest.raises(UnsupportedError, match="there is no signature 'other'"):
        import_saved_model(tmp_path / "model", signature="other")
    with pytest.raises(UnsupportedError, match="the model has 1 inputs, not 2"):
        import_saved_model(tmp_path / "model", [(2, 6, 6, 2), (1,)])


@pytest.mark.slow
def test_open_sizes_beside_the_batch_are_asked_for(tmp_path: Path, tensorflow: str) -> None:
    run(
        tensorflow,
        MAKE.replace("[None, 6, 6, 2]", "[None, None, 6, 2]"),
        *(tmp_path / "model", tmp_path / "expected.npz"),
    )
    with pytest.raises(UnsupportedError, match=r"sizes open: \?x\?x6x2; .*--input-shape"):
        import_saved_model(tmp_path / "model")
    program = import_saved_model(tmp_path / "model", [(1, 6, 6, 2)])
    assert program.signature.inputs[0].shape == (1, 6, 6, 2)


@pytest.mark.slow
def test_a_saved_model_of_a_wheel(tmp_path: Path, tensorflow: str) -> None:
    """`pip install --no-deps basic-pitch`."""
    found = find_spec("basic_pitch")
    if found is None or not found.submodule_search_locations:
        pytest.skip("basic-pitch, which has a SavedModel, is not installed")
    (folder,) = Path(found.submodule_search_locations[0]).rglob("saved_model.pb")
    run(tensorflow, RUN, folder.parent, tmp_path / "expected.npz")
    x, *expected = np.load(tmp_path / "expected.npz").values()
    program = fewbit.import_model(folder.parent)
    for result, value in zip(program.run(x), expected, strict=True):
        np.testing.assert_allclose(result, value, atol=1e-4)
    artifact = fewbit.compile(program, "cpu")
    for result, value in zip(artifact(x), expected, strict=True):
        np.testing.assert_allclose(result, value, atol=1e-4)


def missing(name: str) -> None:
    """`find_spec` where nothing is installed."""


def test_tensorflow_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    monkeypatch.delenv(PYTHON, raising=False)
    monkeypatch.setattr("fewbit.frontends.tensorflow.find_spec", missing)
    with pytest.raises(MissingToolError) as caught:
        fewbit.import_model(tmp_path)
    assert PYTHON in str(caught.value)
    assert "tensorflow-cpu" in str(caught.value)
