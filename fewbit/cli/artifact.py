"""`fewbit inspect artifact DIR`: what was compiled; and the views of it that its target has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.base.console import wide_console
from fewbit.base.json_output import print_json
from fewbit.cli.options import AsJson
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.program.artifact import Folder, Tensor
    from fewbit.targets.view import Seen

ArtifactFolder = Annotated[str, typer.Argument(help="The folder that 'fewbit compile' wrote.")]


def is_artifact(model: str) -> bool:
    from fewbit.program.artifact import MANIFEST

    manifest = Path(model) / MANIFEST
    return manifest.is_file() and '"fewbit-artifact"' in manifest.read_text("utf-8", "replace")


def show_artifact(artifact: ArtifactFolder, as_json: AsJson = False) -> None:
    """Sum up what was compiled: inputs, outputs, sizes, files."""
    from fewbit.program.artifact import open_folder
    from fewbit.targets.registry import find_target

    folder = open_folder(artifact)
    more = find_target(folder.manifest.target).summarize(folder)
    if as_json:
        print_json({**_plain(folder), **(more.plain if more else {})})
        return
    print("\n".join(_summary(folder)))
    if more is not None:
        print()
        _show(more)


def show_view(name: str, artifact: str, given: Mapping[str, Any], as_json: bool) -> None:
    """Show what the artifact's target has under that name."""
    from fewbit.program.artifact import open_folder
    from fewbit.targets.registry import all_targets, find_target, shorten

    folder = open_folder(artifact)
    chosen = next(
        (view for view in find_target(folder.manifest.target).views if view.name == name), None
    )
    if chosen is None:
        with_it = [each.name for each in all_targets() if name in {v.name for v in each.views}]
        raise UsageError(
            f"{artifact} has no {name}: it is for the target '{folder.manifest.target}'",
            hint=f"{name} is for artifacts of the targets {shorten(with_it)}",
        )
    seen = chosen.read(folder, chosen.options.check(given, name))
    print_json(seen.plain) if as_json else _show(seen)


def _show(seen: Seen) -> None:
    if isinstance(seen.shown, str):
        print(seen.shown)
    else:
        wide_console().print(seen.shown)


def _summary(folder: Folder) -> list[str]:
    manifest = folder.manifest
    lines = [
        f"{manifest.name}, for {manifest.target}, {manifest.recipe or 'float'}, "
        f"by fewbit {manifest.compiler}"
    ]
    lines += [f"  input {_tensor(tensor)}" for tensor in manifest.inputs]
    lines += [f"  output {_tensor(tensor)}" for tensor in manifest.outputs]
    arena = manifest.arena_bytes
    memory = "depends on shapes" if arena is None else f"{arena:,} B"
    lines.append(f"  weights {manifest.weight_bytes:,} B, arena {memory}")
    if manifest.float_weights is not None:
        lines.append(f"  {manifest.float_weights}")
    for name in manifest.files:
        lines.append(f"  {name} {(folder.path / name).stat().st_size:,} B")
    return lines


def _plain(folder: Folder) -> dict[str, object]:
    manifest = folder.manifest
    return {
        "name": manifest.name,
        "target": manifest.target,
        "recipe": manifest.recipe,
        "compiler": manifest.compiler,
        "inputs": [_plain_tensor(tensor) for tensor in manifest.inputs],
        "outputs": [_plain_tensor(tensor) for tensor in manifest.outputs],
        "weight_bytes": manifest.weight_bytes,
        "arena_bytes": manifest.arena_bytes,
        "files": {name: (folder.path / name).stat().st_size for name in manifest.files},
    }


def _plain_tensor(tensor: Tensor) -> dict[str, object]:
    return {"name": tensor.name, "shape": tensor.shape, "element": tensor.element}


def _tensor(tensor: Tensor) -> str:
    sizes = "x".join("?" if size is None else str(size) for size in tensor.shape) or "scalar"
    return f"{tensor.name}: {sizes} {tensor.element}"
