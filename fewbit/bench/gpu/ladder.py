"""`fewbit bench conv2d`: one convolution, computed in every way, beside cuDNN.

Each variant runs with the best settings that the package's table has for the convolution, or with
its first guess. It is checked against float64 before it is timed; one that is wrong has no time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.bench.gpu import iree
from fewbit.errors import Error, MissingToolError, UsageError
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import HOPPER, Arch
from fewbit.kernels.cuda.conv2d import find_variants
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.driver import device
from fewbit.kernels.cuda.family import Config, Family

if TYPE_CHECKING:
    import torch

YARDSTICK = "cudnn"


@dataclass(frozen=True)
class Rung:
    """One variant's row: times in microseconds, or why there are none."""

    variant: str
    about: str
    cold: float | None = None
    warm: float | None = None
    error: float | None = None
    operations: float | None = None
    """A second, of the time with an empty cache."""
    bytes: float | None = None
    """A second, likewise: of the fewest that can be moved."""
    reason: str | None = None


def key(problem: Convolution) -> str:
    """Return what the table calls a convolution."""
    return f"{problem}|{problem.dtype}|{problem.layout}"


def settings(family: Family[Convolution], problem: Convolution, arch: Arch) -> Config:
    """Return the best known settings, or the family's first guess."""
    known = table.find(arch, "conv2d", key(problem), family.name)
    return known.config if known is not None else family.configs(problem, arch)[0]


def climb(problem: Convolution, variants: str, modules: Path | None = None) -> list[Rung]:
    """Measure every variant that is asked for, and cuDNN last."""
    families, has_iree = split_variants(variants)
    arch = device().arch
    need_torch()
    from fewbit.bench.gpu import conv2d
    from fewbit.bench.gpu.timing import cold, warm

    tensors = conv2d.data(problem)
    reference = conv2d.reference(problem, tensors)
    rungs = [_rung(family, problem, arch, tensors, reference) for family in families]
    if has_iree:
        rungs.append(_iree_rung(problem, arch, tensors, reference, modules))
    if problem.dtype == "i8":
        return [
            *rungs,
            Rung(YARDSTICK, "NVIDIA's library", reason="PyTorch has no int8 convolution"),
        ]
    call = conv2d.cudnn(problem, tensors)
    return [
        *rungs,
        _make_rung(YARDSTICK, "NVIDIA's library", problem, cold(call), warm(call), None),
    ]


def _rung(
    family: Family[Convolution],
    problem: Convolution,
    arch: Arch,
    tensors: dict[str, torch.Tensor],
    reference: torch.Tensor,
) -> Rung:
    from fewbit.bench.gpu import conv2d
    from fewbit.bench.gpu.subject import TOLERANCE, Subject, error
    from fewbit.bench.gpu.timing import cold, warm

    reason = family.refuse(problem, arch)
    if reason is not None:
        return Rung(family.name, family.about, reason=reason)
    try:
        plan = family.build(problem, settings(family, problem, arch), arch)
    except Error as failed:
        return Rung(family.name, family.about, reason=failed.what.splitlines()[0])
    subject = Subject(plan, conv2d.inputs_of(family.name, problem, tensors))
    off = error(subject.run_checked(), reference)
    if not off <= TOLERANCE[problem.dtype]:
        return Rung(family.name, family.about, error=off, reason=f"wrong, by {off:.1e}")
    rung = _make_rung(family.name, family.about, problem, cold(subject), warm(subject), off)
    subject.close()
    return rung


def _iree_rung(
    problem: Convolution,
    arch: Arch,
    tensors: dict[str, torch.Tensor],
    reference: torch.Tensor,
    modules: Path | None,
) -> Rung:
    from tempfile import TemporaryDirectory

    from fewbit.bench.gpu.subject import TOLERANCE, error
    from fewbit.bench.gpu.timing import flush

    reason = iree.refuse(problem)
    if reason is not None:
        return Rung(iree.NAME, iree.ABOUT, reason=reason)
    with TemporaryDirectory(prefix="fewbit-rung-") as temporary:
        try:
            place = iree.module_of(problem, arch, modules or Path(temporary))
            subject = iree.IreeSubject(place, problem, tensors)
            off = error(subject.result(), reference)
        except Error as failed:
            return Rung(iree.NAME, iree.ABOUT, reason=failed.what.splitlines()[0])
    if not off <= TOLERANCE[problem.dtype]:
        return Rung(iree.NAME, iree.ABOUT, error=off, reason=f"wrong, by {off:.1e}")
    cold, warm, how = iree.times_of(subject, flush)
    return _make_rung(iree.NAME, f"{iree.ABOUT}, {how}", problem, cold, warm, off)


def split_variants(variants: str) -> tuple[list[Family[Convolution]], bool]:
    """Return the families that are asked for, and whether IREE is."""
    if variants == "all":
        return find_variants("all"), True
    names = variants.split(",")
    ours = [name for name in names if name != iree.NAME]
    return (find_variants(",".join(ours)) if ours else []), iree.NAME in names


def _make_rung(
    name: str, about: str, problem: Convolution, cold: float, warm: float, off: float | None
) -> Rung:
    seconds = cold * 1e-6
    return Rung(name, about, cold, warm, off, problem.operations / seconds, problem.bytes / seconds)


def need_torch() -> None:
    import torch

    if not torch.cuda.is_available():
        raise MissingToolError(
            "PyTorch sees no GPU, and the yardstick is its cuDNN",
            hint="install a PyTorch with CUDA on the machine with the GPU",
        )


def bench_conv2d(
    shape: str | None,
    variants: str,
    dtype: str,
    layout: str,
    as_json: str | None,
    modules: Path | None = None,
) -> None:
    """Measure and print a ladder.

    IREE's modules are kept in a folder if one is given, and are compiled before a GPU is looked
    for: a machine without one can make them for one that has no compiler.
    """
    if shape is None:
        raise UsageError(
            "which convolution is to be measured?", hint="for example --shape n32,56x56,64,64,k3"
        )
    problem = Convolution.parse(shape).of(dtype, layout)
    _, has_iree = split_variants(variants)
    if modules is not None and has_iree and iree.refuse(problem) is None:
        iree.module_of(problem, HOPPER, modules)
    rungs = climb(problem, variants, modules)
    if as_json is not None:
        write_rungs(key(problem), [asdict(rung) for rung in rungs], as_json)
    if as_json != "-":
        _print(problem, rungs)


def write_rungs(problem: str, rungs: list[dict[str, object]], to: str) -> None:
    """Write the figures as JSON, to a file or to standard output."""
    from fewbit.base.files import replacing_file
    from fewbit.base.json_output import json_text

    text = json_text({"problem": problem, "rungs": rungs}, indent=2)
    if to == "-":
        print(text)
        return
    with replacing_file(Path(to)) as file:
        file.write((text + "\n").encode())


def _print(problem: Convolution, rungs: list[Rung]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console = Console(width=None if console.is_terminal else 120)
    shown = Table(
        title=f"conv2d {problem}, {problem.dtype}, {problem.layout}", title_justify="left"
    )
    shown.add_column("variant")
    for name in ("cold", "warm", "to cuDNN", "TOP/s", "TB/s", "error"):
        shown.add_column(name, justify="right")
    shown.add_column("", overflow="fold")
    base = next((rung.cold for rung in rungs if rung.variant == YARDSTICK), None)
    for rung in rungs:
        if rung.cold is None or rung.warm is None:
            shown.add_row(rung.variant, *[""] * 6, rung.reason or "")
            continue
        shown.add_row(
            rung.variant,
            f"{rung.cold:.1f} us",
            f"{rung.warm:.1f} us",
            f"{base / rung.cold:.2f}" if base else "",
            f"{(rung.operations or 0) / 1e12:.1f}",
            f"{(rung.bytes or 0) / 1e12:.2f}",
            "" if rung.error is None else f"{rung.error:.1e}",
            rung.about,
        )
    console.print(shown)
