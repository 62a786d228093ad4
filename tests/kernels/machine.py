"""Compiles kernels in this process and calls them on numpy arrays."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from llvmlite import binding
from numpy.typing import NDArray

from fewbit.kernels import (
    BitConv2d,
    BitMatmul,
    Conv2d,
    Depthwise,
    IntegerConv2d,
    IntegerDepthwise,
    IntegerMatmul,
    IntegerPackB,
    Isa,
    LargestMagnitudes,
    MagnitudeSums,
    Matmul,
    MaxPool,
    PackB,
    QuantizeRows,
    RoundRows,
    module_text,
)
from fewbit.kernels.integer.group_scales import ScaleStorage
from fewbit.kernels.integer.output import ACTIVATED, LARGEST, PLAIN, Output, pointers
from fewbit.kernels.max_pool import Pooled
from fewbit.kernels.stored import Stored
from fewbit.numerics.approximations.activations import ACTIVATIONS
from fewbit.toolchain.objects import jit_machine

Floats = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)
SIGNATURES = {
    Matmul: "pippppiiiiffii",
    PackB: "piipiiii",
    IntegerPackB: "piipiiii",
    Conv2d: "ppppppffii",
    Depthwise: "ppppppffii",
}
INTEGER_SIGNATURES = {
    IntegerMatmul: "pippippppiiiiffii",
    IntegerConv2d: "pppipppppffii",
    IntegerDepthwise: "pppipppppffii",
}
BIT_SIGNATURES = {
    BitMatmul: INTEGER_SIGNATURES[IntegerMatmul],
    BitConv2d: INTEGER_SIGNATURES[IntegerConv2d],
}
Integer = IntegerMatmul | IntegerConv2d | IntegerDepthwise | BitMatmul | BitConv2d
BIT_PAIRS = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3)]
"""Widths of activations and weights that tests multiply by popcount."""
SOME_OUTPUTS: tuple[Output, ...] = ("f32_silu", "steps_gelu", "f32_largest")
"""Outputs beside the plain ones that all kernels are tested with."""
QUANTIZED = (1, 1.58, *range(2, 9))
"""Widths that rows are quantized to."""
_TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "f": ctypes.c_float}
Call = Callable[..., None]
_LIBC = ctypes.CDLL(None)


def target_machine(isa: Isa) -> Any:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(isa.triple).create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=3, reloc="pic"
    )


def load(text: str, isa: Isa, signatures: dict[str, str]) -> dict[str, Call]:
    """Return the module's functions of these names, to be called with what their letters say."""
    module = binding.parse_assembly(text)
    module.verify()
    engine = binding.create_mcjit_compiler(module, jit_machine(isa))
    engine.finalize_object()
    calls: dict[str, Call] = {}
    for symbol, letters in signatures.items():
        prototype = ctypes.CFUNCTYPE(None, *(_TYPES[letter] for letter in letters))
        calls[symbol] = prototype(engine.get_function_address(symbol))
        calls[symbol].engine = engine  # pyright: ignore[reportFunctionMemberAccess]
    return calls


@cache
def compiled(isa: Isa) -> dict[type, Call]:
    """Return all kernels for a processor, compiled once."""
    kernels = [kind(isa) for kind in SIGNATURES]
    signatures = {kernel.symbol: SIGNATURES[type(kernel)] for kernel in kernels}
    calls = load(module_text(kernels, isa), isa, signatures)
    return {type(kernel): calls[kernel.symbol] for kernel in kernels}


@cache
def compiled_stored(isa: Isa, stored: Stored) -> Call:
    """Return the matmul with a matrix that is stored narrower, compiled once."""
    kernel = Matmul(isa, stored=stored)
    return load(module_text([kernel], isa), isa, {kernel.symbol: SIGNATURES[Matmul]})[kernel.symbol]


@cache
def compiled_float_activated(isa: Isa) -> dict[str, Call]:
    """Return kernels on floats that end in an activation, compiled once, by their symbols."""
    kernels = [kind(isa, name) for kind in (Matmul, Conv2d, Depthwise) for name in ACTIVATIONS]
    signatures = {kernel.symbol: SIGNATURES[type(kernel)] for kernel in kernels}
    return load(module_text(kernels, isa), isa, signatures)


@cache
def compiled_integer(isa: Isa) -> dict[tuple[type, Output], Call]:
    """Return all kernels on integers with all outputs, compiled once."""
    kernels = [kind(isa, output) for kind in INTEGER_SIGNATURES for output in PLAIN]
    signatures = {kernel.symbol: _signature(kernel) for kernel in kernels}
    calls = load(module_text(kernels, isa), isa, signatures)
    return {(type(kernel), kernel.output): calls[kernel.symbol] for kernel in kernels}


def _signature(kernel: Integer) -> str:
    letters = (INTEGER_SIGNATURES | BIT_SIGNATURES)[type(kernel)]
    # Bytes and their steps are behind y, the ninth argument at the latest.
    last, more = letters.rindex("p") + 1, len(pointers(kernel.output).split(",")) - 1
    return f"{letters[:last]}{'p' * more}{letters[last:]}"


@cache
def compiled_few_bits(isa: Isa) -> dict[str, Call]:
    """Return kernels for weights of fewer than 8 bits, compiled once, by their symbols."""
    signatures: dict[str, str] = {}
    kernels = [
        kind(isa, output, bits)
        for kind in (IntegerMatmul, IntegerConv2d)
        for output in PLAIN
        for bits in range(1, 8)
    ]
    for kernel in kernels:
        signatures[kernel.symbol] = _signature(kernel)
    return load(module_text(kernels, isa), isa, signatures)


@cache
def compiled_few_bits_depthwise(isa: Isa) -> dict[str, Call]:
    """Return depthwise kernels for weights of fewer than 8 bits, compiled once, by their symbols."""
    kernels = [IntegerDepthwise(isa, "steps", bits) for bits in range(1, 8)]
    signatures = {kernel.symbol: _signature(kernel) for kernel in kernels}
    return load(module_text(kernels, isa), isa, signatures)


@cache
def compiled_bits(isa: Isa) -> dict[str, Call]:
    """Return kernels by popcount, compiled once, by their symbols."""
    signatures: dict[str, str] = {}
    kernels: list[BitMatmul | BitConv2d] = []
    for pair in BIT_PAIRS:
        for output in PLAIN:
            matmul, image = BitMatmul(isa, output, *pair), BitConv2d(isa, output, *pair)
            signatures[matmul.symbol] = _signature(matmul)
            signatures[image.symbol] = _signature(image)
            kernels += [matmul, image]
    return load(module_text(kernels, isa), isa, signatures)


@cache
def compiled_unsigned(isa: Isa) -> dict[tuple[type, Output], Call]:
    """Return kernels for rows without negative numbers, compiled once."""
    kernels = [
        kind(isa, output, unsigned=True)
        for kind in (IntegerMatmul, IntegerConv2d)
        for output in PLAIN
    ]
    signatures = {kernel.symbol: _signature(kernel) for kernel in kernels}
    calls = load(module_text(kernels, isa), isa, signatures)
    return {(type(kernel), kernel.output): calls[kernel.symbol] for kernel in kernels}


@cache
def compiled_further(isa: Isa) -> dict[str, Call]:
    """Return kernels on integers whose outputs are not plain, compiled once, by their symbols."""
    signatures: dict[str, str] = {}
    kernels: list[Integer] = [IntegerMatmul(isa, output) for output in (*ACTIVATED, LARGEST)]
    for output in SOME_OUTPUTS:
        kernels += [IntegerConv2d(isa, output), IntegerDepthwise(isa, output)]
        kernels += [IntegerMatmul(isa, output, 4), BitMatmul(isa, output)]
    for kernel in kernels:
        signatures[kernel.symbol] = _signature(kernel)
    return load(module_text(kernels, isa), isa, signatures)


@cache
def compiled_groups(
    isa: Isa, shifted: bool = False, storage: ScaleStorage = "f32", blocks: bool = False
) -> dict[int, Call]:
    """Return matmuls with scales for groups, compiled once, by the bits of their weights."""
    widths = range(2, 8) if shifted else range(1, 9)
    kernels = [
        IntegerMatmul(
            isa, "f32", bits, grouped=True, shifted=shifted, storage=storage, blocks=blocks
        )
        for bits in widths
    ]
    signatures = {kernel.symbol: "pippippppiiiiiffii" for kernel in kernels}
    calls = load(module_text(kernels, isa), isa, signatures)
    return {kernel.bits: calls[kernel.symbol] for kernel in kernels}


@cache
def compiled_quantization(isa: Isa) -> dict[float, Call]:
    """Return quantization of rows, compiled once, by width."""
    kernels = [QuantizeRows(isa, bits) for bits in QUANTIZED]
    calls = load(module_text(kernels, isa), isa, {k.symbol: "pipipiiii" for k in kernels})
    return {kernel.bits: calls[kernel.symbol] for kernel in kernels}


@cache
def compiled_phases(isa: Isa) -> dict[float, tuple[Call, Call]]:
    """Return quantization in two phases, compiled once: magnitudes, and rounding, by width."""
    sums, largest = MagnitudeSums(isa), LargestMagnitudes(isa)
    rounding = [RoundRows(isa, bits) for bits in QUANTIZED]
    signatures = {kernel.symbol: "pipiiii" for kernel in (sums, largest)}
    signatures |= {kernel.symbol: "pippipiiii" for kernel in rounding}
    calls = load(module_text([sums, largest, *rounding], isa), isa, signatures)
    return {
        kernel.bits: (
            calls[(largest if kernel.bits > 2 else sums).symbol],
            calls[kernel.symbol],
        )
        for kernel in rounding
    }


@cache
def compiled_max_pool(isa: Isa) -> dict[Pooled, Call]:
    """Max pooling, compiled once, by what it gives."""
    outputs: tuple[Pooled, ...] = ("f32", "i8", "steps")
    kernels = [MaxPool(isa, output) for output in outputs]
    signatures = {k.symbol: "pppppii" if k.output == "steps" else "pppii" for k in kernels}
    calls = load(module_text(kernels, isa), isa, signatures)
    return {kernel.output: calls[kernel.symbol] for kernel in kernels}


def integer_call(kernel: Integer) -> Call:
    """Return a kernel on integers, compiled with all others."""
    if kernel.output not in PLAIN:
        return compiled_further(kernel.isa)[kernel.symbol]
    if isinstance(kernel, BitMatmul | BitConv2d):
        return compiled_bits(kernel.isa)[kernel.symbol]
    if not isinstance(kernel, IntegerDepthwise) and kernel.unsigned:
        return compiled_unsigned(kernel.isa)[type(kernel), kernel.output]
    if isinstance(kernel, IntegerDepthwise) and kernel.bits < 8:
        return compiled_few_bits_depthwise(kernel.isa)[kernel.symbol]
    if kernel.bits == 8:
        return compiled_integer(kernel.isa)[type(kernel), kernel.output]
    return compiled_few_bits(kernel.isa)[kernel.symbol]


def guarded(array: NDArray[Number]) -> NDArray[Number]:
    """Return a copy that ends where readable memory ends: whoever reads on crashes."""
    page = mmap.PAGESIZE
    pages = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, pages + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if _LIBC.mprotect(ctypes.c_void_p(start + pages), ctypes.c_size_t(page), 0) != 0:
        raise OSError("no guard page")
    copy = np.frombuffer(memory, array.dtype, array.size, pages - array.nbytes)
    copy = copy.reshape(array.shape)
    copy[...] = array
    return copy


def address(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data


def on_threads(threads: int, call: Callable[[int, int], None]) -> None:
    """Threads share nothing that they write, so one after another is as good as together."""
    for thread in range(threads):
        call(thread, threads)
