"""Generators of CPU kernels, of floats, integers and bits, as LLVM IR. See docs/kernels.md."""

from fewbit.kernels.bits.conv2d import BitConv2d
from fewbit.kernels.bits.matmul import BitMatmul
from fewbit.kernels.conv2d import Conv2d
from fewbit.kernels.depthwise import Depthwise
from fewbit.kernels.integer.conv2d import IntegerConv2d
from fewbit.kernels.integer.depthwise import IntegerDepthwise
from fewbit.kernels.integer.matmul import IntegerMatmul
from fewbit.kernels.integer.pack_b import IntegerPackB
from fewbit.kernels.kernel import Kernel, module_text
from fewbit.kernels.largest_magnitudes import ClearPlaces, LargestMagnitudes
from fewbit.kernels.matmul import Matmul
from fewbit.kernels.max_pool import MaxPool
from fewbit.kernels.mean_magnitudes import MagnitudeSums
from fewbit.kernels.pack import PackB
from fewbit.kernels.quantize_rows import QuantizeRows
from fewbit.kernels.rotate_blocks import RotateBlocks
from fewbit.kernels.round_rows import RoundRows
from fewbit.toolchain.isa import Isa

__all__ = [
    "BitConv2d",
    "BitMatmul",
    "ClearPlaces",
    "Conv2d",
    "Depthwise",
    "IntegerConv2d",
    "IntegerDepthwise",
    "IntegerMatmul",
    "IntegerPackB",
    "Isa",
    "Kernel",
    "LargestMagnitudes",
    "MagnitudeSums",
    "Matmul",
    "MaxPool",
    "PackB",
    "QuantizeRows",
    "RotateBlocks",
    "RoundRows",
    "module_text",
]
