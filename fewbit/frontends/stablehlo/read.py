"""StableHLO text or bytecode, read by the binaries of the wheels.

`torch-mlir-opt` reads and verifies both and prints generic text; CHLO is legalized by `iree-opt`
first. Portable artifacts, the bytecode that frameworks exchange (VHLO), are converted to StableHLO
by jaxlib, because no binary here does.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from tempfile import NamedTemporaryFile

from fewbit.errors import MissingToolError, ParseError, Place
from fewbit.frontends.stablehlo.generic import parse_generic
from fewbit.frontends.stablehlo.ops import Module
from fewbit.toolchain.tools import tool_path

BYTECODE = b"ML\xefR"
_PRINT = (
    "--mlir-print-op-generic",
    "--mlir-print-debuginfo",
    "--mlir-print-local-scope",
    "--mlir-print-elementsattrs-with-hex-if-larger=0",
)
_DEPRECATED = "--stablehlo-legalize-deprecated-ops=fail-on-unused=false"
_FAULT = re.compile(r"^(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): error: (?P<what>.*)$", re.M)


def read_module(data: bytes, name: str = "<text>") -> Module:
    """The module of a text or bytecode; `name` is what errors call it."""
    text = _generic(data, name)
    if '"vhlo.' in text:
        text = _generic(_from_portable(data, name), name)
    if '"chlo.' in text:
        legal = run_tool("iree-opt", ["--chlo-legalize-to-stablehlo", *_PRINT], text.encode(), name)
        text = _generic(legal.encode(), name)
    return parse_generic(text)


def _generic(data: bytes, name: str) -> str:
    return run_tool("torch-mlir-opt", [_DEPRECATED, *_PRINT], data, name)


def run_tool(tool: str, flags: Sequence[str], data: bytes, name: str) -> str:
    """Return what an MLIR tool prints; raise its first error as ours, at its place in the text."""
    path = tool_path(tool)
    if path is None:
        raise MissingToolError(f"'{tool}' is not found", hint="it comes in fewbit's own wheels")
    with NamedTemporaryFile(suffix=".mlir") as file:
        file.write(data)
        file.flush()
        done = subprocess.run(
            [path, "--allow-unregistered-dialect", *flags, file.name],
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
    if done.returncode == 0:
        return done.stdout.decode()
    raise _error(done.stderr.decode(errors="replace"), name)


def _error(messages: str, name: str) -> ParseError:
    fault = _FAULT.search(messages)
    if fault is None:
        lines = [line for line in messages.splitlines() if "error:" in line]
        what = (lines or messages.splitlines() or ["it fails without a message"])[0]
        return ParseError(f"this is not StableHLO: {what}", place=Place(file=name))
    place = Place(file=name, line=int(fault["line"]), column=int(fault["column"]))
    excerpt = "\n".join(f"  {line}" for line in messages[fault.end() :].splitlines()[1:3])
    return ParseError(fault["what"], place=place, excerpt=excerpt or None)


def _from_portable(data: bytes, name: str) -> bytes:
    try:
        from jaxlib.mlir import ir  # pyright: ignore
        from jaxlib.mlir.dialects import stablehlo  # pyright: ignore
    except ImportError as e:
        raise MissingToolError(
            "this is a portable artifact of StableHLO, which is read by jaxlib",
            place=Place(file=name),
            hint="pip install 'fewbit[jax]', or write the module as text",
        ) from e
    with ir.Context() as context:  # pyright: ignore
        module = stablehlo.deserialize_portable_artifact(context, data)  # pyright: ignore
        text: str = module.operation.get_asm(enable_debug_info=True)  # pyright: ignore
    return text.encode()  # pyright: ignore
