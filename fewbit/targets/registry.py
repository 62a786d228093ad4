"""All targets by name, each imported when it is first asked for.

Ours are listed here, so that a tree works that is not installed; those of other packages come by
the entry points of the group `fewbit.targets`, whose values are classes derived from `Target`.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points

from fewbit.base.plugins import make_from
from fewbit.errors import Error, UsageError
from fewbit.targets.target import Request, Target

GROUP = "fewbit.targets"
OURS = {
    "cpu": "fewbit.targets.cpu.target:Cpu",
    "cuda": "fewbit.targets.cuda.target:Cuda",
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


def target_names() -> tuple[str, ...]:
    """Ours, then those of other packages."""
    return tuple(_places(tuple(sys.path)))


def find_target(text: str) -> Target:
    """The target that `cpu`, `cpu:riscv64` or `iree-cuda:sm_89` names."""
    places, name = _places(tuple(sys.path)), text.partition(":")[0]
    if name not in places:
        raise UsageError(f"there is no target '{text}'", hint=f"targets: {', '.join(places)}")
    return _make(places[name])


def check(request: Request) -> Target:
    """The target of a request, which it takes with all options."""
    target = find_target(request.target)
    for option in request.options:
        if option not in target.options:
            taken = ", ".join(sorted(target.options))
            raise UsageError(
                f"the target '{request.target}' has no option '{option}'",
                hint=f"it has {taken}" if taken else None,
            )
    for stage in request.passes:
        target.check_insertable(stage)
    target.check(request)
    return target


@cache
def _places(path: tuple[str, ...]) -> dict[str, str]:
    """Where the class of each target is; what is installed is read once for a search path."""
    places = dict(OURS)
    for point in entry_points(group=GROUP):
        if places.setdefault(point.name, point.value) != point.value:
            raise Error(
                f"two packages have a target '{point.name}'",
                hint=f"uninstall the one that registers {point.value}",
            )
    return places


@cache
def _make(place: str) -> Target:
    return make_from(place, "target")
