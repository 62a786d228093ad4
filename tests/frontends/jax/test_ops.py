"""Families of ops: what JAX computes, the interpreter computes, and a native library does too."""

from __future__ import annotations

from typing import Any

import pytest

jax: Any = pytest.importorskip("jax", reason="JAX is not installed (pip install 'fewbit[jax]')")
lax, jnp = jax.lax, jax.numpy
