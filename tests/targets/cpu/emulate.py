"""Runs a library for another processor under qemu, without a cross compiler.

A program that calls the library is a page of LLVM IR: inputs come from standard input, outputs go
to standard output. It is made as the library is, by LLVM and LLD, and linked to it dynamically;
only the processor's own libc and its loader have to be here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewbit.runtime import Artifact
from fewbit.runtime.emulated import EMULATORS as RUNTIME_EMULATORS
from fewbit.runtime.emulated import Emulator
from fewbit.runtime.native import dtype_of
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.link import stand_in
from fewbit.toolchain.lld import lld
from fewbit.toolchain.objects import emit_object, parse_ir

Array = np.ndarray[Any, Any]


EMULATORS = {
    "aarch64": replace(RUNTIME_EMULATORS["aarch64"], processor="cortex-a53"),
    "aarch64-dotprod": RUNTIME_EMULATORS["aarch64"],
    "riscv64": replace(RUNTIME_EMULATORS["riscv64"], processor="rv64,v=false"),
    "riscv64-v": replace(RUNTIME_EMULATORS["riscv64"], processor="rv64,v=true,vlen=128"),
}
OLDEST = {"riscv64-v": 8}
"""The first version that runs our code right: older ones assert at conversions of vectors."""


@cache
def missing(processor: str) -> str | None:
    """Return what this machine lacks to run code for a processor."""
    emulator = EMULATORS[processor]
    if shutil.which(emulator.program) is None:
        return f"{emulator.program} is not installed (Debian: qemu-user)"
    if not (emulator.root / emulator.loader).exists():
        return f"{emulator.root} has no libc (Debian: libc6-arm64-cross, libc6-riscv64-cross)"
    told = subprocess.run([emulator.program, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"version (\d+)", told)
    if version is None or int(version[1]) < OLDEST.get(processor, 0):
        return f"{emulator.program} is older than version {OLDEST[processor]}"
    return None


def emulated(artifact: Artifact, folder: Path, *arrays: Array, like: Sequence[Array], threads: int = 1, processor: str | None = None) -> list[Array]:  # fmt: skip
    """The outputs for these inputs, of the shapes of `like`.

    The processor is the one that the artifact was compiled for, unless named.
    """
    processor = processor or artifact.manifest.target.partition(":")[2]
    done = _run(_program(artifact, arrays, like, threads), artifact, folder, processor, arrays)
    assert done.returncode == 0, (done.returncode, done.stderr.decode())
    outputs: list[Array] = []
    at = 0
    for array, tensor in zip(like, artifact.manifest.outputs, strict=True):
        size = array.size * dtype_of(tensor).itemsize
        result = np.frombuffer(done.stdout[at : at + size], dtype_of(tensor))
        outputs.append(result.reshape(array.shape))
        at += size
    assert at == len(done.stdout)
    return outputs


def variant_on(processor: str, artifact: Artifact, folder: Path) -> str:
    """The variant that a library chooses; empty where none fits."""
    done = _run(_asking(artifact.manifest.name), artifact, folder, processor)
    assert done.returncode == 0, (done.returncode, done.stderr.decode())
    return done.stdout.decode()


def _run(text: str, artifact: Artifact, folder: Path, processor: str, arrays: Sequence[Array] = ()) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """Run a program that calls the library."""
    if (lacking := missing(processor)) is not None:
        pytest.skip(lacking)
    emulator = EMULATORS[processor]
    return subprocess.run(
        [*emulator.command, str(_link(text, artifact, folder, emulator))],
        input=b"".join(a.tobytes() for a in arrays),
        capture_output=True,
        timeout=120,
    )


def _link(text: str, artifact: Artifact, folder: Path, emulator: Emulator) -> Path:
    isa = Isa.of(emulator.architecture)
    module = parse_ir(text)
    module.triple = isa.triple
    path = folder / f"{artifact.manifest.name}-{isa.name}"
    (folder / "program.o").write_bytes(emit_object(module, isa))
    shutil.rmtree(folder / "for-libc.so.6", ignore_errors=True)
    lld([
        "-o", str(path), "-dynamic-linker", f"/{emulator.loader}", "-rpath", str(artifact.folder),
        "--allow-shlib-undefined", str(folder / "program.o"),
        str(artifact.folder / f"lib{artifact.manifest.name}.so"),
        stand_in(folder, "libc.so.6", ["read", "write", "aligned_alloc", "strlen", "usleep", "_exit"], isa),
    ])  # fmt: skip
    return path


def _asking(name: str) -> str:
    return f"""
declare ptr @{name}_variant()
declare i64 @strlen(ptr)
declare i64 @write(i32, ptr, i64)
declare void @_exit(i32)

define void @_start() {{
  %its = call ptr @{name}_variant()
  %none = icmp eq ptr %its, null
  br i1 %none, label %end, label %tell
tell:
  %length = call i64 @strlen(ptr %its)
  call i64 @write(i32 1, ptr %its, i64 %length)
  br label %end
end:
  call void @_exit(i32 0)
  unreachable
}}
"""


def _program(artifact: Artifact, arrays: Sequence[Array], like: Sequence[Array], threads: int) -> str:  # fmt: skip
    name = artifact.manifest.name
    state, body = list[str](), list[str]()
    for kind, tensors, given in (
        ("inputs", artifact.manifest.inputs, arrays),
        ("outputs", artifact.manifest.outputs, like),
    ):
        fields: list[str] = []
        for tensor, array in zip(tensors, given, strict=True):
            size = array.size * dtype_of(tensor).itemsize
            state.append(
                f"@{kind}.{tensor.name} = global [{max(size, 1)} x i8] zeroinitializer, align 64"
            )
            fields.append(f"ptr @{kind}.{tensor.name}")
            fields += [
                f"i64 {array.shape[i] if kind == 'inputs' else -1}"
                for i, s in enumerate(tensor.shape)
                if s is None
            ]
            if kind == "inputs":
                body.append(f"call void @receive(ptr @{kind}.{tensor.name}, i64 {size})")
        types = ", ".join(f.split()[0] for f in fields)
        state.append(f"@{kind} = global {{ {types} }} {{ {', '.join(fields)} }}")
    body += [
        f"%size = call i64 @{name}_arena_bytes(ptr @inputs)",
        "%room = add i64 %size, 63",
        "%whole = and i64 %room, -64",
        "%arena = call ptr @aligned_alloc(i64 64, i64 %whole)",
        f"%first = call i32 @{name}_run(ptr @inputs, ptr @outputs, ptr %arena, i32 {threads})",
        # By then the threads sleep.
        "%rested = call i32 @usleep(i32 2000)",
        f"%status = call i32 @{name}_run(ptr @inputs, ptr @outputs, ptr %arena, i32 {threads})",
    ]
    for tensor, array in zip(artifact.manifest.outputs, like, strict=True):
        size = array.size * dtype_of(tensor).itemsize
        body.append(f"call i64 @write(i32 1, ptr @outputs.{tensor.name}, i64 {size})")
    lines = "\n  ".join(body)
    return (
        "\n".join(state)
        + f"""
declare i64 @{name}_arena_bytes(ptr)
declare i32 @{name}_run(ptr, ptr, ptr, i32)
declare i64 @read(i32, ptr, i64)
declare i64 @write(i32, ptr, i64)
declare ptr @aligned_alloc(i64, i64)
declare i32 @usleep(i32)
declare void @_exit(i32)

define void @receive(ptr %to, i64 %count) {{
entry:
  br label %more
more:
  %got = phi i64 [0, %entry], [%sum, %read]
  %whole = icmp uge i64 %got, %count
  br i1 %whole, label %done, label %read
read:
  %at = getelementptr i8, ptr %to, i64 %got
  %left = sub i64 %count, %got
  %now = call i64 @read(i32 0, ptr %at, i64 %left)
  %sum = add i64 %got, %now
  br label %more
done:
  ret void
}}

define void @_start() {{
  {lines}
  call void @_exit(i32 %status)
  unreachable
}}
"""
    )
