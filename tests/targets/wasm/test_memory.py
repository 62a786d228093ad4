from __future__ import annotations

import pytest

from fewbit.codegen.interface import Port
from fewbit.errors import UnsupportedError
from fewbit.targets.wasm.memory import LINE, STACK_BYTES, map_memory

X, Y = Port("x", (3, 5), "f32", 4), Port("y", (), "i8", 1)


def test_nothing_overlaps() -> None:
    places = map_memory(100, [X], [Y], 1000)
    assert places.weights == STACK_BYTES
    assert places.inputs == (STACK_BYTES + 128,)
    assert places.outputs == (STACK_BYTES + 192,)
    assert places.arena == STACK_BYTES + 256
    assert places.end == STACK_BYTES + 256 + 1024
    assert places.end % LINE == 0


def test_too_much_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"needs 3,\d+,\d+,\d+ bytes of memory") as e:
        map_memory(3 << 30, [X], [Y], 0)
    assert "w4a8" in (e.value.hint or "")
