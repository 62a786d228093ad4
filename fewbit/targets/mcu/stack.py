"""How much stack a library takes, at most: from its assembly, along the longest way of calls.

LLVM's text says what each function puts on the stack (`push`, `vpush`, `sub sp`) and whom it calls.
A function whose address another has is called by it. There is no recursion, so the sum along a way
of calls is a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from fewbit.errors import PassError

_LABEL = re.compile(r"^([A-Za-z_$.\"][\w.$\"]*):")
_FUNCTION = re.compile(r"^\s*\.type\s+(\S+),\s*[@%]function")
_PUSH = re.compile(r"^\s*(v?)push(?:\.w)?\s+\{([^}]*)\}")
_SUB = re.compile(r"^\s*sub(?:w|\.w)?\s+sp,\s*(?:sp,\s*)?#(\d+)")
_ADDI = re.compile(r"^\s*addi\s+sp,\s*sp,\s*-(\d+)")
_CALL = re.compile(r"^\s*(?:bl|b|b\.w|call|tail|jal|j)\s+([A-Za-z_$.\"][\w.$\"]*)")
_ADDRESS = re.compile(r"^\s*\.long\s+([A-Za-z_$.\"][\w.$\"]*)|%hi\(([^)]+)\)")
"""The address of a function that is called often, by a register."""


@dataclass
class Frame:
    bytes: int = 0
    calls: set[str] = field(default_factory=set[str])


def frames_of(assembly: str) -> dict[str, Frame]:
    """Return what each function of a text takes and calls."""
    names = {match[1].strip('"') for match in map(_FUNCTION.match, assembly.splitlines()) if match}
    frames: dict[str, Frame] = {}
    current: Frame | None = None
    for line in assembly.splitlines():
        label = _LABEL.match(line)
        if label is not None:
            name = label[1].strip('"')
            if name in names:
                current = frames.setdefault(name, Frame())
            continue
        if current is not None:
            _read(line, current)
    return frames


def _read(line: str, frame: Frame) -> None:
    if (push := _PUSH.match(line)) is not None:
        frame.bytes += sum(map(_register_bytes, push[2].split(",")))
    elif (sub := _SUB.match(line) or _ADDI.match(line)) is not None:
        frame.bytes += int(sub[1])
    elif (call := _CALL.match(line)) is not None:
        frame.calls.add(call[1].strip('"'))
    elif (address := _ADDRESS.search(line)) is not None:
        frame.calls.add((address[1] or address[2]).strip('"'))


def _register_bytes(text: str) -> int:
    first, _, last = text.strip().partition("-")
    each = 8 if first.startswith("d") else 4
    count = int(last.strip()[1:]) - int(first[1:]) + 1 if last else 1
    return each * count


def stack_bytes(assemblies: Iterable[str], entry: str) -> int:
    """Return the bytes of stack that a call of a function takes, with all that it calls."""
    frames = {name: frame for text in assemblies for name, frame in frames_of(text).items()}

    @cache
    def depth(name: str) -> int:
        frame = frames[name]
        inner = [depth(each) for each in sorted(frame.calls) if each in frames and each != name]
        return frame.bytes + max(inner, default=0)

    try:
        return depth(entry)
    except RecursionError as e:
        raise PassError("functions of the library call each other in a circle") from e
