"""JAX models: exported, as files, as functions with parameters; names, recipes and refusals."""

from __future__ import annotations

from typing import Any

import pytest

jax: Any = pytest.importorskip("jax", reason="JAX is not installed (pip install 'fewbit[jax]')")
export: Any = pytest.importorskip("jax.export")
lax, jnp = jax.lax, jax.numpy
