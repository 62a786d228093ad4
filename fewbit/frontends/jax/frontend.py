"""JAX: functions, what `jax.export` makes of them, and files of that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewbit.frontends.frontend import Frontend, Given, packages_of
from fewbit.program.program import Program

EXPORTED = (".jax", ".jax_export")
"""Files of what `jax.export` has serialized."""


class Jax(Frontend):
    def takes(self, model: Any) -> bool:
        return bool(packages_of(model) & {"jax", "jaxlib"})

    def import_object(self, model: Any, given: Given) -> Program:
        from fewbit.frontends.input_shape import DTYPES
        from fewbit.frontends.jax import import_jax, struct

        structs = tuple(struct(s, DTYPES[s.dtype]) for s in given.sizes or ())
        return import_jax(model, given.inputs_in_order or structs)

    def reads(self, path: Path) -> bool:
        return path.suffix in EXPORTED

    def import_file(self, path: Path, given: Given) -> Program:
        from fewbit.frontends.jax import import_jax, load_exported

        return import_jax(load_exported(path))
