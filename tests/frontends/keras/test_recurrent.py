"""Recurrent layers of Keras are loops: layers in them are quantized, code does not grow."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

import fewbit
from fewbit.ir.layers import layers as quantizable

pytest.importorskip("jax", reason="JAX is not installed (pip install 'fewbit[keras]')")
os.environ.setdefault("KERAS_BACKEND", "jax")
keras: Any = pytest.importorskip(
    "keras", reason="Keras is not installed (pip install 'fewbit[keras]')"
)

LAYERS: dict[str, Any] = {
    "lstm": lambda: keras.layers.LSTM(8, return_sequences=True, name="layer"),
    "gru": lambda: keras.layers.GRU(8, go_backwards=True, name="layer"),
    "rnn": lambda: keras.layers.SimpleRNN(8, name="layer"),
    "bidirectional": lambda: keras.layers.Bidirectional(keras.layers.LSTM(8), name="layer"),
}


def network(name: str, steps: int, masked: bool = False) -> Any:
    keras.utils.set_random_seed(0)
    first = [keras.layers.Masking()] if masked else []
    return keras.Sequential([keras.layers.Input((steps, 5)), *first, LAYERS[name]()])


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_loops(name: str) -> None:
    models = [network(name, steps) for steps in (8, 64)]
    programs = [fewbit.import_model(m, input_shapes=[(2, *m.input_shape[1:])]) for m in models]
    short, long = (sum(1 for _ in program.module.walk()) for program in programs)
    assert short == long
    loops = [op for op in programs[0].module.walk() if isinstance(op, scf.ForOp)]
    assert len(loops) == (2 if name == "bidirectional" else 1)
    recurrent = [n for n in quantizable(programs[0].module) if n.endswith("cell.recurrent")]
    assert len(recurrent) == len(loops)
    x = np.random.default_rng(0).standard_normal((2, 8, 5)).astype(np.float32)
    wanted = np.asarray(models[0](x))
    for found in (programs[0].run(x)[0], fewbit.compile(programs[0], name="net")(x)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_layers_in_loops_are_quantized() -> None:
    model = network("lstm", 16)
    program = fewbit.import_model(model, input_shapes=[(1, 16, 5)])
    quantized = fewbit.quantize(program, "w8a8", strict=True)
    x = np.random.default_rng(0).standard_normal((1, 16, 5)).astype(np.float32)
    exact, rounded = program.run(x)[0], quantized.run(x)[0]
    assert 0 < np.linalg.norm(exact - rounded) < 0.05 * np.linalg.norm(exact)


def test_steps_that_are_masked() -> None:
    model = network("gru", 6, masked=True)
    program = fewbit.import_model(model, input_shapes=[(2, 6, 5)])
    x = np.random.default_rng(0).standard_normal((2, 6, 5)).astype(np.float32)
    x[0, 4:] = 0
    np.testing.assert_allclose(program.run(x)[0], np.asarray(model(x)), rtol=1e-5, atol=1e-6)
