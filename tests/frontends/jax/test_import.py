"""JAX models: exported, as files, as functions with parameters; names, recipes and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

import fewbit
from fewbit.errors import UnsupportedError, UsageError
from fewbit.ir.layers import layers
from fewbit.quant.quantize import quantize

jax = pytest.importorskip("jax", reason="JAX is not installed (pip install 'fewbit[jax]')")
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from fewbit.frontends.jax import import_jax  # noqa: E402

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


WEIGHTS = {
    "params": {
        "up": {"kernel": floats(6, 8), "bias": floats(8)},
        "blocks": [{"kernel": floats(8, 8)}, {"kernel": floats(8, 8)}],
        "down": {"kernel": floats(8, 3)},
    }
}
X = floats(2, 6)


def mlp(tree: Any, x: Any) -> Any:
    p = tree["params"]
    x = jax.nn.relu(x @ p["up"]["kernel"] + p["up"]["bias"])
    for block in p["blocks"]:
        x = x + jnp.tanh(x @ block["kernel"])
    return {"logits": x @ p["down"]["kernel"], "hidden": x}


def expected() -> list[np.ndarray]:
    return [np.asarray(value) for value in jax.tree.leaves(mlp(WEIGHTS, X))]


def check(program: fewbit.Program, *given: np.ndarray) -> None:
    for result, value in zip(program.run(*given), expected(), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-5)


def test_parameters_name_the_layers() -> None:
    program = import_jax(mlp, (X,), parameters=WEIGHTS)
    check(program, X)
    names = ["params.up", "params.blocks.0", "params.blocks.1", "params.down"]
    assert list(layers(program.module)) == names
    assert "params.up.bias" in program.store
    quantized = quantize(program, "w8a8,params.up=w4a8")
    assert str(quantized.store.shape("params.up.weight")) == str((8, 3))


def test_exported_with_its_parameters() -> None:
    exported = export.export(jax.jit(mlp))(WEIGHTS, jax.ShapeDtypeStruct((2, 6), jnp.float32))
    check(import_jax(exported, parameters=WEIGHTS), X)
    program = fewbit.import_model(exported)
    assert len(program.signature.inputs) == 6
    check(program, *jax.tree.leaves(WEIGHTS), X)


def test_scopes_name_the_layers_of_closures(tmp_path: Path) -> None:
    def net(x: Any) -> Any:
        with jax.named_scope("encoder"):
            for i in range(2):
                with jax.named_scope(f"dense_{i}"):
                    x = jax.nn.relu(x @ floats(6, 6))
        return x @ floats(6, 2)

    exported = export.export(jax.jit(net))(jax.ShapeDtypeStruct((2, 6), jnp.float32))
    program = fewbit.import_model(exported)
    assert list(layers(program.module)) == ["encoder.dense_0", "encoder.dense_1", "dot_general"]
    text, portable, file = (tmp_path / f"net.{end}" for end in ("mlir", "mlirbc", "jax_export"))
    text.write_text(exported.mlir_module())
    portable.write_bytes(exported.mlir_module_serialized)
    file.write_bytes(exported.serialize())
    wanted = program.run(X)[0]
    for path in (text, portable, file):
        np.testing.assert_array_equal(fewbit.import_model(path).run(X)[0], wanted)


def test_compiled_with_a_recipe() -> None:
    def net(x: Any) -> Any:
        return mlp(WEIGHTS, x)["logits"]

    exported = export.export(jax.jit(net))(jax.ShapeDtypeStruct((2, 6), jnp.float32))
    artifact = fewbit.compile(exported, recipe="w8a8")
    program = quantize(fewbit.import_model(exported), "w8a8")
    np.testing.assert_allclose(artifact(X), program.run(X)[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(artifact(X), expected()[1], rtol=0.1, atol=0.2)


def test_a_function_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import jax\nimport jax.numpy as jnp\n\n"
        "def model():\n"
        "    return jax.jit(lambda x: jnp.cumsum(x)), jnp.arange(4.0)\n"
    )
    program = fewbit.import_model(f"{path}:model")
    x = floats(4)
    np.testing.assert_allclose(program.run(x)[0], np.cumsum(x), rtol=1e-5)


def test_weights_of_a_scan_stay_constant() -> None:
    w, u = floats(3, 5), floats(5, 5)

    def rnn(x: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            h = jnp.tanh(row @ w + h @ u)
            return h, h

        return lax.scan(step, np.zeros((2, 5), np.float32), x)

    x = floats(4, 2, 3)
    program = import_jax(rnn, (x,))
    assert len(layers(program.module)) == 2
    for result, value in zip(program.run(x), jax.tree.leaves(rnn(x)), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-5)
    quantize(program, "w8a8").verify()


def loops(program: fewbit.Program, kind: type) -> int:
    return sum(isinstance(op, kind) for op in program.module.walk())


@pytest.mark.parametrize(("first", "last"), [(0, 6), (2, 5), (-3, 2), (4, 4), (5, 1)])
def test_rounds_between_constants_are_counted(first: int, last: int) -> None:
    def count(x: Any) -> Any:
        def more(state: Any) -> Any:
            return state[0] < last

        def step(state: Any) -> Any:
            i, a, b = state
            return i + 1, b, a + b * i

        return lax.while_loop(more, step, (first, x, x + 1))

    x = floats(3)
    program = import_jax(count, (x,))
    assert (loops(program, scf.ForOp), loops(program, scf.WhileOp)) == (1, 0)
    for found in (program.run(x), fewbit.compile(program, name="net").run(x)):
        for result, value in zip(found, jax.tree.leaves(count(x)), strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["data", "step of 2", "two conditions"])
def test_other_rounds_are_not_counted(kind: str) -> None:
    def run(x: Any) -> Any:
        def more(state: Any) -> Any:
            i, a = state
            if kind == "data":
                return a.sum() < 50
            return (i < 7) & (a.sum() < 50) if kind == "two conditions" else i < 7

        def step(state: Any) -> Any:
            i, a = state
            return i + (2 if kind == "step of 2" else 1), a * 2 + 1

        return lax.while_loop(more, step, (0, jnp.abs(x)))

    x = floats(3)
    program = import_jax(run, (x,))
    assert (loops(program, scf.ForOp), loops(program, scf.WhileOp)) == (0, 1)
    for result, value in zip(program.run(x), jax.tree.leaves(run(x)), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-6)


def test_inputs_that_nothing_reads_stay_inputs() -> None:
    def add(a: Any, _: Any, c: Any) -> Any:
        return a + c

    program = import_jax(add, (floats(2), floats(3), floats(2)))
    assert [spec.shape for spec in program.signature.inputs] == [(2,), (3,), (2,)]
    a, b, c = floats(2), floats(3), floats(2)
    np.testing.assert_array_equal(program.run(a, b, c)[0], a + c)


def test_symbolic_shapes_are_refused() -> None:
    (batch,) = export.symbolic_shape("b")
    exported = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((batch, 2), jnp.float32))
    with pytest.raises(UnsupportedError, match=r"symbolic shape: float32\[b,2\]"):
        import_jax(exported)


def test_all_ops_that_cannot_be_imported_are_named() -> None:
    def bad(x: Any) -> Any:
        return jnp.linalg.cholesky(x), jnp.abs(jnp.fft.rfft(x[0]))

    with pytest.raises(UnsupportedError) as caught:
        import_jax(bad, (floats(4, 4),))
    message = str(caught.value)
    assert "stablehlo.fft" in message
    assert "lapack_spotrf" in message


def test_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs inputs"):
        fewbit.import_model(jax.jit(jnp.sin))
    with pytest.raises(UsageError, match="not a JAX function"):
        import_jax(3)
    (tmp_path / "x.jax").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="serialized"):
        fewbit.import_model(tmp_path / "x.jax")


def test_bfloat16() -> None:
    w, x = jnp.bfloat16(floats(6, 3)), jnp.bfloat16(X)

    def layer(x: Any) -> Any:
        return jax.nn.relu(x @ w)

    program = import_jax(layer, (x,))
    result = program.run(np.asarray(x))[0].astype(np.float32)
    np.testing.assert_allclose(result, np.asarray(jax.nn.relu(x @ w), np.float32), rtol=0.02)
