"""`fewbit bench attention`: attention, alone or with its projections, beside PyTorch.

Each way is checked against float64 before it is timed; one that is wrong has no time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fewbit.bench.gpu.ladder import Rung, need_torch
from fewbit.errors import Error, UsageError
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.attention_triton import ATTENTION_TRITON
from fewbit.kernels.cuda.attention_wgmma import ATTENTION_WGMMA
from fewbit.kernels.cuda.driver import device
from fewbit.kernels.cuda.family import Family
from fewbit.kernels.cuda.plan import Plan
from fewbit.kernels.cuda.self_attention import SelfAttention, refuse, self_attention_plan

TOLERANCE = {"f16": 2e-3, "bf16": 1e-2}
"""The bound on the norm of the difference over the norm of the reference."""


def bench_attention(
    shape: str | None, dtype: str, projections: bool, as_json: str | None
) -> list[Rung]:
    """Measure and print."""
    if shape is None:
        raise UsageError("which attention is to be measured?", hint="for example 32x12x197x64")
    problem = SelfAttention.parse(shape)
    if dtype not in TOLERANCE:
        raise UsageError(f"attention is not computed in {dtype}", hint="f16 or bf16")
    problem = SelfAttention(*_sizes(problem), problem.causal, dtype)
    arch = device().arch
    need_torch()
    rungs = _with_projections(problem, arch) if projections else _alone(problem, arch)
    if as_json is not None:
        from fewbit.bench.gpu.ladder import write_rungs

        write_rungs(f"{problem}|{dtype}", [asdict(rung) for rung in rungs], as_json)
    if as_json != "-":
        _print(problem, projections, rungs)
    return rungs


def _sizes(problem: SelfAttention) -> tuple[int, int, int, int]:
    return problem.batch, problem.heads, problem.length, problem.size


def _with_projections(problem: SelfAttention, arch: Arch) -> list[Rung]:
    from fewbit.bench.gpu import self_attention as bench

    tensors = bench.data(problem)
    expected = bench.reference(problem, tensors)
    about = "three launches: matmul, attention, matmul"
    reason = refuse(problem, arch)
    ours = Rung("fewbit", about, reason=reason)
    if reason is None:
        ours = _ours(
            "fewbit", about, problem, self_attention_plan(problem, arch), tensors, expected
        )
    calls = bench.yardsticks(problem, tensors)
    return [ours, *(_theirs(name, problem, call, expected) for name, call in calls.items())]


def _alone(given: SelfAttention, arch: Arch) -> list[Rung]:
    from fewbit.bench.gpu import attention as bench

    problem = Attention(
        given.batch, given.heads, given.length, given.length, given.size, given.causal,
        dtype=given.dtype,
    )  # fmt: skip
    tensors = bench.data(problem)
    expected = bench.reference(problem, tensors)
    rungs = [
        _of_family(family, problem, arch, tensors, expected)
        for family in (ATTENTION_WGMMA, ATTENTION_TRITON)
    ]
    for backend in ("cudnn", "flash"):
        call = bench.yardstick(backend, problem, tensors)
        rungs.append(_theirs(f"torch {backend}", problem, call, expected))
    return rungs


def _of_family(
    family: Family[Attention], problem: Attention, arch: Arch, tensors: Any, expected: Any
) -> Rung:
    reason = family.refuse(problem, arch)
    if reason is not None:
        return Rung(family.name, family.about, reason=reason)
    known = table.find(arch, "attention", f"{problem}|{problem.dtype}", family.name)
    config = family.configs(problem, arch)[0] if known is None else known.config
    try:
        plan = family.build(problem, config, arch)
    except Error as failed:
        return Rung(family.name, family.about, reason=failed.what.splitlines()[0])
    return _ours(family.name, family.about, problem, plan, tensors, expected)


def _ours(name: str, about: str, problem: Any, plan: Plan, tensors: Any, expected: Any) -> Rung:
    from fewbit.bench.gpu.subject import Subject, error

    subject = Subject(plan, tensors)
    off = error(subject.run_checked(), expected)
    rung = Rung(name, about, error=off, reason=f"wrong, by {off:.1e}")
    if off <= TOLERANCE[problem.dtype]:
        rung = _time(name, about, problem, subject, off)
    subject.close()
    return rung


def _theirs(name: str, problem: Any, call: Callable[[], Any], expected: Any) -> Rung:
    import torch

    from fewbit.bench.gpu.subject import error

    try:
        with torch.no_grad():
            return _time(name, "PyTorch", problem, call, error(call(), expected))
    except RuntimeError as failed:
        return Rung(name, "PyTorch", reason=str(failed).splitlines()[0])


def _time(name: str, about: str, problem: Any, call: Callable[[], Any], off: float) -> Rung:
    from fewbit.bench.gpu.timing import cold, warm

    taken = cold(call)
    seconds = taken * 1e-6
    return Rung(
        name, about, taken, warm(call), off, problem.operations / seconds, problem.bytes / seconds
    )


def _print(problem: SelfAttention, projections: bool, rungs: list[Rung]) -> None:
    from rich.console import Console
    from rich.table import Table

    what = "attention with projections" if projections else "attention"
    shown = Table(title=f"{what} {problem}, {problem.dtype}", title_justify="left")
    shown.add_column("way")
    for name in ("cold", "warm", "TOP/s", "error"):
        shown.add_column(name, justify="right")
    shown.add_column("", overflow="fold")
    for rung in rungs:
        if rung.cold is None or rung.warm is None:
            shown.add_row(rung.variant, *[""] * 4, rung.reason or "")
            continue
        times = (f"{rung.cold:.1f} us", f"{rung.warm:.1f} us")
        rate, off = f"{(rung.operations or 0) / 1e12:.0f}", f"{rung.error or 0:.1e}"
        shown.add_row(rung.variant, *times, rate, off, rung.about)
    console = Console()
    Console(width=None if console.is_terminal else 120).print(shown)
