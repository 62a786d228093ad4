# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Convolution as an implicit GEMM in Triton: pixels by filters, over taps and channels.

Where a slice of k lies within one tap its pixels are found once for the slice; where channels are
few or come first, each k is decoded on its own. With SPLIT > 1, parts of k are summed by different
programs into a workspace, and `add_parts` adds them up in a fixed order. Programs stay and take
tile after tile.
"""

import triton
import triton.language as tl


@triton.jit
def conv2d(
    x, w, y,
    BATCH: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, F: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    SH: tl.constexpr, SW: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr,
    DH: tl.constexpr, DW: tl.constexpr, GROUPS: tl.constexpr, NHWC: tl.constexpr,
    SUM: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
    RASTER: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    CG: tl.constexpr = C // GROUPS
    FG: tl.constexpr = F // GROUPS
    M: tl.constexpr = BATCH * OH * OW
    K: tl.constexpr = KH * KW * CG
    TILES_M: tl.constexpr = (M + BM - 1) // BM
    TILES_F: tl.constexpr = (FG + BN - 1) // BN
    TILES: tl.constexpr = TILES_M * TILES_F * GROUPS
    STEPS: tl.constexpr = (K + BK - 1) // BK
    SHARE: tl.constexpr = (STEPS + SPLIT - 1) // SPLIT
    WHOLE: tl.constexpr = (CG % BK == 0) and NHWC
    xc: tl.constexpr = 1 if NHWC else H * W
    xw: tl.constexpr = C if NHWC else 1
    xn: tl.constexpr = H * W * C
    part = tl.program_id(1)
    for tile in range(tl.program_id(0), TILES, PROGRAMS):
        g = tile // (TILES_M * TILES_F)
        r = tile % (TILES_M * TILES_F)
        band = r // (RASTER * TILES_F)
        height = min(TILES_M - band * RASTER, RASTER)
        r -= band * RASTER * TILES_F
        rm = (band * RASTER + r % height) * BM + tl.arange(0, BM)
        rf = (r // height) * BN + tl.arange(0, BN)
        n = rm // (OH * OW)
        ih = (rm % (OH * OW)) // OW * SH - PH
        iw = rm % OW * SW - PW
        image = x + n.to(tl.int64) * xn + g * CG * xc
        filters = w + (g * FG + rf).to(tl.int64) * K
        total = tl.zeros((BM, BN), SUM)
        for step in range(part * SHARE, min(part * SHARE + SHARE, STEPS)):
            k = step * BK + tl.arange(0, BK)
            if WHOLE:
                d = step * BK // CG
                h = ih + d // KW * DH
                v = iw + d % KW * DW
                ok = (rm < M) & (h >= 0) & (h < H) & (v >= 0) & (v < W)
                at = image + (h * W + v) * xw
                a = tl.load(
                    at[:, None] + (step * BK % CG + tl.arange(0, BK))[None, :],
                    mask=ok[:, None],
                    other=0,
                )
            else:
                if NHWC:
                    c = k % CG
                    d = k // CG
                else:
                    c = k // (KH * KW)
                    d = k % (KH * KW)
                h = ih[:, None] + (d // KW * DH)[None, :]
                v = iw[:, None] + (d % KW * DW)[None, :]
                ok = (rm < M)[:, None] & (k < K)[None, :] & (h >= 0) & (h < H) & (v >= 0) & (v < W)
                a = tl.load(image[:, None] + (h * W + v) * xw + (c * xc)[None, :], mask=ok, other=0)
            b = tl.load(
                filters[None, :] + k[:, None], mask=(rf < FG)[None, :] & (k < K)[:, None], other=0
            )
            total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=SUM)
        keep = (rm < M)[:, None] & (rf < FG)[None, :]
        f = g * FG + rf
        if SPLIT > 1:
            tl.store(
                y + part.to(tl.int64) * M * F + rm[:, None].to(tl.int64) * F + f[None, :],
                total,
                mask=keep,
            )
        elif NHWC:
            tl.store(
                y + rm[:, None].to(tl.int64) * F + f[None, :],
                total.to(y.dtype.element_ty),
                mask=keep,
            )
        else:
            plane = rm % (OH * OW)
            tl.store(
                y + (n[:, None].to(tl.int64) * F + f[None, :]) * (OH * OW) + plane[:, None],
                total.to(y.dtype.element_ty), mask=keep,
            )  # fmt: skip


@triton.jit
def add_parts(
    parts, y,
    M: tl.constexpr, F: tl.constexpr, PLANE: tl.constexpr, NHWC: tl.constexpr,
    SPLIT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < M * F
    total = tl.load(parts + i, mask=keep, other=0)
    for part in range(1, SPLIT):
        total += tl.load(parts + part * M * F + i, mask=keep, other=0)
    m = i // F
    at = i if NHWC else (m // PLANE * F + i % F) * PLANE + m % PLANE
    tl.store(y + at, total.to(y.dtype.element_ty), mask=keep)
