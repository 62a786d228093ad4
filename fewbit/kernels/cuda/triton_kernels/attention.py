# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""softmax(q kᵀ) v in Triton: any head size up to 128, ragged lengths, 8-bit keys and values too.

A program has BM queries of one head. Keys are walked in tiles of BN; those that nothing masks come
first, in a loop without comparisons. Scales of 8-bit keys multiply scores, those of values weights.
"""

import triton
import triton.language as tl


@triton.jit
def _tiles(
    total, high, out, q, k, v, k_scale, v_scale, row, keys, begin, end, c,
    D: tl.constexpr, DP: tl.constexpr, BN: tl.constexpr, SHIFT: tl.constexpr,
    CAUSAL: tl.constexpr, SCALED: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, DP)
    for start in range(begin, end, BN):
        key = start + tl.arange(0, BN)
        if MASKED or D != DP:
            keep = (key < keys)[:, None] & (cols < D)[None, :]
            kt = tl.load(k + key[:, None] * D + cols[None, :], mask=keep, other=0.0)
        else:
            kt = tl.load(k + key[:, None] * D + cols[None, :])
        s = tl.dot(q, kt.to(q.dtype).T) * c
        if SCALED:
            s *= tl.load(k_scale + key, mask=key < keys, other=0)[None, :]
        if MASKED:
            seen = (key < keys)[None, :]
            if CAUSAL:
                seen = seen & (key[None, :] <= row[:, None] + SHIFT)
            s = tl.where(seen, s, float("-inf"))
        new = tl.maximum(high, tl.max(s, 1))
        shift = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(s - shift[:, None])
        fix = tl.exp2(high - shift)
        total = total * fix + tl.sum(p, 1)
        high = new
        if SCALED:
            p *= tl.load(v_scale + key, mask=key < keys, other=0)[None, :]
        if MASKED or D != DP:
            keep = (key < keys)[:, None] & (cols < D)[None, :]
            vt = tl.load(v + key[:, None] * D + cols[None, :], mask=keep, other=0.0)
        else:
            vt = tl.load(v + key[:, None] * D + cols[None, :])
        out = tl.dot(p.to(q.dtype), vt.to(q.dtype), out * fix[:, None])
    return total, high, out


@triton.jit
def attention(
    q, k, v, lengths, k_scale, v_scale, y, c,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, SQ: tl.constexpr, SK: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, CAUSAL: tl.constexpr, RAGGED: tl.constexpr,
    SCALED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    kv = (head // HEADS * KV_HEADS + head % HEADS // (HEADS // KV_HEADS)).to(tl.int64)
    SHIFT: tl.constexpr = SK - SQ
    tile = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    row = tile * BM + tl.arange(0, BM)
    cols = tl.arange(0, DP)
    at = head.to(tl.int64) * SQ * D + row[:, None] * D + cols[None, :]
    inside = (row < SQ)[:, None] & (cols < D)[None, :]
    queries = tl.load(q + at, mask=inside, other=0)
    keys = min(tl.load(lengths + head // HEADS), SK) if RAGGED else SK
    k += kv * SK * D
    v += kv * SK * D
    k_scale += kv * SK
    v_scale += kv * SK
    end = min(keys, tile * BM + BM + SHIFT) if CAUSAL else keys
    free = min(keys, max(tile * BM + SHIFT + 1, 0)) if CAUSAL else keys
    free = free // BN * BN
    high = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    out = tl.zeros((BM, DP), tl.float32)
    total, high, out = _tiles(
        total, high, out, queries, k, v, k_scale, v_scale, row, keys, 0, free, c,
        D, DP, BN, SHIFT, CAUSAL, SCALED, False,
    )  # fmt: skip
    total, high, out = _tiles(
        total, high, out, queries, k, v, k_scale, v_scale, row, keys, free, end, c,
        D, DP, BN, SHIFT, CAUSAL, SCALED, True,
    )  # fmt: skip
    out = out / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(y + at, out.to(y.dtype.element_ty), mask=inside)
