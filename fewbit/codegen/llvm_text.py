"""LLVM IR as text between two versions: the wheel's MLIR writes newer text than llvmlite reads.

What differs so far are floating-point constants. New are bits (`f0x3F800000`), `+inf`, `-qnan`, and
the shortest decimal that rounds to the value, where older LLVM takes only decimals that are exact.
All become bits, as older LLVM writes them: for float and double those of a double. The text of a
module is also where loop nests are marked: kept apart, with arguments that do not overlap. Booleans
in memory are read and written as the bytes that they are, or LLVM would vectorize no loop with one.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Collection

import ml_dtypes
import numpy as np

_TOKEN = re.compile(
    r"\b(?P<type>half|bfloat|float|double)\b"
    r"|\bf0x(?P<bits>[0-9A-Fa-f]+)\b"
    r"|(?<![\w.\"%@-])(?P<special>[+-](?:inf|qnan))\b"
    r"|(?<![\w.\"%@-])(?P<decimal>-?\d+\.\d+(?:e[+-]\d+)?)(?![\w.])"
)
_NUMPY = {
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
}
_MAY_HAVE_CONSTANT = re.compile(r"f0x|[+-](?:inf|qnan)|\d\.\d")
_WIDTH = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
_QUIET_NAN = {"half": 0x7E00, "bfloat": 0x7FC0, "float": 0x7FC00000, "double": 0x7FF8 << 48}


def for_older_llvm(text: str) -> str:
    """The module with constants as older LLVM spells them."""
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    if line.startswith((";", "source_filename")) or not _MAY_HAVE_CONSTANT.search(line):
        return line
    type = "double"

    def spell(match: re.Match[str]) -> str:
        nonlocal type
        if match["type"]:
            type = match["type"]
            return match[0]
        return _spelled(_bits(match, type), type)

    return _TOKEN.sub(spell, line)


def _bits(match: re.Match[str], type: str) -> int:
    """The bits of a constant, in the width of its type."""
    if match["bits"]:
        return int(match["bits"], 16)
    negative = match[0].startswith("-")
    if match["special"] and match["special"].endswith("qnan"):
        return _QUIET_NAN[type] | negative << (_WIDTH[type] - 1)
    value = np.array(float(match[0]), _NUMPY[type])
    return int(value.view(f"u{_WIDTH[type] // 8}"))


def _spelled(bits: int, type: str) -> str:
    if type in ("half", "bfloat"):
        return f"0x{'H' if type == 'half' else 'R'}{bits:04X}"
    if type == "double":
        return f"0x{bits:016X}"
    if bits & 0x7F800000 == 0x7F800000:
        # Widening by arithmetic might quiet a NaN: infinities and NaNs are widened by their bits.
        return f"0x{(bits >> 31 << 63) | 0x7FF0000000000000 | ((bits & 0x7FFFFF) << 29):016X}"
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def booleans_as_bytes(text: str) -> str:
    """The module with loads and stores of i1 as those of bytes that are 0 or 1."""
    text = re.sub(
        r"^( *)%([\w.]+) = load i1, (.*)$",
        r"\1%byte.\2 = load i8, \3\n\1%\2 = trunc i8 %byte.\2 to i1",
        text,
        flags=re.MULTILINE,
    )
    count = itertools.count()

    def store(match: re.Match[str]) -> str:
        indent, value, rest = match.groups()
        name = f"%byte.stored.{next(count)}"
        return f"{indent}{name} = zext i1 {value} to i8\n{indent}store i8 {name}, {rest}"

    return re.sub(r"^( *)store i1 ([^,]+), (.*)$", store, text, flags=re.MULTILINE)


def mark_functions(
    text: str, loops: Collection[str], distinct: Collection[str], vector_bits: int
) -> str:
    """Loop nests stay functions, with vectors as long as the processor's kernels have them.

    Some have arguments that do not overlap.
    """

    # LLVM is shy of long vectors: they once slowed processors down.
    longest = f'"prefer-vector-width"="{vector_bits}"'

    def mark(match: re.Match[str]) -> str:
        name, arguments = match[1], match[2]
        if name in distinct:
            arguments = re.sub(r"\bptr %", "ptr noalias %", arguments)
        # Copies stay loops: memory that threads hand on is not given to libc, whose calls tools
        # such as thread sanitizers watch without seeing our barriers.
        marks = f' noinline "no-builtins" {longest}' if name in loops else ""
        return f"define void @{name}({arguments}){marks} {{"

    return re.sub(r"^define void @([\w.$-]+)\(([^)]*)\) \{", mark, text, flags=re.MULTILINE)
