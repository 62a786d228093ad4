"""`fewbit bench MODEL`: how fast a model is, beside other tools and beside what is possible.

Each tool has a process of its own, and they take turns. What is missing or misspelt is found before
anything is measured; a tool that fails on the model is shown with its reason, without a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.base.json_output import json_text
from fewbit.cli.calibration import CalibrationOptions
from fewbit.cli.options import (
    CalibrateData,
    InputShape,
    KeepBatchNorm,
    ModelName,
    OptionalMethod,
    OptionalRecipe,
    Samples,
    parse_shapes,
)
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from fewbit.bench.report import Report, Times

WIDTH = 120
"""Columns of the tables where there is no terminal to ask."""
DEFAULT_PEERS = "torch"


def bench(
    model: ModelName,
    recipe: OptionalRecipe = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            help="cpu, cpu:PROCESSOR, iree-cpu, ...: what this machine runs; cuda for conv2d"
            " and attention.",
        ),
    ] = "cpu",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="TOOLS",
            help="Tools to compare with: torch,onnxruntime,openvino,iree; available; none."
            " torch if not given.",
        ),
    ] = None,
    threads: Annotated[str, typer.Option(metavar="N,...", help="Numbers of threads.")] = "1",
    batch: Annotated[int | None, typer.Option(min=1, help="The first size of all inputs.")] = None,
    seconds: Annotated[
        float, typer.Option(min=0.01, help="How long to measure each tool, for each of --threads.")
    ] = 2.0,
    as_json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write figures; - prints them only."),
    ] = None,
    layers: Annotated[
        bool, typer.Option("--layers/--no-layers", help="Show where the time goes.")
    ] = True,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Of iree-cpu: layers by fewbit's own kernels.")
    ] = False,
    input_shape: InputShape = None,
    calibrate: CalibrateData = None,
    calibration_method: OptionalMethod = None,
    samples: Samples = None,
    keep_batch_norm: KeepBatchNorm = False,
    shape: Annotated[
        str | None,
        typer.Option(
            help="Of conv2d -t cuda: n32,56x56,64,64,k3[,s2][,p0][,d2][,g4];"
            " of attention: 32x12x197x64[,causal]."
        ),
    ] = None,
    projections: Annotated[
        bool, typer.Option("--projections", help="Of attention -t cuda: with its products.")
    ] = False,
    variants: Annotated[str, typer.Option(help="Of conv2d -t cuda: all, or naive,mma,...")] = "all",
    dtype: Annotated[
        str, typer.Option(help="Of conv2d -t cuda: f32, tf32, f16, bf16, i8.")
    ] = "f16",
    layout: Annotated[str, typer.Option(help="Of conv2d -t cuda: nhwc or nchw.")] = "nhwc",
    modules: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Of conv2d -t cuda: keep IREE's compiled modules there."),
    ] = None,
) -> None:
    """Measure a model beside other tools, and show the share of each layer."""
    if (model, target) == ("conv2d", "cuda"):
        from fewbit.bench.gpu.ladder import bench_conv2d

        bench_conv2d(shape, variants, dtype, layout, as_json, modules)
        return
    if (model, target) == ("attention", "cuda"):
        from fewbit.bench.gpu.attention_ladder import bench_attention

        bench_attention(shape, dtype, projections, as_json)
        return
    from fewbit.bench.contest import check_threads
    from fewbit.bench.peers import NONE, parse_peers, refuse_missing
    from fewbit.targets.compile import check_target

    given = {"kernels": True} if kernels else {}
    check_target(target, **given)
    counts = _counts(threads)
    for count in counts:
        check_threads(count)
    peers = parse_peers(against or DEFAULT_PEERS, recipe is not None)

    from fewbit.base.progress import progress
    from fewbit.bench.report import Plan, measure
    from fewbit.bench.subject import OUR_SAMPLES, find_subject

    with progress(f"Importing {model}"):
        subject = find_subject(model, parse_shapes(input_shape), batch)
    if subject.module is None and peers:
        if against is not None and against != "available":
            raise UsageError(
                "other tools run PyTorch models, and this is a program",
                hint=f"leave out --against, or name {NONE}",
            )
        peers = []
    options = CalibrationOptions(calibrate, calibration_method, samples, keep_batch_norm)
    program = options.quantize(subject.program, recipe, subject.random_samples(OUR_SAMPLES))
    if program.recipe is not None:
        refuse_missing(peers, True)
    plan = Plan(program.recipe, target, tuple(peers), counts, seconds, layers, given)
    report = measure(subject, program, plan, options.inputs(subject.program) if calibrate else None)
    _write(report, as_json)
    if as_json != "-":
        print_report(report)


def _counts(text: str) -> tuple[int, ...]:
    try:
        counts = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        raise UsageError(f"'{text}' is no list of numbers of threads", hint="write 1 or 1,2")
    return counts


def _write(report: Report, to: str | None) -> None:
    if to is None:
        return
    text = json_text(report.plain(), indent=2) + "\n"
    if to == "-":
        print(text, end="")
        return
    from fewbit.base.files import replacing_file

    with replacing_file(Path(to)) as file:
        file.write(text.encode())


def print_report(report: Report) -> None:
    """Tables on the console."""
    from rich.console import Console

    console = Console()
    console = Console(width=None if console.is_terminal else WIDTH)
    target = " ".join([report.target, *(f"--{name}" for name in report.options)])
    what = f"{report.model}, {report.recipe or 'float32'}, {target}"
    console.print(f"{what}, {', '.join(report.inputs)}", highlight=False)
    for times in report.times:
        console.print(_times_table(times))
        for tool, why in times.absent.items():
            console.print(f"{tool}: {why}", markup=False, highlight=False)
    sizes = report.sizes
    console.print(
        f"weights {sizes.weights:,} B, library {sizes.library:,} B; "
        f"as float32 {sizes.float32:,} B ({sizes.weights / max(sizes.float32, 1):.3f})",
        highlight=False,
    )
    if report.layers:
        console.print(_layer_table(report))


def _times_table(times: Times) -> Table:
    from rich.table import Table

    clock = "processor time, 1 thread" if times.threads == 1 else f"{times.threads} threads"
    table = Table(title=clock, title_justify="left")
    for name in ("tool", "numbers"):
        table.add_column(name, overflow="fold")
    for name in ("least", "median", "per second", "ratio", "SQNR dB", "files"):
        table.add_column(name, justify="right")
    for row in times.tools:
        table.add_row(
            row.tool,
            row.variant,
            _time(row.least),
            _time(row.median),
            f"{row.throughput:,.0f}" if row.throughput >= 10 else f"{row.throughput:.2f}",
            f"{row.ratio:.2f}",
            "" if row.sqnr_db is None else f"{row.sqnr_db:.1f}",
            "" if not row.bytes else f"{row.bytes:,}",
        )
    return table


def _layer_table(report: Report) -> Table:
    from rich.table import Table

    count = report.layer_threads
    title = f"layers, {count} thread{'s' if count != 1 else ''}; time at best"
    table = Table(title=title, title_justify="left")
    for name in ("layer", "kernel"):
        table.add_column(name, overflow="fold")
    for name in ("time", "share", "MACs", "bytes", "of bound"):
        table.add_column(name, justify="right")
    for row in _layer_rows(report):
        table.add_row(*row)
    return table


def _layer_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for layer in report.layers:
        kernels = [k for k in layer.kernels if k != "loop"] or ["loop"]
        yield (
            layer.name,
            ", ".join(kernels),
            _time(layer.seconds),
            f"{layer.share:.1%}",
            f"{layer.macs:,}" if layer.macs else "",
            f"{layer.bytes:,}" if layer.bytes else "",
            f"{layer.achieved:.2f}",
        )


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3f} {unit}"
    return f"{seconds / 1e-6:.2f} us"
