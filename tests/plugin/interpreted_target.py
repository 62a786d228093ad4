"""A target outside the tree: programs with kernel ops, saved as they are and run by the interpreter.

All that a target says of itself is here: its pipeline, what passes must know, what it writes, and
what runs that. `fewbit compile -t interpreted`, `--stop-after`, `fewbit run` and `fewbit doctor` know
it by the entry point in `pyproject.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline, Stage
from fewbit.program.artifact import Folder, Manifest, Tensor, write_folder
from fewbit.program.program import MANIFEST, TEXT, WEIGHTS, Program
from fewbit.targets.target import Request, Target

PARTS = (TEXT, WEIGHTS, MANIFEST)
PREFIX = "program-"
"""An artifact has a manifest of its own, beside that of the program in it."""


class Interpreted(Target):
    options = frozenset()

    def pipeline(self, request: Request) -> Pipeline:
        return Pipeline((Stage("mico"), Stage("kernel", ("inline", "select-kernels", "cse"))))

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        return ()

    def check(self, request: Request) -> None: ...

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        signature = program.signature
        tensors = [
            [Tensor(name=s.name, shape=s.shape or (), element=s.element) for s in specs]
            for specs in (signature.inputs, signature.outputs)
        ]
        with TemporaryDirectory() as folder:
            made.program.save(Path(folder) / "program")
            return write_folder(
                output,
                Manifest(
                    name=request.name,
                    target=request.target,
                    compiler="fixed-point-dialect",
                    inputs=tuple(tensors[0]),
                    outputs=tuple(tensors[1]),
                    recipe=program.recipe,
                    weight_bytes=0,
                    files={},
                ),
                {f"{PREFIX}{name}": Path(folder) / "program" / name for name in PARTS},
            )

    def load(self, folder: Folder) -> Any:
        with TemporaryDirectory() as temporary:
            for name in PARTS:
                Path(temporary, name).write_bytes(folder.file(f"{PREFIX}{name}").read_bytes())
            return Program.load(temporary).run
