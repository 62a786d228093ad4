# pyright: basic
"""The network in JAX, as a function of its weights. Images are N x H x W x C."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from weights import EPS, Tree


def network(p: Tree, image: jax.Array) -> jax.Array:
    x = _conv(image, p["conv1"]["kernel"])
    norm = p["norm1"]
    x = (x - norm["mean"]) * lax.rsqrt(norm["var"] + EPS) * norm["scale"] + norm["bias"]
    x = _pool(jax.nn.relu(x))
    x = _conv(x, p["conv2"]["kernel"]) + p["conv2"]["bias"]
    x = _pool(jax.nn.relu(x))
    return x.reshape(x.shape[0], -1) @ p["fc"]["kernel"] + p["fc"]["bias"]


def _conv(x: jax.Array, kernel: jax.Array) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)


def _pool(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
