# pyright: basic
"""Every GPU kernel against float64, on random problems with everything odd about them."""

from __future__ import annotations

import random
import time

from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.attention_triton import ATTENTION_TRITON
from fewbit.kernels.cuda.attention_wgmma import ATTENTION_WGMMA
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.few_bit import FEW_BIT, FewBitMatmul
from fewbit.kernels.cuda.separable import SEPARABLE, Separable
from fewbit.kernels.cuda.tune import Candidate, compile_candidates
from fewbit.numerics.widths import Width

ATTENTION = {family.name: family for family in (ATTENTION_WGMMA, ATTENTION_TRITON)}
SEED = 7


def random_convolution(rng: random.Random, family: str) -> Convolution:
    """A small convolution with everything odd about it."""
    k = rng.choice((1, 2, 3, 5, 7))
    kw = rng.choice((k, k, 1, 3))
    d = rng.choice((1, 1, 2))
    g = rng.choice((1, 1, 2, 3))
    c, f = (g * rng.choice((1, 3, 8, 16, 24, 40, 64)) for _ in range(2))
    s = rng.choice((1, 1, 2, 3))
    if family.startswith("depthwise"):
        c = f = g = rng.choice(
            (1, 3, 8, 20, 144) if family == "depthwise" else (8, 16, 32, 80, 144)
        )
    if family in ("wgmma", "patch", "cutlass"):
        g = rng.choice((1, 1, 2)) if family == "wgmma" else 1
        c = g * rng.choice((64, 128) if g > 1 else (8, 16, 40, 64, 72, 128))
        f = g * rng.choice((8, 16, 40, 64, 136, 200))
        s = rng.choice((1, 2)) if family == "wgmma" else 1
        k = kw = rng.choice((1, 3, 5))
    h, w = (d * (size - 1) + 1 + rng.randrange(0, 30) for size in (k, kw))
    p = (rng.randrange(0, d * (k - 1) + 1), rng.randrange(0, d * (kw - 1) + 1))
    return Convolution(rng.choice((1, 2, 5)), h, w, c, f, k, kw, (s, s), p, (d, d), g)


def check_conv(pool, arch, names, seconds, compiled_before=()):
    from fewbit.bench.gpu import conv2d as bench
    from fewbit.bench.gpu.subject import TOLERANCE, Subject, error

    rng = random.Random(SEED)
    tries = []
    for name in names:
        family = LADDER[name]
        if name == "cutlass" and compiled_before:
            for text in compiled_before:
                shape, dtype = text.split("|")
                problem = Convolution.parse(shape).of(dtype, "nhwc")
                tries += [Candidate(family, problem, c) for c in family.configs(problem, arch)]
            continue
        for dtype in ("f32", "tf32", "f16", "bf16", "i8"):
            for layout in ("nhwc", "nchw"):
                for _ in range(5 if layout == "nhwc" else 3):
                    problem = random_convolution(rng, name).of(dtype, layout)
                    if dtype == "i8" and name in ("wgmma", "patch"):
                        rounded = max(16, problem.channels // 16 * 16) * problem.groups
                        problem = Convolution(**{**problem.__dict__, "channels": rounded})
                    if dtype == "f32" and name == "triton":
                        continue
                    if family.refuse(problem, arch) is None and family.configs(problem, arch):
                        tries.append(
                            Candidate(family, problem, rng.choice(family.configs(problem, arch)))
                        )
    return run_checks(
        pool, arch, tries, LADDER,
        lambda t, plan: Subject(
            plan, bench.inputs_of(t.family.name, t.problem, bench.data(t.problem))
        ),
        lambda t: bench.reference(t.problem, bench.data(t.problem)),
        lambda t: TOLERANCE[t.problem.dtype], error, seconds,
    )  # fmt: skip


def check_attention(pool, arch, names, seconds):
    from fewbit.bench.gpu import attention as bench
    from fewbit.bench.gpu.subject import Subject, error

    rng = random.Random(SEED)
    tries = []
    for name in names:
        for i in range(28):
            heads = rng.choice((1, 2, 4))
            size = rng.choice((8, 16, 24, 64, 72, 80, 96, 128, 40 if name == "wgmma" else 33))
            keys = rng.randrange(1, 700)
            dtype = rng.choice(("f16", "bf16"))
            kv = rng.choice((dtype, "i8", "f8")) if name == "triton" else dtype
            problem = Attention(
                rng.choice((1, 3)), heads, rng.randrange(1, 400) if i % 3 else keys, keys, size,
                i % 2 == 0, i % 4 == 1, dtype, kv, rng.choice((1, heads)),
            )  # fmt: skip
            family = ATTENTION[name]
            if family.refuse(problem, arch) is None and family.configs(problem, arch):
                tries.append(Candidate(family, problem, rng.choice(family.configs(problem, arch))))
    return run_checks(
        pool, arch, tries, ATTENTION,
        lambda t, plan: Subject(plan, bench.data(t.problem)),
        lambda t: bench.reference(t.problem, bench.data(t.problem)),
        lambda t: 2e-3 if t.problem.dtype == "f16" else 1e-2, error, seconds,
    )  # fmt: skip


def check_few_bit(pool, arch, seconds):
    from fewbit.bench.gpu import few_bit as bench
    from fewbit.bench.gpu.subject import Subject, error

    rng = random.Random(SEED)
    tries = []
    for w in (1, 1.58, 2, 3, 4, 6, 8):
        for dtype in ("f16", "bf16", "i8"):
            for _ in range(3):
                k = 256 * rng.randrange(1, 6)
                groups = rng.choice((1, k // 128, k // 64, k // 32))
                problem = FewBitMatmul(
                    rng.choice((1, 3, 8, 16, 33, 70)), rng.randrange(1, 300), k, Width.of(w),
                    groups, dtype, rng.choice(("f16", "bf16", "f32")),
                )  # fmt: skip
                if FEW_BIT.refuse(problem, arch) is None and FEW_BIT.configs(problem, arch):
                    tries.append(
                        Candidate(FEW_BIT, problem, rng.choice(FEW_BIT.configs(problem, arch)))
                    )
    return run_checks(
        pool, arch, tries, {"few_bit": FEW_BIT},
        lambda t, plan: Subject(plan, bench.data(t.problem)[0]),
        lambda t: bench.reference(t.problem, *bench.data(t.problem)),
        lambda t: {"f32": 2e-6, "f16": 6e-4, "bf16": 4e-3}[t.problem.result], error, seconds,
    )  # fmt: skip


def check_separable(pool, arch, seconds):
    from fewbit.bench.gpu.separable import Data
    from fewbit.bench.gpu.subject import Subject, error

    rng = random.Random(SEED)
    tries = []
    for i in range(20):
        c = rng.choice((16, 32, 80, 144) if i < 12 else (64, 128, 192))
        k = rng.choice((1, 3, 5))
        d = Convolution(
            rng.choice((1, 3)), rng.randrange(k, 30), rng.randrange(k, 30), c, c, k, k,
            (1 + i % 2, 1 + i % 2), (k // 2, k // 2), (1, 1), c, ("f16", "bf16")[i // 2 % 2],
        )  # fmt: skip
        problem = Separable(d, rng.choice((8, 24, 96, 136)))
        configs = SEPARABLE.configs(problem, arch)
        tiles = [config for config in configs if not config["stages"]]
        tries.append(Candidate(SEPARABLE, problem, rng.choice(tiles or configs)))
    known = {t.problem: Data(t.problem) for t in tries}

    return run_checks(
        pool, arch, tries, {"separable": SEPARABLE},
        lambda t, plan: Subject(plan, known[t.problem].inputs),
        lambda t: known[t.problem].reference,
        lambda t: 1e-3 if t.problem.depthwise.dtype == "f16" else 8e-3, error, seconds,
    )  # fmt: skip


def run_checks(pool, arch, tries, families, subject_of, reference_of, tolerance_of, error, seconds):
    rows = []
    start = time.time()
    for t, plan in compile_candidates(pool, tries, arch, families):
        row = {"family": t.family.name, "problem": str(t.problem), "config": dict(t.config)}
        row["dtype"] = getattr(t.problem, "dtype", "") + " " + getattr(t.problem, "layout", "")
        if isinstance(plan, str):
            row["bad"] = plan[:600]
        else:
            print("run", row, flush=True)
            subject = subject_of(t, plan)
            row["error"] = error(subject.run_checked(), reference_of(t))
            again = error(subject.run_checked(), reference_of(t))
            if not row["error"] <= tolerance_of(t) or again != row["error"]:
                row["bad"] = f"{row['error']} {again}"
            subject.close()
        rows.append(row)
        if time.time() - start > seconds:
            break
    return rows


def check(pool, arch, section, seconds, compiled_before=()):
    if section in ("wgmma-attention", "triton-attention"):
        return check_attention(pool, arch, [section.split("-")[0]], seconds)
    if section == "few_bit":
        return check_few_bit(pool, arch, seconds)
    if section == "separable":
        return check_separable(pool, arch, seconds)
    return check_conv(pool, arch, section.split("/"), seconds, compiled_before)
