"""WebAssembly modules: linked by LLD, and given their weights as a segment of data.

LLD is told where the program's own data begin, so what lies before is ours. Weights go neither
through LLVM's text nor through an object: they are a segment that is added to the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.errors import PassError
from fewbit.toolchain.leb128 import read_unsigned, signed, unsigned
from fewbit.toolchain.lld import run_lld
from fewbit.toolchain.wasm_code import fold_offsets

MAGIC = b"\0asm\1\0\0\0"
_MEMORY, _CODE, _DATA, _DATA_COUNT = 5, 10, 11, 12
PAGE = 64 << 10
_I32_CONST, _END = 0x41, 0x0B


class MissingFunctionsError(PassError):
    """A module that calls what nothing defines."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"the module calls {', '.join(names)}, which nothing defines")
        self.names = tuple(names)


def link_module(
    objects: Sequence[bytes], exports: Sequence[str], *, stack_bytes: int, data_from: int
) -> bytes:
    """Link a module that exports its memory and these functions; its data begin at an address."""
    with TemporaryDirectory(prefix="fewbit-link-") as folder:
        paths = [Path(folder, f"{i}.o") for i in range(len(objects))]
        for path, data in zip(paths, objects, strict=True):
            path.write_bytes(data)
        module = Path(folder, "module.wasm")
        done = run_lld(
            [
                "--no-entry", "--stack-first", "-z", f"stack-size={stack_bytes}",
                f"--global-base={data_from}", "--gc-sections", "-O2",
                *(f"--export={name}" for name in exports), "-o", str(module), *map(str, paths),
            ],
            "wasm",
        )  # fmt: skip
        if done.returncode == 0:
            return _with_offsets(module.read_bytes())
    missing = sorted(set(re.findall(r"undefined symbol: (\S+)", done.stderr)))
    if missing:
        raise MissingFunctionsError(missing)
    raise PassError(f"the linker failed: {done.stderr.strip().splitlines()[0]}")


def sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the sections of a module: their kinds and contents."""
    if not module.startswith(MAGIC):
        raise PassError("this is no WebAssembly module")
    at = len(MAGIC)
    while at < len(module):
        kind = module[at]
        size, at = read_unsigned(module, at + 1)
        yield kind, module[at : at + size]
        at += size


def _with_offsets(module: bytes) -> bytes:
    """Return the module with constant parts of addresses in their loads."""
    parts = [MAGIC]
    for kind, content in sections(module):
        parts.append(_section(kind, _fold_functions(content) if kind == _CODE else content))
    return b"".join(parts)


def _fold_functions(content: bytes) -> bytes:
    count, at = read_unsigned(content, 0)
    parts = [unsigned(count)]
    for _ in range(count):
        size, at = read_unsigned(content, at)
        body, at = content[at : at + size], at + size
        groups, start = read_unsigned(body, 0)
        for _ in range(groups):  # locals: how many, and a type
            start = read_unsigned(body, start)[1] + 1
        body = body[:start] + fold_offsets(body[start:])
        parts += [unsigned(len(body)), body]
    return b"".join(parts)


def with_data(module: bytes, address: int, data: bytes | memoryview) -> bytes:
    """Return the module with a segment of data at an address."""
    if not len(data):
        return module
    segment = b"\0" + bytes([_I32_CONST]) + signed(address) + bytes([_END])
    added = segment + unsigned(len(data)) + bytes(data)
    parts, found = [MAGIC], False
    for kind, content in sections(module):
        if kind in (_DATA, _DATA_COUNT):
            count, at = read_unsigned(content, 0)
            rest = added + content[at:] if kind == _DATA else content[at:]
            content = unsigned(count + 1) + rest
            found |= kind == _DATA
        parts.append(_section(kind, content))
    if not found:
        parts.append(_section(_DATA, unsigned(1) + added))
    return b"".join(parts)


def memory_bytes(module: bytes) -> int:
    """Return the bytes of memory that a module begins with."""
    content = next(content for kind, content in sections(module) if kind == _MEMORY)
    _, at = read_unsigned(content, 0)
    _, at = read_unsigned(content, at)  # whether there is a maximum
    return read_unsigned(content, at)[0] * PAGE


def _section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + unsigned(len(content)) + content
