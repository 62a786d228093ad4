"""All targets by name, each imported when it is first asked for.

Ours are listed here, so that a tree works that is not installed; those of other packages come by
the entry points of the group `fewbit.targets`, whose values are classes derived from `Target`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from fewbit.base.plugins import make_from
from fewbit.base.progress import say
from fewbit.base.target_name import TargetName
from fewbit.errors import Error, UsageError
from fewbit.targets.options import Options
from fewbit.targets.target import Request, Target

GROUP = "fewbit.targets"
OURS = {
    "cpu": "fewbit.targets.cpu.target:Cpu",
    "cuda": "fewbit.targets.cuda.target:Cuda",
    "mcu": "fewbit.targets.mcu.target:Mcu",
    "wasm": "fewbit.targets.wasm.target:Wasm",
    "vexii": "fewbit.targets.vexii.target:Vexii",
    "gemmini": "fewbit.targets.gemmini.target:Gemmini",
    "bitfusion": "fewbit.targets.bitfusion.target:BitFusion",
    "iree-cpu": "fewbit.targets.iree.target:Iree",
    "iree-cuda": "fewbit.targets.iree.target:Iree",
    "iree-vulkan": "fewbit.targets.iree.target:Iree",
    "iree-rocm": "fewbit.targets.iree.target:Iree",
    "iree-metal": "fewbit.targets.iree.target:Iree",
}
"""Where each is. What follows a colon, as in `cpu:riscv64`, is the target's own matter."""
COMPOSED = "placed"
"""The target of artifacts with parts for several targets; it comes of a placement, by no name."""
_COMPOSED_PLACE = "fewbit.targets.placed.target:Placed"
DEFAULT_TARGET = "cpu"
"""What programs are compiled for where nothing is said: this machine."""
DEFAULT_TUNED = "iree-cpu"
"""What `fewbit tune` tunes for where no target is given."""


def target_names() -> tuple[str, ...]:
    """Return the names of ours, then those of other packages."""
    return tuple(_places(tuple(sys.path)))


def find_target(text: str) -> Target:
    """Return the target that `cpu`, `cpu:riscv64` or `iree-cuda:sm_89` names."""
    places, name = _places(tuple(sys.path)), TargetName.parse(text).kind
    if text == COMPOSED:
        return _make(name, _COMPOSED_PLACE)
    if name not in places:
        raise UsageError(f"there is no target '{text}'", hint=f"targets: {', '.join(places)}")
    return _make(name, places[name])


def all_targets() -> list[Target]:
    """Return every target; of those of other packages, the ones that can be loaded."""
    targets: list[Target] = []
    for name in target_names():
        try:
            targets.append(find_target(name))
        except Error as e:
            say(f"warning: {e.what}")
    return targets


def make_options(target: str, given: Mapping[str, Any]) -> Options:
    """Return what was given by name, checked, as the options of a target."""
    return find_target(target).options.check(given, target)


def check(request: Request) -> Target:
    """Return the target of a request, which it takes with its passes and all options."""
    target = find_target(request.target)
    for stage in request.passes:
        target.check_insertable(stage)
    target.check(request)
    return target


def shorten(names: Iterable[str]) -> str:
    """Return target names as a list for people; those of one class are a family, `iree-*`."""
    places, wanted = _places(tuple(sys.path)), list(names)
    words: list[str] = []
    for name in wanted:
        family = [other for other in places if places[other] == places[name]]
        whole = len(family) > 1 and set(family) <= set(wanted)
        words.append(f"{name.rpartition('-')[0]}-*" if whole else name)
    return ", ".join(dict.fromkeys(words))


@cache
def _places(path: tuple[str, ...]) -> dict[str, str]:
    """Return where each target's class is; entry points are read once for a search path."""
    places = dict(OURS)
    for point in entry_points(group=GROUP):
        if places.setdefault(point.name, point.value) != point.value:
            raise Error(
                f"two packages have a target '{point.name}'",
                hint=f"uninstall the one that registers {point.value}",
            )
    return places


@cache
def _make(name: str, place: str) -> Target:
    return make_from(place, "target", name)
