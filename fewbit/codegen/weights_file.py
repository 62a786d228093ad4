"""Weights in a file beside a library, in place of inside of it.

Large weights would be in the shared and in the static library, and have to be copied there. A file
is written once, and whoever calls the library maps it and gives the address, once: the library
itself opens no files. The file begins with the library's signature, which covers a hash of the
weights, so that a library refuses the weights of another; they lie behind it, aligned as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from fewbit.codegen.interface import Interface, check_alignment, fail_if
from fewbit.llvm.function import Function
from fewbit.llvm.types import I8, I64
from fewbit.program.weight_image import WeightImage
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa

WEIGHTS = "weights"
"""The manifest's option that has the hash of weights beside the library."""
HEAD = 64
"""Bytes before the weights: the signature, as text."""
WORD = 8


def weights_name(name: str) -> str:
    return f"{name}.weights"


def hash_of_image(image: WeightImage) -> str:
    digest = hashlib.sha256()
    for piece in image.pieces():
        digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True)
class WeightsFile:
    signature: str
    image: WeightImage

    @property
    def nbytes(self) -> int:
        return HEAD + self.image.nbytes

    def pieces(self) -> Iterator[bytes | memoryview]:
        yield self.signature.encode()
        yield from self.image.pieces()


def use_weights_object(interface: Interface, file: WeightsFile, isa: Isa) -> bytes:
    """Return the object with the place of the address, and the function that sets it."""
    place = interface.weights_symbol
    f = Function(interface.use_weights, "ptr weights, i64 bytes", "i32")
    weights, nbytes = f.parameters
    fail_if(f, weights.is_null(), "NULL")
    check_alignment(f, weights, HEAD)
    fail_if(f, nbytes.compare("ult", file.nbytes), "WEIGHTS")
    signature = file.signature.encode()
    for i in range(HEAD // WORD):
        word = int.from_bytes(signature[i * WORD : (i + 1) * WORD], "little")
        fail_if(f, f.load(I64, weights, i).differs(word), "WEIGHTS")
    f.store(f.at(weights, HEAD, I8), f.symbol(place))
    f.ret(0)
    module = objects.parse_ir(f"@{place} = hidden global ptr null\n{f.text()}")
    module.triple = isa.triple
    return objects.emit_object(module, isa)
