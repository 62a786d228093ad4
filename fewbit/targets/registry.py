"""All targets by name, each imported when it is first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from fewbit.errors import UsageError
from fewbit.targets.target import Request, Target

TARGETS = {
    "cpu": "fewbit.targets.cpu.target:Cpu",
    "cuda": "fewbit.targets.cuda.target:Cuda",
    "iree-cpu": "fewbit.targets.iree.target:Iree",
    "iree-cuda": "fewbit.targets.iree.target:Iree",
    "iree-vulkan": "fewbit.targets.iree.target:Iree",
    "iree-rocm": "fewbit.targets.iree.target:Iree",
    "iree-metal": "fewbit.targets.iree.target:Iree",
}
"""Where each is. What follows a colon, as in `cpu:riscv64`, is the target's own matter."""


def find_target(text: str) -> Target:
    """The target that `cpu`, `cpu:riscv64` or `iree-cuda:sm_89` names."""
    name = text.partition(":")[0]
    if name not in TARGETS:
        raise UsageError(f"there is no target '{text}'", hint=f"targets: {', '.join(TARGETS)}")
    return _make(TARGETS[name])


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
def _make(place: str) -> Target:
    module, _, kind = place.partition(":")
    return getattr(import_module(module), kind)()
