"""`fewbit inspect layers MODEL`: a table of layers, and what quantization does to each."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.base.console import short, wide_console
from fewbit.base.json_output import print_json
from fewbit.cli import layer_cost
from fewbit.cli.artifact import is_artifact, show_artifact
from fewbit.cli.calibration import CalibrationOptions
from fewbit.cli.options import (
    AsJson,
    Batch,
    CalibrateData,
    Constants,
    InputShape,
    KeepBatchNorm,
    ModelName,
    OptionalMethod,
    OptionalRecipe,
    Samples,
    Strict,
    parse_constants,
    parse_shapes,
)

if TYPE_CHECKING:
    from fewbit.cost.layers import LayerReport


MEASURED = 32
"""Samples on which noise is measured where `--samples` does not say: the interpreter runs them."""


def inspect_layers(
    model: ModelName,
    recipe: OptionalRecipe = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="Predict the time of each layer, at each width.")
    ] = False,
    cycles: Annotated[
        bool,
        typer.Option("--cycles", help="Estimate cycles of each layer on hardware with a model."),
    ] = False,
    threads: Annotated[
        int, typer.Option("--threads", min=1, help="With --cost: threads that share a layer.")
    ] = 1,
    batch: Batch = 1,
    as_json: AsJson = False,
    input_shape: InputShape = None,
    constant: Constants = None,
    calibrate: CalibrateData = None,
    calibration_method: OptionalMethod = None,
    samples: Samples = None,
    keep_batch_norm: KeepBatchNorm = False,
    strict: Strict = False,
) -> None:
    """Show a model's layers: shapes, bits, parameters, bytes, MACs, BOPs and SQNR."""
    if is_artifact(model):
        show_artifact(model, as_json)
        return
    from fewbit.cost.layers import made_up_inputs, report_layers
    from fewbit.frontends import import_model
    from fewbit.quant.weights import float_weights

    shapes, constants = parse_shapes(input_shape), parse_constants(constant)
    program = import_model(model, input_shapes=shapes, constants=constants)
    options = CalibrationOptions(
        calibrate, calibration_method, samples, keep_batch_norm, strict, measures=True
    )
    quantized = options.quantize(program, recipe)
    reference = None if recipe is None else options.fold(program)
    measured = replace(options, samples=samples or MEASURED)
    pieces = measured.inputs(program) if measured.has_samples else [made_up_inputs(program)]
    layers = report_layers(quantized, pieces[0], reference, pieces[1:])
    plain: dict[str, object] = {
        "model": model,
        "recipe": recipe or program.recipe,
        "layers": [_plain(r) for r in layers],
    }
    floats = float_weights(quantized)
    plain["float_weights"] = None if floats is None else floats.model_dump()
    if not as_json:
        print_layers(layers, f"{model}, {recipe or program.recipe or 'float'}")
        if floats is not None:
            print(floats)
    if cost:
        from fewbit.cost.cpu import layer_times, load_calibration

        calibration = load_calibration()
        sized = made_up_inputs(program, dynamic=batch)
        times = layer_times(quantized, sized, threads=threads, calibration=calibration)
        plain["cost"] = layer_cost.plain_times(times, calibration, threads)
        if not as_json:
            layer_cost.print_times(times, calibration, threads, wide_console())
    if cycles:
        from fewbit.cli import layer_cycles

        rows = layer_cycles.estimate(quantized, made_up_inputs(program, dynamic=batch))
        plain["cycles"] = layer_cycles.plain(rows)
        if not as_json:
            layer_cycles.show(rows, wide_console())
    if as_json:
        print_json(plain)


def _plain(layer: LayerReport) -> dict[str, object]:
    return {
        "name": layer.name,
        "op": layer.op,
        "weight_shape": layer.weight_shape,
        "output_shape": layer.output_shape,
        "weight_bits": None if layer.weight is None else layer.weight.precision,
        "act_bits": None if layer.act is None else layer.act.precision,
        "parameters": layer.parameters,
        "bytes": layer.bytes,
        "macs": layer.macs,
        "bops": layer.bops,
        "sqnr_db": layer.sqnr,
        "exact": None if layer.sqnr is None else layer.sqnr == inf,
    }


def print_layers(layers: list[LayerReport], title: str) -> None:
    """Print a table of layers on the console."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("layer", overflow="fold")
    for name in ("weight", "output", "w", "a", "params", "bytes", "MACs", "BOPs", "SQNR dB"):
        table.add_column(name, justify="right")
    for layer in layers:
        table.add_row(
            layer.name,
            "x".join(map(str, layer.weight_shape)),
            "x".join(map(str, layer.output_shape)),
            str(layer.weight or "fp"),
            str(layer.act or "fp"),
            f"{layer.parameters:,}",
            f"{layer.bytes:,}",
            short(layer.macs),
            short(layer.bops),
            "" if layer.sqnr is None else f"{layer.sqnr:.1f}",
        )
    table.add_section()
    table.add_row(
        f"{len(layers)} layers",
        *[""] * 4,
        f"{sum(r.parameters for r in layers):,}",
        f"{sum(r.bytes for r in layers):,}",
        short(sum(r.macs for r in layers)),
        short(sum(r.bops for r in layers)),
        "",
    )
    wide_console().print(table)
