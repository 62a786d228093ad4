"""TensorFlow: the folders of SavedModels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewbit.errors import UsageError
from fewbit.frontends.frontend import Frontend, Given, packages_of
from fewbit.program.program import Program


class TensorFlow(Frontend):
    takes_sizes = True

    def takes(self, model: Any) -> bool:
        return "tensorflow" in packages_of(model)

    def import_object(self, model: Any, given: Given) -> Program:
        raise UsageError(
            "TensorFlow's models are imported from files",
            hint="save it with tf.saved_model.save(model, 'folder') and give the folder's name",
        )

    def reads(self, path: Path) -> bool:
        from fewbit.frontends.tensorflow import is_saved_model

        return path.is_dir() and is_saved_model(path)

    def import_file(self, path: Path, given: Given) -> Program:
        from fewbit.frontends.tensorflow import import_saved_model

        return import_saved_model(path, given.sizes)
