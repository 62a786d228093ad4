"""Every family compiles for every generation that it does not refuse, without spilling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fewbit.errors import UnsupportedError, UsageError
from fewbit.kernels.cuda.arch import AMPERE, ARCHS, HOPPER, TURING, Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.attention_wgmma import ATTENTION_WGMMA, attention_source
from fewbit.kernels.cuda.conv2d import LADDER, find_variants
from fewbit.kernels.cuda.conv2d_mma import MMA, mma_source
from fewbit.kernels.cuda.conv2d_patch import PATCH, patch_source
from fewbit.kernels.cuda.conv2d_simt import TILED_BOTH, tiled_source
from fewbit.kernels.cuda.conv2d_wgmma import WGMMA, wgmma_source
from fewbit.kernels.cuda.convolution import DTYPES, Convolution
from fewbit.kernels.cuda.depthwise import DEPTHWISE, depthwise_source
from fewbit.kernels.cuda.depthwise_patch import DEPTHWISE_PATCH
from fewbit.kernels.cuda.depthwise_patch import patch_source as depthwise_patch_source
from fewbit.kernels.cuda.family import Config, Family
from fewbit.kernels.cuda.few_bit import FEW_BIT, FewBitMatmul, few_bit_source
from fewbit.kernels.cuda.nvrtc import compile_source
from fewbit.kernels.cuda.plan import Pointer, TensorMap
from fewbit.kernels.cuda.separable import SEPARABLE, Separable, separable_source
from fewbit.numerics.widths import Width
from tests.kernels.cuda.compiling import needs_nvrtc

Case = tuple[Family[Any], Callable[[Any, Config], str], Any]

CONV = Convolution.parse("n2,20x20,64,64,k3")
DEEP = Convolution.parse("n2,14x14,144,144,k3,g144")
WIDE = Convolution.parse("n2,14x14,128,128,k3,g128")
SOURCES: list[Case] = [
    (TILED_BOTH, tiled_source, CONV),
    (MMA, mma_source, CONV),
    (WGMMA, wgmma_source, CONV),
    (PATCH, patch_source, CONV),
    (DEPTHWISE, depthwise_source, DEEP),
    (DEPTHWISE_PATCH, depthwise_patch_source, DEEP),
    (SEPARABLE, separable_source, Separable(DEEP, 24)),
    (SEPARABLE, separable_source, Separable(WIDE, 96)),
    (FEW_BIT, few_bit_source, FewBitMatmul(8, 256, 1024, Width.of(4), 8)),
    (FEW_BIT, few_bit_source, FewBitMatmul(8, 256, 1280, Width.of(4), 1, "i8")),
    (ATTENTION_WGMMA, attention_source, Attention(1, 2, 2048, 2048, 64)),
]


@needs_nvrtc
@pytest.mark.parametrize("case", SOURCES, ids=[f"{case[1].__name__}-{case[2]}" for case in SOURCES])
@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_the_first_setting_compiles_and_does_not_spill(arch: Arch, case: Case) -> None:
    family, text, problem = case
    if family.refuse(problem, arch) is not None:
        pytest.skip("the generation lacks what it needs")
    config = family.configs(problem, arch)[0]
    (resources,) = compile_source(text(problem, config), arch).resources.values()
    assert resources.spilled == 0
    assert resources.registers <= 255


@needs_nvrtc
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["naive", "tiled+both", "mma"])
def test_any_convolution_has_a_kernel(name: str, dtype: str) -> None:
    odd = Convolution.parse("n3,9x7,6,10,k3x2,s2x1,p0x1,d1x2,g2")
    for layout in ("nhwc", "nchw"):
        problem = odd.of(dtype, layout)
        for arch in (TURING, HOPPER):
            if LADDER[name].refuse(problem, arch) is not None:
                assert dtype in ("f32", "tf32", "bf16")
                continue
            plan = LADDER[name].plan(problem, arch)
            assert plan.arch == arch.code
            assert [a.buffer for a in plan.launches[0].arguments if isinstance(a, Pointer)] == [
                *"xwy"
            ]


@pytest.mark.parametrize(
    ("name", "text", "dtype", "reason"),
    [
        ("wgmma", "n1,8x8,3,64,k3", "f16", "16 bytes"),
        ("wgmma", "n1,8x8,64,64,k3,g2", "f16", "128 bytes"),
        ("wgmma", "n1,8x8,64,64,k3", "f32", "tf32"),
        ("patch", "n1,8x8,64,64,k3,s2", "f16", "stride"),
        ("depthwise", "n1,8x8,64,64,k3", "f16", "depthwise"),
        ("cutlass", "n1,8x8,64,64,k3,g2", "f16", "groups"),
        ("mma", "n1,8x8,64,64,k3", "f32", "tf32"),
    ],
)
def test_what_a_rung_cannot_do_is_said(name: str, text: str, dtype: str, reason: str) -> None:
    problem = Convolution.parse(text).of(dtype, "nhwc")
    with pytest.raises(UnsupportedError, match=reason):
        LADDER[name].plan(problem, HOPPER)


def test_hopper_s_rungs_are_hopper_s() -> None:
    for name in ("wgmma", "patch"):
        assert "ampere" in (LADDER[name].refuse(CONV, AMPERE) or "")


@needs_nvrtc
def test_the_copy_engine_is_told_of_padding_and_strides() -> None:
    problem = Convolution.parse("n2,9x11,64,64,k3x5,s2,p1x2")
    plan = WGMMA.plan(problem, HOPPER)
    x, w, _ = plan.launches[0].arguments
    assert isinstance(x, TensorMap)
    assert isinstance(w, TensorMap)
    assert x.corners == ((-2, -1), (2 - 4, 1 - 2))
    assert x.steps == (1, 2, 2, 1)
    assert w.sizes == (64, 15, 64)


def test_variants_are_named() -> None:
    assert find_variants("all") == list(LADDER.values())
    assert [family.name for family in find_variants("mma,naive")] == ["mma", "naive"]
    with pytest.raises(UsageError, match="no variant 'fast'"):
        find_variants("naive,fast")
