"""LLVM IR as text between two versions: the wheel's MLIR writes newer text than llvmlite reads.

What differs so far are floating-point constants. New are bits (`f0x3F800000`), `+inf`, `-qnan`, and
the shortest decimal that rounds to the value, where older LLVM takes only decimals that are exact.
All become bits, as older LLVM writes them: for float and double those of a double.

Elsewhere IR is changed by attributes and bindings. Here it cannot be: text is all that the two
versions of LLVM have in common, and llvmlite's binding adds no instruction to a module that it has
read, which functions that report when they begin would need.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

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
    """Return the module with constants as older LLVM spells them."""
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
        return _spell(_bits(match, type), type)

    return _TOKEN.sub(spell, line)


def _bits(match: re.Match[str], type: str) -> int:
    """Return the bits of a constant, in the width of its type."""
    if match["bits"]:
        return int(match["bits"], 16)
    negative = match[0].startswith("-")
    if match["special"] and match["special"].endswith("qnan"):
        return _QUIET_NAN[type] | negative << (_WIDTH[type] - 1)
    value = np.array(float(match[0]), _NUMPY[type])
    return int(value.view(f"u{_WIDTH[type] // 8}"))


def _spell(bits: int, type: str) -> str:
    if type in ("half", "bfloat"):
        return f"0x{'H' if type == 'half' else 'R'}{bits:04X}"
    if type == "double":
        return f"0x{bits:016X}"
    if bits & 0x7F800000 == 0x7F800000:
        # Widening by arithmetic might quiet a NaN: infinities and NaNs are widened by their bits.
        return f"0x{(bits >> 31 << 63) | 0x7FF0000000000000 | ((bits & 0x7FFFFF) << 29):016X}"
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def with_attributes(text: str, attributes: str) -> str:
    """Return the module with attributes on every function that it defines."""
    return re.sub(r"^(define [^{\n]*)\{$", rf"\1{attributes} {{", text, flags=re.MULTILINE)


def call_first(text: str, function: str, numbers: Mapping[str, int]) -> str:
    """Return the module with functions that begin with a call of `function`, by their numbers."""

    def mark(match: re.Match[str]) -> str:
        number = numbers.get(match["name"])
        if number is None:
            return match[0]
        head = f"{match['head']}{match['marks']}noinline {{{match['entry'] or ''}"
        return f"{head}\n  call void @{function}(i32 {number})"

    head = r"^(?P<head>define void @(?P<name>[\w.$-]+)\([^)]*\))(?P<marks>[^{\n]*)\{"
    head += r"(?P<entry>\nentry:)?"
    return re.sub(head, mark, text, flags=re.MULTILINE) + f"\ndeclare void @{function}(i32)\n"
