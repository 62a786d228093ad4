"""Views: what there is to see of an artifact of a target, each a subcommand of `fewbit inspect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fewbit.program.artifact import Folder
from fewbit.targets.options import Options

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Seen:
    """What a view shows: the same as an object of JSON and for people."""

    plain: Mapping[str, object]
    shown: str | Table


@dataclass(frozen=True)
class View:
    """Something to see of a target's artifacts."""

    name: str
    help: str
    read: Callable[[Folder, Any], Seen]
    """Reads an artifact, with the options of the view."""
    options: type[Options] = Options


@dataclass(frozen=True)
class LayerModel:
    """What layers take on machines that there is a model of, before anything is compiled."""

    title: str
    """What the machines are, and with which software."""
    cycles: Mapping[str, Sequence[float]]
    """Cycles of each layer, by machine."""
    errors: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    """How far off these are on average, as fractions, where that is known."""
    energy: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    """Joules of each layer, by machine, where there is a model of them."""
