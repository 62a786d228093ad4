"""`fewbit run DIR --input x.npy`: what a program gives for some inputs.

DIR is an artifact, which runs as compiled code (that for another kind of processor in qemu), or a
saved program or its text, which is interpreted. Inputs are files of numpy, or arrays in IREE's
words, `4xf32=1,2,3,4`; a language model takes `--prompt` instead, and prints text. Results are
summed up on standard output, or written whole with `--output`; those of modules that IREE compiled
of plain MLIR are printed as iree-run-module does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.base.json_output import print_json
from fewbit.cli.prompt import Chat, PromptOptions, PromptText, Seed, Temperature, Tokens, TopP
from fewbit.cli.run_report import plain_output, summary
from fewbit.cli.runnable import Port, Runnable, check_shapes, open_runnable, read_inputs
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.program.tensor_file import Array


def run_program(
    program: Annotated[
        Path,
        typer.Argument(
            help="An artifact's folder, a saved program's folder, program.mlir, or model.onnx."
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="A .npy file or 2x2xf32=1,2,3,4 for each input in order, or one .npz with all.",
        ),
    ] = None,
    random: Annotated[
        bool, typer.Option("--random", help="Random inputs; sizes not known are 1.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to .npy (one output) or .npz (all, by name)."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="How many threads; 1 if not given.")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option("--variant", help="Of a library for several processors, run this one's code."),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option("--function", help="Of a module with several functions, run this one."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", help="Of IREE: a driver, local-sync or vulkan, or an address; see doctor."
        ),
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, help="Run this often, and show times.")
    ] = None,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats",
            help="Of simulated hardware: what was counted, and estimated cycles; of a program on "
            "several devices: its parts and transfers. Without inputs, random ones.",
        ),
    ] = False,
    prompt: PromptText = None,
    chat: Chat = False,
    tokens: Tokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run an artifact, or interpret a program, on inputs from files; or go on with a text."""
    asked = PromptOptions(chat, tokens, temperature, top_p, seed)
    if prompt is not None:
        others = {"--input": inputs, "--random": random, "--output": output, "--repeat": repeat}
        others |= {"--function": function, "--device": device, "--stats": stats}
        asked.refuse_others([name for name, value in others.items() if value])
        asked.run(program, prompt, threads, variant, as_json)
        return
    asked.refuse_without_prompt()
    _check_output(output)
    how = {"threads": threads, "variant": variant, "function": function, "device": device}
    runnable = open_runnable(
        program, {name: value for name, value in how.items() if value is not None}
    )
    if stats and runnable.stats is None:
        from fewbit.targets.registry import all_targets

        simulated = [f"-t {target.name}" for target in all_targets() if target.is_simulated]
        raise UsageError(
            "--stats is for artifacts of simulated hardware, and of programs on several devices",
            hint=f"compile for such a target: {', '.join(simulated)}; or with --place",
        )
    arrays = read_inputs(runnable, inputs or [], random or (stats and not inputs))
    check_shapes(runnable, arrays)
    results = runnable.run(arrays)
    if output is not None:
        _write(output, runnable.outputs, results)
    if as_json:
        print_json(_plain(runnable, arrays, results, stats, repeat))
        return
    if output is None:
        print(_format_results(runnable, results))
    if stats and runnable.stats is not None:
        print(f"\n{runnable.stats()}")
    if repeat is not None:
        minimum, middle = _time(runnable, arrays, repeat)
        print(f"{repeat} runs: minimum {minimum * 1e3:.3f} ms, median {middle * 1e3:.3f} ms")


def _check_output(path: Path | None) -> None:
    if path is not None and path.suffix not in (".npy", ".npz"):
        raise UsageError(f"'{path}' is neither .npy nor .npz")


def _write(path: Path, ports: Sequence[Port], arrays: Sequence[Array]) -> None:
    import numpy as np

    from fewbit.base.files import replacing_file

    if path.suffix == ".npy" and len(arrays) != 1:
        raise UsageError(
            f"the program gives {len(arrays)} outputs, and .npy holds one",
            hint=f"write them to {path.with_suffix('.npz')}",
        )
    with replacing_file(path) as file:
        if path.suffix == ".npy":
            np.save(file, arrays[0])
        else:
            named: dict[str, Any] = {p.name: a for p, a in zip(ports, arrays, strict=True)}
            np.savez(file, **named)


def _format_results(runnable: Runnable, results: Sequence[Array]) -> str:
    if runnable.shown is not None:
        return runnable.shown(results)
    pairs = zip(runnable.outputs, results, strict=True)
    return "\n".join(summary(port.name, array) for port, array in pairs)


def _plain(
    runnable: Runnable,
    arrays: Sequence[Array],
    results: Sequence[Array],
    stats: bool,
    repeat: int | None,
) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "outputs": [
            plain_output(port.name, array)
            for port, array in zip(runnable.outputs, results, strict=True)
        ]
    }
    if stats and runnable.plain_stats is not None:
        plain["stats"] = runnable.plain_stats()
    if repeat is not None:
        minimum, middle = _time(runnable, arrays, repeat)
        plain["runs"] = {"count": repeat, "least_seconds": minimum, "median_seconds": middle}
    return plain


def _time(runnable: Runnable, arrays: Sequence[Array], count: int) -> tuple[float, float]:
    """Return the minimum and the median time of a run, in seconds."""
    from fewbit.base.progress import progress

    seconds: list[float] = []
    with progress("Running", count) as step:
        for _ in range(count):
            start = perf_counter()
            runnable.run(arrays)
            seconds.append(perf_counter() - start)
            step()
    return min(seconds), median(seconds)
