"""Keras models: layers by their names, files, shapes, and what Keras itself computes."""

from __future__ import annotations

import os
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import (
    MissingToolError,
    OpenSizesWarning,
    ParseError,
    UnsupportedError,
    UsageError,
)
from fewbit.ir.layers import layers as quantizable
from fewbit.quant.quantize import quantize

pytest.importorskip("jax", reason="JAX is not installed (pip install 'fewbit[keras]')")
os.environ.setdefault("KERAS_BACKEND", "jax")
keras: Any = pytest.importorskip(
    "keras", reason="Keras is not installed (pip install 'fewbit[keras]')"
)
RNG = np.random.default_rng(0)


def randomized(model: Any) -> Any:
    """Weights like those of a trained model: none alike, variances positive."""
    for variable in model.variables:
        if "float" in str(variable.dtype):
            variable.assign(
                RNG.random(tuple(variable.shape), np.float32) - 0.3 * ("var" not in variable.path)
            )
    return model


@cache
def convolutional() -> Any:
    layers = keras.layers
    return randomized(
        keras.Sequential(
            [
                layers.Input((12, 12, 3), name="image"),
                layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False, name="stem"),
                layers.BatchNormalization(name="norm"),
                layers.ReLU(6.0),
                layers.SeparableConv2D(6, 3, padding="same", activation="relu", name="separable"),
                layers.MaxPooling2D(2),
                layers.AveragePooling2D(2, padding="same"),
                layers.Flatten(),
                layers.Dense(5, activation="softmax", name="head"),
            ]
        )
    )


def attention() -> Any:
    layers = keras.layers
    tokens = keras.Input((6,), dtype="int32", name="tokens")
    scale = keras.Input((8,), name="scale")
    x = layers.Embedding(11, 8, name="table")(tokens)
    x = layers.LayerNormalization(name="norm")(
        x + layers.MultiHeadAttention(2, 4, name="mha")(x, x)
    )
    x = layers.GlobalAveragePooling1D()(layers.Conv1D(8, 3, name="conv")(x)) * scale
    return randomized(keras.Model([tokens, scale], [layers.Dense(3, name="head")(x), x]))


def check(program: fewbit.Program, model: Any, *given: np.ndarray) -> None:
    wanted = keras.tree.flatten(model(given[0] if len(given) == 1 else list(given)))
    for result, value in zip(program.run(*given), wanted, strict=True):
        np.testing.assert_allclose(result, np.asarray(value), rtol=1e-5, atol=1e-5)


def test_a_convolutional_network() -> None:
    model = convolutional()
    program = fewbit.import_model(model)
    names = ["stem", "separable.depthwise", "separable.pointwise", "head"]
    assert list(quantizable(program.module)) == names
    assert {"norm.gamma", "norm.moving_variance", "head.bias"} <= set(program.store)
    check(program, model, RNG.standard_normal((1, 12, 12, 3)).astype(np.float32))


@pytest.mark.slow
def test_compiled() -> None:
    model = convolutional()
    artifact = fewbit.compile(model, input_shapes=[(2, 12, 12, 3)])
    x = RNG.standard_normal((2, 12, 12, 3)).astype(np.float32)
    np.testing.assert_allclose(artifact(x), np.asarray(model(x)), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_several_inputs_and_outputs() -> None:
    model = attention()
    program = fewbit.import_model(model, input_shapes=["2x6:i32", "2x8"])
    tokens = RNG.integers(0, 11, (2, 6), dtype=np.int32)
    check(program, model, tokens, RNG.standard_normal((2, 8)).astype(np.float32))
    found = set(quantizable(program.module))
    assert {"table", "conv", "head", "mha.query", "mha.key", "mha.value"} <= found
    quantize(program, "w4a8").verify()


def test_unknown_sizes_are_asked_for() -> None:
    class Model(keras.Model):
        def call(self, x: Any) -> Any:
            return x + 1

    with pytest.raises(UsageError, match="not known"):
        fewbit.import_model(Model())
    program = fewbit.import_model(Model(), input_shapes=[(2, 3)])
    assert (program.run(np.zeros((2, 3), np.float32))[0] == 1).all()
    with pytest.raises(UsageError, match="1 inputs, not 2"):
        fewbit.import_model(convolutional(), input_shapes=[(1, 12, 12, 3), (1,)])


def test_a_batch_that_is_left_open_is_1_and_that_is_said() -> None:
    words = r"batch of 1.*'image' is \?x12x12x3.*--input-shape 8x12x12x3"
    with pytest.warns(OpenSizesWarning, match=words):
        program = fewbit.import_model(convolutional())
    assert program.signature.inputs[0].shape == (1, 12, 12, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OpenSizesWarning)
        fewbit.import_model(convolutional(), input_shapes=[(1, 12, 12, 3)])


def test_other_open_sizes_are_asked_for() -> None:
    inputs = keras.Input((None, None, 3), name="image")
    model = keras.Model(inputs, keras.layers.Conv2D(4, 3, padding="same")(inputs))
    with pytest.raises(UsageError, match=r"'image' leaves sizes open: \?x\?x\?x3"):
        fewbit.import_model(model)
    program = fewbit.import_model(model, input_shapes=[(1, 8, 8, 3)])
    assert program.signature.inputs[0].shape == (1, 8, 8, 3)


@pytest.mark.slow
def test_files_say_which_sizes_they_leave_open(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    convolutional().save(path)
    with pytest.warns(OpenSizesWarning, match="--input-shape 8x12x12x3"):
        fewbit.import_model(path)
    inputs = keras.Input((None, 3), name="series")
    keras.Model(inputs, keras.layers.Conv1D(4, 3)(inputs)).save(path)
    with pytest.raises(UnsupportedError, match=r"'series' leaves sizes open.*--input-shape"):
        fewbit.import_model(path)


@pytest.mark.slow
def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = convolutional()
    path = tmp_path / "model.keras"
    model.save(path)
    program = fewbit.import_model(path, input_shapes=[(2, 12, 12, 3)])
    assert "stem" in quantizable(program.module)
    check(program, model, RNG.standard_normal((2, 12, 12, 3)).astype(np.float32))
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(UnsupportedError, match="'torch'"):
        fewbit.import_model(path)


def missing(name: str) -> None:
    """`find_spec` where nothing is installed."""


def test_keras_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.keras").write_bytes(b"")
    monkeypatch.setattr("fewbit.frontends.keras.find_spec", missing)
    with pytest.raises(MissingToolError, match="keras and jax are not installed"):
        fewbit.import_model(tmp_path / "model.keras")


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_what_is_no_archive_is_refused_at_once(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", backend)
    path = tmp_path / "bad.keras"
    path.write_bytes(b"nothing")
    with pytest.raises(ParseError, match=r"not a \.keras file, or a damaged one") as caught:
        fewbit.import_model(path)
    assert "model.save" in str(caught.value)
    assert "bad.keras" in str(caught.value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(ParseError, match=r"no metadata\.json and no model\.weights\.h5"):
        fewbit.import_model(path)


def test_a_damaged_archive_names_the_part(tmp_path: Path) -> None:
    path = tmp_path / "bad.keras"
    with zipfile.ZipFile(path, "w") as archive:
        for part in ("config.json", "metadata.json", "model.weights.h5"):
            archive.writestr(part, f"content of {part}")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"content of model", b"Content of model"))
    with pytest.raises(ParseError, match=r"damaged in model\.weights\.h5"):
        fewbit.import_model(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ParseError, match="a damaged one"):
        fewbit.import_model(path)
