"""Language models by their checkpoints."""

from __future__ import annotations

from pathlib import Path

from fewbit.frontends.frontend import Frontend, Given
from fewbit.program.program import Program

MAGIC = b"GGUF"


class Language(Frontend):
    takes_context = True

    def reads(self, path: Path) -> bool:
        if path.is_dir():
            from fewbit.language.huggingface import is_checkpoint

            return is_checkpoint(path)
        if path.suffix == ".bin":
            from fewbit.language.mico_file import is_mico_file

            return is_mico_file(path)
        return path.suffix == ".gguf" and _begins_with_magic(path)

    def import_file(self, path: Path, given: Given) -> Program:
        from fewbit.frontends.language import import_language_model

        return import_language_model(
            path,
            given.context,
            given.cache,
            given.logits,
            given.sequences,
            steps=given.steps,
        )


def _begins_with_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
