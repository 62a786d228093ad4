"""`fewbit inspect loops MODEL`: the loop nests of a program, or of what IREE dumped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.base.console import short, wide_console
from fewbit.base.json_output import print_json
from fewbit.cli.options import (
    AsJson,
    Batch,
    InputShape,
    ModelName,
    OptionalRecipe,
    parse_shapes,
)

if TYPE_CHECKING:
    from fewbit.cost.loops import LoopNest
    from fewbit.cost.loops.programs import Source
    from fewbit.frontends import Shapes


def inspect_loops(
    model: ModelName,
    recipe: OptionalRecipe = None,
    input_shape: InputShape = None,
    batch: Batch = 1,
    as_json: AsJson = False,
) -> None:
    """Show the loop nests of a model, of a file that IREE dumped, or of a folder of them."""
    sources = _sources(model, recipe, parse_shapes(input_shape), batch)
    if as_json:
        print_json({"model": model, "sources": [_plain(source) for source in sources]})
        return
    from rich.table import Table

    table = Table(title=f"{model}, loop nests", title_justify="left")
    for name in ("where", "kind", "loops", "operands"):
        table.add_column(name, overflow="fold")
    for name in ("MACs", "ops", "bytes", "tiles", "into L1", "into L2"):
        table.add_column(name, justify="right")
    count = 0
    for source in sources:
        for nest in source.listing.nests:
            count += 1
            tile, levels = best_levels(nest)
            table.add_row(
                nest.layer or source.name,
                nest.shape_class,
                _loops(nest),
                " ".join(
                    f"{a.element if _same(a) else f'{a.element}/{a.bits}'}" for a in nest.accesses
                ),
                short(nest.macs) if nest.macs else "",
                short(nest.operations),
                short(nest.bytes),
                tile,
                *(short(b) for b in levels[:2]),
            )
        for other in source.listing.unmodelled:
            table.add_row(other.layer or source.name, other.op, other.reason)
    others = sum(len(source.listing.unmodelled) for source in sources)
    table.add_section()
    table.add_row(f"{count} nests", f"{others} without")
    wide_console().print(table)


def best_levels(nest: LoopNest) -> tuple[str, list[int]]:
    """Return the tile that our model likes best here, and what it moves into each cache."""
    from fewbit.cost.hardware.host import host
    from fewbit.cost.loops.traffic import bytes_at_levels
    from fewbit.tune.analytic import Analytic
    from fewbit.tune.model import best
    from fewbit.tune.space import schedules

    small, _ = nest.without_units()
    ranked = best(Analytic(host()), small, schedules(small, host()), 1)
    if not ranked:
        return "", [nest.bytes, nest.bytes]
    chosen = ranked[0]
    return str(chosen), bytes_at_levels(small, [chosen.vector, chosen.distribution])


def _sources(model: str, recipe: str | None, shapes: Shapes | None, dynamic: int) -> list[Source]:
    from fewbit.cost.loops.programs import Source, list_path
    from fewbit.targets.registry import DEFAULT_TUNED
    from fewbit.tune.tuner import find_tuner

    path = Path(model)
    if recipe is None and (_is_dump(path) or (path.is_dir() and _dumps(path))):
        return list_path(path, dynamic)
    from fewbit.frontends import import_model
    from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
    from fewbit.quant.quantize import quantize

    program = import_model(model, input_shapes=shapes)
    if recipe is not None:
        program = quantize(fold_batch_norm(program), recipe)
    return [Source(model, find_tuner(DEFAULT_TUNED).list_loops(program, dynamic))]


def _is_dump(path: Path) -> bool:
    from fewbit.targets.registry import DEFAULT_TUNED, find_target

    return path.is_file() and find_target(DEFAULT_TUNED).reads(path)


def _dumps(path: Path) -> bool:
    return any(map(_is_dump, path.glob("*.mlir")))


def _loops(nest: LoopNest) -> str:
    parts = [
        "x".join(
            f"{nest.extents[i]}{'?' if nest.loops[i].dynamic else ''}" for i in nest.of_kind(kind)
        )
        for kind in ("parallel", "reduction")
    ]
    return " sum ".join(part for part in parts if part)


def _same(access: object) -> bool:
    bits, element = getattr(access, "bits", 0), getattr(access, "element", "")
    return str(bits) in element


def _plain(source: Source) -> dict[str, object]:
    return {
        "name": source.name,
        "nests": [_plain_nest(nest) for nest in source.listing.nests],
        "unmodelled": [vars(other) for other in source.listing.unmodelled],
    }


def _plain_nest(nest: LoopNest) -> dict[str, object]:
    tile, levels = best_levels(nest)
    return {
        "op": nest.name,
        "kind": nest.shape_class,
        "layer": nest.layer,
        "loops": [{"extent": e.extent, "kind": e.kind, "dynamic": e.dynamic} for e in nest.loops],
        "operands": [
            {"role": a.role, "element": a.element, "bits": a.bits, "shape": a.shape}
            for a in nest.accesses
        ],
        "macs": nest.macs,
        "operations": nest.operations,
        "bytes": nest.bytes,
        "tiles": tile,
        "bytes_into_l1": levels[0],
        "bytes_into_l2": levels[1],
        "signature": nest.signature,
    }
