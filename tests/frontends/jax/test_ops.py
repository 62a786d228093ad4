# pyright: basic
"""Families of ops: what JAX computes, the interpreter computes, and a native library does too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fewbit

jax = pytest.importorskip("jax", reason="JAX is not installed (pip install 'fewbit[jax]')")
from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from fewbit.frontends.jax import import_jax  # noqa: E402

Function = Callable[..., Any]


def elementwise(x: Any, y: Any, n: Any) -> Any:
    positive = jnp.abs(x) + 0.1
    return (
        jnp.exp(x), jnp.expm1(x), jnp.log(positive), jnp.log1p(positive), jnp.sqrt(positive),
        lax.rsqrt(positive), jnp.cbrt(x), jnp.tanh(x), jax.nn.sigmoid(x), jnp.sin(x), jnp.cos(x),
        jnp.tan(x), jnp.arctan2(x, y), jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x),
        jnp.power(positive, y), x - y, x / positive, jnp.maximum(x, y), jnp.minimum(x, y),
        jnp.clip(x, -0.5, 0.5), jnp.where(x > y, x, y), jnp.isfinite(x), jnp.fmod(x, positive),
        jax.nn.gelu(x), jax.nn.silu(x), jax.nn.relu6(x), jax.scipy.special.erf(x), -x, x**3,
    )  # fmt: skip


def integers(x: Any, y: Any, n: Any) -> Any:
    u = n.astype(jnp.uint32)
    return (
        n + 3, n * n, n // 3, n % 3, -n, jnp.abs(n), n & 5, n | 5, n ^ 5, ~n, n << 2, n >> 1,
        lax.shift_right_logical(n, 1), lax.clz(n), lax.population_count(n), n > 2,
        lax.div(n, 3), lax.rem(n, 3), (u // 7).astype(jnp.int32), (u % 7).astype(jnp.int32),
        (u > 2).astype(jnp.int32), u.astype(jnp.float32), x.astype(jnp.int32), n.astype(bool),
        n.astype(jnp.int8).astype(jnp.int32), lax.bitcast_convert_type(x, jnp.int32),
    )  # fmt: skip


def shapes(x: Any, y: Any, n: Any) -> Any:
    rows, columns = x.shape
    return (
        x.T, x.reshape(-1), x[1:, ::2], x[::-1], jnp.concatenate([x, y], 1), jnp.stack([x, y]),
        jnp.broadcast_to(x[:, :1], (3, rows, columns)), jnp.tile(x, (2, 1)), jnp.roll(x, 1, 0),
        jnp.pad(x, ((1, 2), (0, 3)), constant_values=1.0), lax.pad(x, 0.0, [(0, 1, 2), (-1, 0, 0)]),
        jnp.pad(x, 1, "reflect"), jnp.tril(jnp.ones((rows, rows))), jnp.arange(rows) * 2,
        lax.dynamic_slice(x, (n[0, 0], 0), (1, 2)),
        lax.dynamic_update_slice(x, y[:1, :2], (n[0, 0], 1)),
    )  # fmt: skip


def reductions(x: Any, y: Any, n: Any) -> Any:
    return (
        x.sum(), x.sum(0), x.mean(1, keepdims=True), x.max(1), x.min(0), x.prod(0), x.std(),
        (x > 0).any(1), (x > 0).all(), x.argmax(1), x.argmin(0), jnp.cumsum(x, 1), n.sum(1),
        jax.nn.softmax(x), jax.nn.log_softmax(x, 0), jax.nn.logsumexp(x, 1), jnp.linalg.norm(x, axis=1),
    )  # fmt: skip


def orders(x: Any, y: Any, n: Any) -> Any:
    return (
        jnp.sort(x), jnp.sort(x, 0), jnp.argsort(x), jnp.argsort(n, 0), *lax.top_k(x, 2),
        jnp.median(x), -jnp.sort(-n, 1),
    )  # fmt: skip


def indices(x: Any, y: Any, n: Any) -> Any:
    ids = n[:, 0]
    return (
        x[ids], jnp.take(x, ids, axis=0), jnp.take_along_axis(x, n[:, :1] % x.shape[1], 1),
        x.at[ids].add(y), x.at[0].set(1.0), x.at[ids, 0].max(y[:, 0]), x.at[:, ids % 2].set(3.0),
        x.at[ids + 1].set(y), jax.nn.one_hot(ids, 5), jnp.where(n > 1, x, 0.0),
    )  # fmt: skip


def products(x: Any, y: Any, n: Any) -> Any:
    batches = jnp.stack([x, y])
    kernel = jnp.stack([jnp.stack([x[:2, :2], y[:2, :2]], -1)] * 2, -1)
    image = jnp.stack([x, y], -1)[None]
    layout = ("NHWC", "HWIO", "NHWC")
    return (
        x @ y.T, jnp.einsum("bij,bkj->bik", batches, batches), jnp.outer(x[0], y[0]), x[0] @ y[0],
        lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=layout),
        lax.conv_general_dilated(image, kernel, (2, 1), [(1, 0), (0, 1)], dimension_numbers=layout),
        lax.conv_transpose(image, kernel, (2, 2), "SAME"),
    )  # fmt: skip


def windows(x: Any, y: Any, n: Any) -> Any:
    image = jnp.stack([x, y], -1)[None]
    two, one = (1, 2, 2, 1), (1, 1, 1, 1)
    return (
        lax.reduce_window(image, -jnp.inf, lax.max, two, two, "VALID"),
        lax.reduce_window(image, -jnp.inf, lax.max, (1, 3, 3, 1), two, "SAME"),
        lax.reduce_window(image, 0.0, lax.add, two, one, "SAME") / 4,
        lax.reduce_window(image, jnp.inf, lax.min, two, two, "VALID"),
        jnp.maximum(lax.reduce_window(image, -jnp.inf, lax.max, two, one, "VALID"), 0),
        jax.image.resize(x, (5, 7), "bilinear"), jax.image.resize(x, (9, 4), "nearest"),
    )  # fmt: skip


def loops(x: Any, y: Any, n: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = jnp.tanh(h * 0.5 + row)
        return h, h.sum()

    return (
        lax.scan(step, y[0], x), lax.fori_loop(0, 5, lambda i, c: (c[1], c[0] + c[1]), (x, y)),
        lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2 + 1, jnp.abs(x)),
        lax.cond(x[0, 0] > 0, lambda v: v + 1, lambda v: v * 2, x),
        lax.switch(n[0, 0], [lambda v: v, lambda v: -v, lambda v: v * 2], x),
        lax.map(lambda row: row.max() - row, x),
    )  # fmt: skip


FAMILIES: list[Function] = [
    elementwise, integers, shapes, reductions, orders, indices, products, windows, loops,
]  # fmt: skip


def made_up(seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(4, 7)), int(rng.integers(4, 7)))
    floats = [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]
    return *floats, rng.integers(0, shape[0] - 1, shape, dtype=np.int32)


def expected(family: Function, given: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [np.asarray(value) for value in jax.tree.leaves(jax.jit(family)(*given))]


def compare(results: Any, wanted: list[np.ndarray]) -> None:
    for i, (result, value) in enumerate(zip(results, wanted, strict=True)):
        assert result.dtype == value.dtype, i
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-5, err_msg=f"output {i}")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_interpreted(family: Function) -> None:
    given = made_up(FAMILIES.index(family))
    program = import_jax(family, given)
    compare(program.run(*given), expected(family, given))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_compiled(family: Function, seed: int) -> None:
    given = made_up(seed)
    program = import_jax(family, given)
    compare(program.run(*given), expected(family, given))
    compare(fewbit.compile(program, "cpu")(*given), expected(family, given))
