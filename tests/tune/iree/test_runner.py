"""All workgroups of a dispatch are called in order, x first, as often as is asked."""

from __future__ import annotations

import ctypes
from itertools import product

from fewbit.tune.iree.runner import runner

DISPATCH = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)


def test_workgroups_are_called_in_order() -> None:
    calls: list[tuple[object, ...]] = []

    def dispatch(environment: int, state: int, group: int) -> int:
        x, y = (ctypes.c_uint32 * 2).from_address(group)
        z = ctypes.c_uint16.from_address(group + 8).value
        calls.append((environment, state, x, y, z))
        return 0

    function, group = DISPATCH(dispatch), (ctypes.c_uint64 * 8)()
    address = ctypes.cast(function, ctypes.c_void_p).value
    runner()(address, 8, 16, ctypes.addressof(group), 2, 3, 4, 2)
    once = [(8, 16, x, y, z) for z, y, x in product(range(4), range(3), range(2))]
    assert calls == 2 * once
