"""`fewbit inspect DIR`, of an artifact: what was compiled, and with `--asm` its instructions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.base.json_output import print_json
from fewbit.errors import UsageError
from fewbit.program.artifact import MANIFEST, Folder, open_folder

if TYPE_CHECKING:
    from fewbit.program.artifact import Tensor


def is_artifact(model: str) -> bool:
    manifest = Path(model) / MANIFEST
    return manifest.is_file() and '"fewbit-artifact"' in manifest.read_text("utf-8", "replace")


def show_artifact(model: str, asm: str | None, as_json: bool) -> None:
    """Print a summary of an artifact, or the assembly of some functions."""
    folder = open_folder(model)
    if asm is not None and not _is_vexii(folder):
        raise UsageError("--asm is for artifacts of the target vexii")
    if asm is not None:
        from fewbit.targets.vexii.listing import disassembly, instructions

        if as_json:
            print_json({"functions": instructions(folder, asm)})
        else:
            print(disassembly(folder, asm))
        return
    if as_json:
        print_json(_plain(folder))
        return
    print("\n".join(_summary(folder)))
    if _is_vexii(folder):
        print("\n".join(_functions(folder)))


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
    plain: dict[str, object] = {
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
    if _is_vexii(folder):
        from fewbit.targets.vexii.listing import functions_of

        plain["functions"] = [
            {"name": each.name, "instructions": len(each.words)} for each in functions_of(folder)
        ]
    return plain


def _plain_tensor(tensor: Tensor) -> dict[str, object]:
    return {"name": tensor.name, "shape": tensor.shape, "element": tensor.element}


def _is_vexii(folder: Folder) -> bool:
    return folder.manifest.target.partition(":")[0] == "vexii"


def _tensor(tensor: Tensor) -> str:
    sizes = "x".join("?" if size is None else str(size) for size in tensor.shape) or "scalar"
    return f"{tensor.name}: {sizes} {tensor.element}"


def _functions(folder: Folder) -> list[str]:
    from fewbit.targets.device_report import table
    from fewbit.targets.vexii.listing import functions_of

    rows = [(each.name, f"{len(each.words):,}") for each in functions_of(folder)]
    return ["", table(("function", "instructions"), rows)]
