"""Which attention is one call, and the problem that its memory makes of it."""

from __future__ import annotations

from importlib.util import find_spec

from fewbit.dialects import mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.attention_triton import ATTENTION_TRITON
from fewbit.kernels.cuda.attention_wgmma import ATTENTION_WGMMA
from fewbit.kernels.cuda.family import Family
from fewbit.targets.cuda.layer import Layer
from fewbit.targets.cuda.memory import Memory

LARGEST = 128
"""Values of a head that kernels take."""
FAMILIES: dict[str, Family[Attention]] = {"wgmma": ATTENTION_WGMMA, "triton": ATTENTION_TRITON}


def is_strided(size: int, arch: Arch) -> bool:
    """Return whether the kernel reads heads wherever they lie, and stores tokens before heads."""
    return arch.has_warpgroups and size % 8 == 0


def can_attend(op: mico.AttentionOp, arch: Arch) -> bool:
    """Return whether a kernel computes it: of floats, without a mask but the causal one."""
    given = (op.query_bits, op.key_bits, op.value_bits, op.score_bits, op.mask)
    if any(each is not None for each in given):
        return False
    q, k, v = (mico.shape_of(value.type) for value in (op.query, op.key, op.value))
    if len(q) != 4 or DYNAMIC in (q[1], q[3], k[1]) or v[3] != q[3] or q[3] > LARGEST:
        return False
    if op.causal.value.data and q[2] != k[2]:
        return False  # which key is beside which query would not be the same
    problem = Attention(1, q[1], 64, 64, q[3], kv_heads=k[1])
    return bool(families_for(problem, arch))


def families_for(problem: Attention, arch: Arch) -> dict[str, Family[Attention]]:
    """Return families that compute a problem, the fastest first, if their compilers are here.

    Without Triton, attention before Hopper is loops.
    """
    return {
        name: family
        for name, family in FAMILIES.items()
        if family.refuse(problem, arch) is None
        and (name != "triton" or find_spec("triton") is not None)
    }


def attention_of(layer: Layer, memories: list[Memory]) -> tuple[Attention, list[Memory]]:
    """Return the problem, and its operands: those that are parts of others begin further on."""
    *given, y = memories
    if not layer.views:
        shapes, strides = [memory.sizes for memory in given], ()
    else:
        shapes = [
            memory.sizes if view is None else shape
            for memory, view, shape in zip(given, layer.views, layer.shapes, strict=True)
        ]
        steps = [
            memory.strides if view is None else view.strides
            for memory, view in zip(given, layer.views, strict=True)
        ]
        batch, row, head, _ = y.strides
        strides = (*((b, h, r) for b, h, r, _ in steps), (batch, head, row))
        given = [
            memory if view is None else memory.at(view.offset)
            for memory, view in zip(given, layer.views, strict=True)
        ]
    (batch, heads, queries, size), (_, kv_heads, keys, _) = shapes[:2]
    problem = Attention(
        batch, heads, queries, keys, size, layer.causal, kv_heads=kv_heads, strides=strides
    )
    return problem, [*given, y]
