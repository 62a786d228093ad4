"""Convolutions on Hopper that fetch a pixel once for all taps of the filter.

As an implicit GEMM, a 3x3 convolution reads its input nine times, and on Hopper it is the
second-level cache that limits it. Here shared memory holds a patch of the padded image as a line of
pixels, and a tap is the same line from a pixel further on: nine matmuls read one patch. Outputs on
the padding's columns are computed in vain, so this pays for large images; stride is 1.
"""

from __future__ import annotations

from fewbit.kernels.cuda import conv2d_wgmma
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.conv2d_wgmma import threads, tile_pixels, weight_map
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import BYTES, Launch, Plan, TensorMap
from fewbit.kernels.cuda.warpgroup import wgmma

_SLICE = 128
_MOST_PIXELS = 256
"""Pixels that one copy fetches at most."""


def _refuse(problem: Convolution, arch: Arch) -> str | None:
    if problem.groups != 1:
        return "it has groups"
    if problem.stride != (1, 1):
        return "its stride is not 1"
    return conv2d_wgmma.refuse(problem, arch)


def _patch(problem: Convolution, config: Config) -> tuple[int, int]:
    """Return the number of copies that fetch a patch, and of pixels in each."""
    wide = problem.width + 2 * problem.padding[1]
    halo = (problem.kh - 1) * problem.dilation[0] * wide
    halo += (problem.kw - 1) * problem.dilation[1]
    pixels = tile_pixels(config) + halo
    pieces = ceil_div(pixels, _MOST_PIXELS)
    return pieces, ceil_div(ceil_div(pixels, pieces), 8) * 8


def _steps(problem: Convolution) -> int:
    return problem.kh * problem.kw * ceil_div(problem.channels * problem.unit, _SLICE)


def shared_bytes(problem: Convolution, config: Config) -> int:
    pieces, pixels = _patch(problem, config)
    bn = config["bn"]
    ring = _steps(problem) if config["resident"] else config["stages"]
    staged = config["consumers"] * 64 * (bn * BYTES[problem.result] + 16)
    return config["patches"] * pieces * pixels * _SLICE + ring * bn * _SLICE + staged + 1024


def patch_source(problem: Convolution, config: Config) -> str:
    return "\n".join(
        [
            source("prelude.cu", "convolution.cu", "hopper.cu", **problem.defines()),
            wgmma("multiply", problem.dtype, config["bn"]),
            source(
                "conv2d_patch.cu",
                BN=config["bn"],
                MI=config["mi"],
                CONSUMERS=config["consumers"],
                STAGES_X=config["patches"],
                STAGES_W=config["stages"],
                RESIDENT=config["resident"],
                CLUSTER=config["cluster"],
                BLOCKS=config["blocks"],
            ),
        ]
    )


def _build(problem: Convolution, config: Config, arch: Arch) -> Plan:
    image = compile_source(patch_source(problem, config), arch).image
    unit, c, cluster = problem.unit, problem.channels, config["cluster"]
    (ph, pw), _ = problem.padding, problem.dilation
    pixels = TensorMap(
        "x",
        problem.dtype,
        (c, problem.width, problem.height, problem.batch),
        (c * unit, problem.width * c * unit, problem.height * problem.width * c * unit),
        (_SLICE // unit, _patch(problem, config)[1]),
        corners=((-pw, -ph), (pw, ph)),
        steps=(1, 1, 1, 1),
    )
    filters = ceil_div(problem.filters, config["bn"])
    staying = arch.multiprocessors * config["blocks"] // (filters * cluster) * cluster
    lines = ceil_div(ceil_div(_line(problem), tile_pixels(config)), cluster) * cluster
    launch = Launch(
        0,
        "conv2d_patch",
        (max(cluster, min(staying, lines)) * filters, 1, 1),
        threads(config),
        (pixels, weight_map(problem, config["bn"] // cluster), *problem.arguments()),
        shared_bytes(problem, config),
        cluster,
    )
    return Plan("conv2d_patch", arch.code, problem.buffers(), (launch,), (image,))


def _line(problem: Convolution) -> int:
    """Return the number of pixels of all padded images."""
    wide = problem.width + 2 * problem.padding[1]
    return problem.batch * (problem.height + 2 * problem.padding[0]) * wide


def _configs(problem: Convolution, arch: Arch) -> list[Config]:
    configs: list[Config] = []
    for consumers, mi, bn in _TILES:
        if bn // 2 >= max(problem.filters, 64):
            continue
        for resident in (0, 1):
            for cluster in (1, 2):
                if cluster > 1 and resident:
                    continue
                for blocks in (1, 2, 3):
                    most = 65536 // (consumers * 128 + 32) // blocks
                    if blocks > 1 and mi * bn // 2 + 64 > most:
                        continue
                    for patches in (2, 3):
                        config = _fitting(
                            problem,
                            {
                                "consumers": consumers,
                                "mi": mi,
                                "bn": bn,
                                "resident": resident,
                                "cluster": cluster,
                                "blocks": blocks,
                                "patches": patches,
                            },
                            arch,
                        )
                        if config is not None:
                            configs.append(config)
    return configs


def _fitting(problem: Convolution, config: Config, arch: Arch) -> Config | None:
    """Return the settings with the longest ring of filters that fits."""
    for stages in (1,) if config["resident"] else (8, 6, 4, 3):
        tried = {**config, "stages": stages}
        if arch.fits(shared_bytes(problem, tried), config["blocks"]):
            return tried
    return None


_TILES = (
    (2, 1, 64),
    (2, 2, 64),
    (2, 1, 128),
    (2, 2, 128),
    (2, 1, 256),
    (1, 1, 64),
    (1, 2, 64),
    (1, 1, 128),
    (3, 1, 64),
    (3, 1, 128),
)

PATCH = Family(
    "patch", "Hopper's matmuls, each pixel fetched once for all taps", _refuse, _configs, _build
)
