"""The artifact of a program that was compiled to a bare-metal executable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fewbit import __version__
from fewbit.artifact import Folder, Manifest, write_folder
from fewbit.targets.cpu.described import described_port, described_weight
from fewbit.targets.target import Request
from fewbit.targets.vexii.compilation import VexiiCompilation
from fewbit.targets.vexii.simulate import PROGRAM


def write_program(
    made: VexiiCompilation,
    recipe: str | None,
    request: Request,
    output: Path,
    files: Mapping[str, bytes],
) -> Folder:
    """Write the executable, and `files` beside it."""
    interface, weights = made.interface, made.weights
    manifest = Manifest(
        name=interface.name,
        target=request.target,
        compiler=__version__,
        inputs=tuple(map(described_port, interface.inputs)),
        outputs=tuple(map(described_port, interface.outputs)),
        recipe=recipe,
        arena_bytes=made.arena.static,
        weight_bytes=weights.nbytes,
        weights=tuple(map(described_weight, weights.entries)),
        float_weights=request.float_weights,
        options={"xlen": str(made.processor.xlen), "layers": ",".join(made.layer_functions)},
        files={},
    )
    return write_folder(output, manifest, {PROGRAM: made.executable(), **files})
