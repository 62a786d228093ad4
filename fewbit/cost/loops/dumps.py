"""Files that IREE dumps, and programs of ours, as modules that loop nests can be read from.

`iree-opt` turns named ops into generic ones and prints all ops in the form that xDSL reads. Large
constants are left out, so what comes out is for analysis and never compiled.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from fewbit.errors import ParseError, Place
from fewbit.ir.context import make_context
from fewbit.ir.parse import parse_module
from fewbit.toolchain.tools import iree_tool

PRINTED = (
    "--mlir-print-op-generic",
    "--mlir-print-local-scope",
    "--mlir-elide-resource-strings-if-larger=32",
    "--mlir-elide-elementsattrs-if-larger=32",
    "--allow-unregistered-dialect",
)
_PARAMETER = re.compile(r"#flow\.parameter\.named<[^>]*> : tensor<[^>]*>")
"""A typed attribute, which xDSL does not read where its dialect is not known."""


def read_dump(path: Path) -> ModuleOp:
    """Return a dispatch that IREE wrote, before or after it was configured."""
    return parse_generic(generic_text(path.read_text(encoding="utf-8"), str(path)), str(path))


def generic_text(text: str, name: str = "-", *, locations: bool = False) -> str:
    """Return MLIR that IREE reads in generic form, named ops generalized, without weights."""
    shown = ("--mlir-print-debuginfo",) if locations else ()
    pipeline = f"--pass-pipeline={pipeline_for(text)}"
    done = subprocess.run(
        [iree_tool("iree-opt"), "-", pipeline, *PRINTED, *shown],
        input=text,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        what = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        raise ParseError(f"IREE cannot read it: {what}", place=Place(file=name))
    return _PARAMETER.sub("unit", done.stdout)


def pipeline_for(text: str) -> str:
    """Return the pipeline that reaches functions, perhaps in a variant of an executable."""
    inner = "func.func(linalg-generalize-named-ops)"
    if "hal.executable.variant" not in text:
        return f"builtin.module({inner})"
    return f"builtin.module(hal.executable(hal.executable.variant(builtin.module({inner}))))"


def parse_generic(text: str, name: str = "-") -> ModuleOp:
    return parse_module(text, name, make_context(allow_unregistered=True))
