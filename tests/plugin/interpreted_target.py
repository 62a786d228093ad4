"""A target outside the tree: programs with kernel ops, saved as they are and run by the interpreter.

All that a target says of itself is here: its options, its pipeline, what passes must know, what it
writes, what runs that, and what there is to see of it. `fewbit compile -t interpreted`, `--stop-after`,
`fewbit run`, `fewbit inspect program` and `fewbit doctor` know it by the entry point in
`pyproject.toml`, and `--note` is an option of `fewbit compile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline, Stage
from fewbit.program.artifact import Folder, Manifest, Tensor, write_folder
from fewbit.program.program import MANIFEST, WEIGHTS, Program
from fewbit.program.program import TEXT as TEXT_FILE
from fewbit.targets.options import TEXT, Options, option
from fewbit.targets.target import Request, Target
from fewbit.targets.view import Seen, View

PARTS = (TEXT_FILE, WEIGHTS, MANIFEST)
PREFIX = "program-"
"""An artifact has a manifest of its own, beside that of the program in it."""


@dataclass(frozen=True)
class InterpretedOptions(Options):
    note: str | None = option(TEXT, "A remark that the manifest keeps.", metavar="TEXT")


def _text(folder: Folder, _: Options) -> Seen:
    text = folder.file(f"{PREFIX}{TEXT_FILE}").read_text(encoding="utf-8")
    return Seen({"text": text}, text)


class Interpreted(Target):
    about = "a program with kernel ops, interpreted"
    options = InterpretedOptions
    views = (View("program", "The text of an artifact's program.", _text),)

    def pipeline(self, request: Request) -> Pipeline:
        return Pipeline((Stage("mico"), Stage("kernel", ("inline", "select-kernels", "cse"))))

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        return ()

    def check(self, request: Request) -> None: ...

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        signature, note = program.signature, InterpretedOptions.of(request).note
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
                    options={} if note is None else {"note": note},
                    files={},
                ),
                {f"{PREFIX}{name}": Path(folder) / "program" / name for name in PARTS}
                | dict(request.files),
            )

    def load(self, folder: Folder) -> Any:
        with TemporaryDirectory() as temporary:
            for name in PARTS:
                Path(temporary, name).write_bytes(folder.file(f"{PREFIX}{name}").read_bytes())
            return Program.load(temporary).run
