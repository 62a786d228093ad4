"""Where a constant's data is: packed bytes in the text, or a key of the weight store.

Text is for small constants. Weights of real models are referred to by key and hash, so that a
program cannot be run with other weights than those it was made with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

_HEX = re.compile(r"0x([0-9A-F]{2})*")
_KEY = re.compile(r"[ !#-\[\]-~]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@irdl_attr_definition
class PackedAttr(ParametrizedAttribute):
    """Few-bit integers packed as `fewbit.numerics.packing` does, in hexadecimal."""

    name = "mico.packed"

    digits: StringAttr = param_def()

    def __init__(self, data: bytes | StringAttr) -> None:
        super().__init__(StringAttr("0x" + data.hex().upper()) if isinstance(data, bytes) else data)

    @property
    def data(self) -> bytes:
        return bytes.fromhex(self.digits.data[2:])

    def verify(self) -> None:
        if not _HEX.fullmatch(self.digits.data):
            raise VerifyException('packed data is "0x" and pairs of hexadecimal digits')

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [parse_hex(parser)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.digits)


def parse_hex(parser: AttrParser) -> StringAttr:
    """Return a string of hexadecimal digits, in its canonical (upper-case) form."""
    start = parser.pos
    text = parser.parse_str_literal(" of hexadecimal digits")
    digits = "0x" + text[2:].upper()
    if not text.startswith(("0x", "0X")) or not _HEX.fullmatch(digits):
        parser.raise_error('expected "0x" and pairs of hexadecimal digits', at_position=start)
    return StringAttr(digits)


@irdl_attr_definition
class RefAttr(ParametrizedAttribute):
    """A tensor of the weight store: its key, and the SHA-256 of its content."""

    name = "mico.ref"

    key_attr: StringAttr = param_def()
    sha256_attr: StringAttr = param_def()

    def __init__(self, key: str | StringAttr, sha256: str | StringAttr) -> None:
        super().__init__(
            StringAttr(key) if isinstance(key, str) else key,
            StringAttr(sha256) if isinstance(sha256, str) else sha256,
        )

    @property
    def key(self) -> str:
        return self.key_attr.data

    @property
    def sha256(self) -> str:
        return self.sha256_attr.data

    def verify(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise VerifyException("the key of a stored tensor is printable ASCII without quotes")
        if not _SHA256.fullmatch(self.sha256):
            raise VerifyException(f"'{self.sha256}' is not a SHA-256 in 64 lower-case digits")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            key = parser.parse_str_literal(" as the key of a stored tensor")
            parser.parse_punctuation(",")
            return [StringAttr(key), StringAttr(parser.parse_str_literal(" as a SHA-256"))]
