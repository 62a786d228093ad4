"""The ladder of convolutions: one problem, computed in better and better ways."""

from __future__ import annotations

from fewbit.errors import UsageError
from fewbit.kernels.cuda.conv2d_cutlass import CUTLASS
from fewbit.kernels.cuda.conv2d_mma import MMA
from fewbit.kernels.cuda.conv2d_patch import PATCH
from fewbit.kernels.cuda.conv2d_simt import NAIVE, TILED, TILED_BOTH, TILED_THREADS, TILED_VECTORS
from fewbit.kernels.cuda.conv2d_triton import TRITON
from fewbit.kernels.cuda.conv2d_wgmma import WGMMA
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.depthwise import DEPTHWISE
from fewbit.kernels.cuda.depthwise_patch import DEPTHWISE_PATCH
from fewbit.kernels.cuda.family import Family

LADDER: dict[str, Family[Convolution]] = {
    family.name: family
    for family in (
        NAIVE,
        TILED,
        TILED_VECTORS,
        TILED_THREADS,
        TILED_BOTH,
        MMA,
        WGMMA,
        PATCH,
        CUTLASS,
        TRITON,
        DEPTHWISE,
        DEPTHWISE_PATCH,
    )
}
"""From the plainest to the fastest."""


def find_variants(names: str) -> list[Family[Convolution]]:
    """Return the families that a text names: `all`, or names with commas between them."""
    if names == "all":
        return list(LADDER.values())
    unknown = [name for name in names.split(",") if name not in LADDER]
    if unknown:
        raise UsageError(
            f"there is no variant '{unknown[0]}' of conv2d", hint=", ".join(["all", *LADDER])
        )
    return [LADDER[name] for name in names.split(",")]
