"""Running an artifact in node: its own JavaScript module, in a process that stays for all calls."""

from __future__ import annotations

import re
import shutil
import subprocess
import weakref
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from fewbit.errors import Error, MissingToolError
from fewbit.program.artifact import Folder
from fewbit.runtime.native import check_inputs, dtype_of
from fewbit.targets.wasm.engine import Engine, engine_of

Array = np.ndarray[Any, Any]
SCRIPT = Path(__file__).with_name("web") / "node.mjs"
TIMED_RUNS = 20
FIRST_RELAXED = 21
"""The first version of node with relaxed SIMD."""


def find_node(engine: Engine) -> str:
    """Return the path of node, if it runs what is compiled for an engine."""
    found = shutil.which("node") or shutil.which("nodejs")
    if found is None:
        raise MissingToolError(
            "node is not installed, which runs WebAssembly here",
            hint="apt-get install nodejs; browsers need nothing",
        )
    if engine.has_byte_dots and (version := _version(found)) < FIRST_RELAXED:
        raise MissingToolError(
            f"node {version} does not run relaxed SIMD, which is in node {FIRST_RELAXED} and later",
            hint="install a newer node, or compile with -t wasm:simd; browsers run it",
        )
    return found


@cache
def _version(node: str) -> int:
    """Return the first number of node's version."""
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.", done.stdout)
    return int(found[1]) if found else 0


class NodeRunner:
    """An artifact in node, called like a function."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.engine = engine_of(folder.manifest.target)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        manifest = self.folder.manifest
        inputs = check_inputs(arrays, manifest.inputs)
        with self._lock:
            process = self._start()
            assert process.stdin is not None
            try:
                for array in inputs:
                    process.stdin.write(np.ascontiguousarray(array).tobytes())
                process.stdin.flush()
                return tuple(self._read(process, tensor) for tensor in manifest.outputs)
            except BrokenPipeError as e:
                raise self._failure(process) from e

    def stats(self) -> str:
        """Return what a call takes, for people to read."""
        return "\n".join(f"{name:20} {value:>12,}" for name, value in self.plain_stats().items())

    def plain_stats(self) -> dict[str, Any]:
        done = subprocess.run(
            [*self._command(), str(TIMED_RUNS)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise Error(f"node failed: {_last_line(done.stderr)}")
        options = self.folder.manifest.options
        return {
            "microseconds": round(float(done.stdout), 1),
            "module_bytes": int(options["module"]),
            "code_bytes": int(options["code"]),
            "memory_bytes": int(options["memory"]),
        }

    def _command(self) -> list[str]:
        for name in ("model.js", "model.wasm"):
            self.folder.file(name)  # checked against its hash
        return [find_node(self.engine), str(SCRIPT), str(self.folder.path.resolve())]

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                self._command(), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=-1
            )
            weakref.finalize(self, _stop, self._process)
        return self._process

    def _read(self, process: subprocess.Popen[bytes], tensor: Any) -> Array:
        assert process.stdout is not None
        shape, dtype = tuple(size or 1 for size in tensor.shape), dtype_of(tensor)
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        data = process.stdout.read(size)
        if len(data) < size:
            raise self._failure(process)
        return np.frombuffer(bytearray(data), dtype).reshape(shape)

    def _failure(self, process: subprocess.Popen[bytes]) -> Error:
        self._process = None
        _, printed = process.communicate()
        return Error(f"node failed: {_last_line(printed.decode(errors='replace'))}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if "Error" in line] or text.splitlines()
    return lines[-1].strip() if lines else "it said nothing"
