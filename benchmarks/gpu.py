# pyright: basic
"""GPU kernels beside cuDNN, cuBLAS and PyTorch: checks, tuning, and the tables of gpu.md.

    python benchmarks/gpu.py check SECTION --out FOLDER
    python benchmarks/gpu.py tune SECTION --out FOLDER
    python benchmarks/gpu.py precompile cutlass --out FILE
    python benchmarks/gpu.py table all --out FOLDER

`table` needs no GPU: it puts the settings into the package, and prints the tables of gpu.md.

A section is a process of its own, so that a kernel that hangs or faults takes no other with it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpu_checks import ATTENTION, SEED, check, random_convolution

from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import HOPPER
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.few_bit import FEW_BIT, FewBitMatmul
from fewbit.kernels.cuda.plan import Plan
from fewbit.kernels.cuda.separable import SEPARABLE, Separable
from fewbit.kernels.cuda.tune import candidates, tune
from fewbit.numerics.widths import Width

CONV = (
    "n32,224x224,3,64,k7,s2", "n32,56x56,64,64,k1", "n32,56x56,64,64,k3", "n32,56x56,64,256,k1",
    "n32,28x28,128,128,k3", "n32,14x14,256,256,k3", "n32,7x7,512,512,k3", "n1,56x56,64,64,k3",
    "n1,14x14,256,256,k3",
)  # fmt: skip
DEPTHWISE = ("n32,56x56,144,144,k3,g144", "n32,14x14,576,576,k3,g576")
POINTWISE = {"n32,56x56,144,144,k3,g144": 24, "n32,14x14,576,576,k3,g576": 96}
ATTENTIONS = (
    Attention(8, 16, 2048, 2048, 64), Attention(8, 16, 2048, 2048, 128),
    Attention(32, 12, 197, 197, 64), Attention(1, 32, 4096, 4096, 128),
    Attention(8, 16, 2048, 2048, 128, causal=True),
)  # fmt: skip
MATMULS = [
    FewBitMatmul(m, 4096, 4096, Width.of(w), 32, dtype, "bf16")
    for m in (1, 8, 16, 64)
    for w, dtype in ((4, "bf16"), (2, "bf16"), (1.58, "bf16"), (4, "i8"), (8, "i8"))
] + [
    FewBitMatmul(m, 4096, 4096, Width.of(w), 128, "i8", "bf16") for m in (1, 8, 16) for w in (4, 8)
]
INT8 = Convolution(1, 64, 64, 4096, 4096, 1, 1, dtype="i8")
FAMILIES = {
    "conv2d": LADDER, "attention": ATTENTION,
    "few_bit": {"few_bit": FEW_BIT}, "separable": {"separable": SEPARABLE},
}  # fmt: skip
TENSOR_CORES = ("mma", "wgmma", "patch", "cutlass", "triton")
PLANS = Path(__file__).parent / "cutlass_plans.json"
"""CUTLASS's kernels, compiled where its headers are (`precompile`); a device may not have them."""


def _key(problem, config):
    return f"{problem}|{problem.dtype}|{sorted(config.items())}"


def _load_plan(problem, config, arch):
    return Plan.of(json.loads(PLANS.read_text())["plans"][_key(problem, config)])


def use_plans() -> None:
    """Let the ladder have CUTLASS's kernels as they were compiled elsewhere."""
    known = json.loads(PLANS.read_text())["configs"]
    ours = LADDER["cutlass"]
    LADDER["cutlass"] = replace(
        ours,
        refuse=lambda p, a: (
            ours.refuse(p, a) or (None if f"{p}|{p.dtype}" in known else "not compiled")
        ),
        configs=lambda p, a: known[f"{p}|{p.dtype}"],
        build=_load_plan,
    )


def precompile(out: Path) -> None:
    """Plans of CUTLASS for the ladder, the shapes of the table and some checks."""
    ours, rng = LADDER["cutlass"], random.Random(SEED)
    tries = [(Convolution.parse(shape), 1 + 3 * (shape == CONV[2])) for shape in CONV[1:]]
    tries += [
        (random_convolution(rng, "cutlass").of(t, "nhwc"), 1)
        for t in ("f16", "bf16", "tf32", "i8")
        for _ in range(8)
    ]
    plans, configs, counts = {}, {}, {}
    for problem, count in tries:
        if ours.refuse(problem, HOPPER) is not None or counts.get(problem.dtype, 0) > (
            14 if problem.dtype == "f16" else 2
        ):
            continue
        counts[problem.dtype] = counts.get(problem.dtype, 0) + 1
        chosen = ours.configs(problem, HOPPER)[:count]
        configs[f"{problem}|{problem.dtype}"] = chosen
        for config in chosen:
            plans[_key(problem, config)] = ours.build(problem, config, HOPPER).plain()
            print(problem, problem.dtype, config, flush=True)
    out.write_text(json.dumps({"plans": plans, "configs": configs}))


class Tuning:
    """Candidates of one problem, measured; then the best of each family beside the yardsticks."""

    def __init__(self, pool, arch, kind, families, seconds):
        self.pool, self.arch, self.kind, self.families = pool, arch, kind, families
        self.rows, self.seconds = [], seconds

    def run(self, problem, key, names, subject_of, reference, tolerance, yardsticks, more=None):
        from fewbit.bench.gpu.subject import error
        from fewbit.bench.gpu.timing import cold, warm

        start = time.time()
        tries = candidates([self.families[n] for n in names], problem, self.arch)
        random.Random(SEED).shuffle(tries)
        wrong = []

        def measure(t, plan):
            if time.time() - start > self.seconds:
                return 1e9
            subject = subject_of(t, plan)
            try:
                off = error(subject.run_checked(), reference)
                if not off <= tolerance:
                    wrong.append((t.family.name, dict(t.config), off))
                    return 1e9
                return cold(subject, 16)
            finally:
                subject.close()

        tried = tune(self.pool, tries, self.arch, self.families, measure)
        failed = [t.reason for t in tried if t.microseconds is None]
        row = {
            "kind": self.kind, "problem": key, "tried": len(tried), "wrong": wrong[:6],
            "failed": [len(failed), *{str(reason)[:300] for reason in failed[:3]}], **(more or {}),
        }  # fmt: skip
        row["yardsticks"] = {}
        for name, call in yardsticks.items():
            try:
                row["yardsticks"][name] = [cold(call, 50), warm(call)]
            except Exception as problem_:
                row["yardsticks"][name] = str(problem_)[:200]
        row["families"] = {}
        for name in names:
            best = [
                t
                for t in tried
                if t.candidate.family.name == name and (t.microseconds or 1e9) < 1e8
            ][:6]
            found = []
            for t in best:
                plan = self.families[name].build(problem, t.candidate.config, self.arch)
                subject = subject_of(t.candidate, plan)
                found.append([cold(subject, 50), warm(subject), dict(t.candidate.config)])
                subject.close()
            if found:
                row["families"][name] = sorted(found, key=lambda f: f[0])
        row["seconds"] = round(time.time() - start, 1)
        self.rows.append(row)
        best = min((f[0][0], n) for n, f in row["families"].items()) if row["families"] else None
        print(
            key,
            "best",
            best,
            {n: f[0] for n, f in row["families"].items()} if len(tried) else "",
            "yardsticks",
            row["yardsticks"],
            "wrong",
            len(wrong),
            row["failed"],
            row["seconds"],
            flush=True,
        )
        return row


def tune_conv(pool, arch, seconds, shapes, dtype="f16", names=TENSOR_CORES):
    from fewbit.bench.gpu import conv2d as bench
    from fewbit.bench.gpu.subject import TOLERANCE, Subject

    tuning = Tuning(pool, arch, "conv2d", LADDER, seconds)
    for shape in shapes:
        problem = Convolution.parse(shape).of(dtype, "nhwc")
        tensors = bench.data(problem)
        reference = bench.reference(problem, tensors)
        chosen = [n for n in names if LADDER[n].refuse(problem, arch) is None]
        beside = {} if dtype == "i8" else {"cudnn": bench.cudnn(problem, tensors)}
        tuning.run(
            problem, f"{shape}|{dtype}|nhwc", chosen,
            lambda t, plan: Subject(plan, bench.inputs_of(t.family.name, t.problem, tensors)),  # noqa: B023
            reference, TOLERANCE[dtype], beside,
            {"operations": problem.operations, "bytes": problem.bytes},
        )  # fmt: skip
    return tuning.rows


def tune_separable(pool, arch, seconds):
    from fewbit.bench.gpu.separable import Data
    from fewbit.bench.gpu.subject import Subject

    tuning = Tuning(pool, arch, "separable", FAMILIES["separable"], seconds)
    for shape, out in POINTWISE.items():
        problem = Separable(Convolution.parse(shape), out)
        data, d = Data(problem), problem.depthwise
        moved = sum(buffer.bytes for buffer in problem.buffers().values())
        tuning.run(
            problem, f"{shape}->{out}|f16", ["separable"],
            lambda t, plan: Subject(plan, data.inputs), data.reference, 1e-3,  # noqa: B023
            {"cudnn twice": data.cudnn},
            {"operations": d.operations + 2 * d.pixels * d.channels * out, "bytes": moved},
        )  # fmt: skip
    return tuning.rows


def tune_attention(pool, arch, seconds):
    from fewbit.bench.gpu import attention as bench
    from fewbit.bench.gpu.subject import Subject

    tuning = Tuning(pool, arch, "attention", ATTENTION, seconds)
    for problem in ATTENTIONS:
        tensors = bench.data(problem)
        reference = bench.reference(problem, tensors)
        tuning.run(
            problem, f"{problem}|{problem.dtype}", ["wgmma", "triton"],
            lambda t, plan: Subject(plan, tensors), reference, 2e-3,  # noqa: B023
            {name: bench.yardstick(name, problem, tensors) for name in ("cudnn", "flash")},
            {"operations": problem.operations, "bytes": problem.bytes},
        )  # fmt: skip
    return tuning.rows


def tune_few_bit(pool, arch, seconds, problems):
    import torch

    from fewbit.bench.gpu import few_bit as bench
    from fewbit.bench.gpu.subject import Subject

    tuning = Tuning(pool, arch, "few_bit", FAMILIES["few_bit"], seconds)
    for problem in problems:
        tensors, weights = bench.data(problem)
        reference = bench.reference(problem, tensors, weights)
        x = torch.randn(problem.m, problem.k, device="cuda", dtype=torch.bfloat16)
        w = weights.bfloat16()
        yardsticks = {"cublas bf16": lambda: x @ w.T}  # noqa: B023
        if problem.bits == 4 and problem.dtype == "bf16":
            nibbles = torch.randint(
                0, 255, (problem.n, problem.k // 2), dtype=torch.uint8, device="cuda"
            )
            packed = torch.ops.aten._convert_weight_to_int4pack(nibbles, 8)
            zeros = torch.rand(problem.k // 128, problem.n, 2, device="cuda", dtype=torch.bfloat16)
            four = torch.ops.aten._weight_int4pack_mm
            yardsticks["torch int4"] = partial(four, x, packed, 128, zeros)
        tuning.run(
            problem, f"{problem}|{problem.dtype}", ["few_bit"],
            lambda t, plan: Subject(plan, tensors), reference, 4e-3, yardsticks,  # noqa: B023
            {"operations": problem.operations, "bytes": problem.n * problem.k * problem.bits // 8},
        )  # fmt: skip
    return tuning.rows


def tune_int8(pool, arch, seconds):
    import torch

    from fewbit.bench.gpu import conv2d as bench
    from fewbit.bench.gpu.subject import Subject

    tuning = Tuning(pool, arch, "conv2d", LADDER, seconds)
    tensors = bench.data(INT8)
    x, w = tensors["x"].reshape(4096, 4096), tensors["w"].reshape(4096, 4096)
    reference = (x.double() @ w.double().T).reshape(1, 64, 64, 4096)
    tuning.run(
        INT8, f"{INT8}|i8|nhwc", ["wgmma", "triton"],
        lambda t, plan: Subject(plan, tensors), reference, 0.0,
        {"cublas": lambda: torch._int_mm(x, w.T)},  # pyright: ignore[reportPrivateImportUsage]
        {"operations": INT8.operations, "bytes": INT8.bytes},
    )  # fmt: skip
    return tuning.rows


def tune_nothing():
    """Time an event, a launch and an event: what no kernel can save of a cold time."""
    import torch

    from fewbit.bench.gpu.timing import cold, warm
    from fewbit.kernels.cuda.driver import Loaded
    from fewbit.kernels.cuda.nvrtc import compile_source
    from fewbit.kernels.cuda.plan import Launch

    image = compile_source('extern "C" __global__ void nothing() {}', HOPPER).image
    loaded = Loaded(
        Plan("nothing", HOPPER.code, {}, (Launch(0, "nothing", (132, 1, 1), 128, ()),), (image,)),
        {},
    )

    def call():
        loaded(torch.cuda.current_stream().cuda_stream)

    row = {
        "kind": "nothing",
        "problem": "nothing",
        "families": {"nothing": [[cold(call, 100), warm(call), {}]]},
    }
    print(row)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    big = torch.randn(1 << 30, device="cuda")
    other = torch.empty_like(big)
    row["matmul TFLOP/s"] = 2 * 8192**3 / cold(lambda: a @ b, 20) / 1e6
    row["copy TB/s"] = 2 * big.nbytes / cold(lambda: other.copy_(big), 10) / 1e6
    print(row)
    return [row]


def write_tables(folder: Path) -> None:
    """Settings of all tunings in a folder into the package; what was measured as markdown."""
    rows = {}
    for path in sorted(folder.glob("**/tune_*.json"), key=lambda p: p.stat().st_mtime):
        for row in json.loads(path.read_text()):
            known = rows.setdefault((row["kind"], row["problem"]), row)
            known["families"].update(row["families"])
            known["yardsticks"] = row.get("yardsticks", {})
    saved: table.Table = {}
    for (kind, problem), row in sorted(rows.items()):
        if kind == "nothing":
            print(json.dumps(row))
            continue
        results = [table.Entry(n, f[0][2], f[0][0]) for n, f in row["families"].items()]
        saved.setdefault(kind, {})[problem] = results
        print(_markdown(problem, row))
    table.save(HOPPER, saved)


def _markdown(problem: str, row) -> str:
    best, name = min((f[0][0], n) for n, f in row["families"].items())
    warm = row["families"][name][0][1]
    cells = [problem, f"{best:.1f} ({warm:.1f})", name]
    for yardstick, times in row["yardsticks"].items():
        cells.append(f"{yardstick} {times[0]:.1f} ({times[1]:.1f}), {times[0] / best:.2f}x")
    cells.append(
        f"{row['operations'] / best / 1e6:.0f} TOP/s, {row.get('bytes', 0) / best / 1e6:.2f} TB/s"
    )
    others = [f"{n} {f[0][0]:.1f}" for n, f in row["families"].items() if n != name]
    return "| " + " | ".join([*cells, ", ".join(others)]) + " |"


def tunings(pool, arch, section, seconds):
    if section == "attention":
        return tune_attention(pool, arch, seconds)
    if section == "few_bit":
        return tune_few_bit(
            pool, arch, seconds, [p for p in MATMULS if p.dtype == "bf16" and p.bits == 4]
        )
    if section == "few_bit_more":
        return tune_few_bit(
            pool, arch, seconds, [p for p in MATMULS if p.dtype != "bf16" or p.bits != 4]
        )
    if section == "separable":
        return tune_separable(pool, arch, seconds)
    if section == "depthwise":
        return tune_conv(pool, arch, seconds, DEPTHWISE, names=("depthwise", "depthwise_patch"))
    if section == "int8":
        return tune_int8(pool, arch, seconds)
    if section == "nothing":
        return tune_nothing()
    if section.startswith("types"):
        rows = []
        for dtype in ("bf16", "tf32", "i8", "f32"):
            names = ("tiled+both",) if dtype == "f32" else TENSOR_CORES
            rows += tune_conv(pool, arch, seconds, CONV[2:7:2], dtype, names)
        return rows
    if section == "ladder":
        return tune_conv(pool, arch, seconds, CONV[2:3], names=tuple(LADDER))
    return tune_conv(pool, arch, seconds, CONV)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("check", "tune", "precompile", "table"))
    parser.add_argument("section")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60, help="for a check, or for a problem")
    parser.add_argument("--processes", type=int, default=15)
    given = parser.parse_args()
    if given.what == "precompile":
        precompile(given.out)
        return
    if given.what == "table":
        write_tables(given.out)
        return
    if PLANS.exists():
        use_plans()
    with get_context("fork").Pool(given.processes) as pool:
        if given.what == "tune":
            rows = tunings(pool, HOPPER, given.section, given.seconds)
        else:
            before = json.loads(PLANS.read_text())["configs"] if PLANS.exists() else ()
            rows = check(pool, HOPPER, given.section, given.seconds, before)
    name = given.section.replace("/", "_").replace("+", "_")
    path = given.out / f"{given.what}_{name}.json"
    path.write_text(json.dumps(rows))
    bad = [row for row in rows if row.get("bad") or row.get("wrong")]
    print(given.what, given.section, f"{len(rows)} rows, {len(bad)} bad")
    for row in bad[:8]:
        print("BAD", json.dumps(row)[:700])


if __name__ == "__main__":
    main()
