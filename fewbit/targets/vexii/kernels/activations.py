"""Matmuls of two matrices that a run computes: both are bytes, and are packed to panels.

Rows of the second, which become columns of the result, are packed first, as weights are beforehand;
then the matmul is that of a layer.
"""

from __future__ import annotations

from fewbit.kernels.emit import Function
from fewbit.targets.vexii.kernels.matmul import Code, matmul
from fewbit.targets.vexii.kernels.pack import CHUNK_BYTES, pack_rows
from fewbit.targets.vexii.layout import Layout

BYTES = 8


def matmul_activations(code: Code, k: int, n: int, m: int) -> tuple[Function, int]:
    """Return the matmul of m x k by n x k bytes, and the bytes of room that it needs.

    Its parameters are both matrices, the sums, and room. Rows have whole words: k is a multiple.
    """
    layout = Layout(BYTES, BYTES, code.processor.xlen)
    multiply, inner = matmul(code, layout, k, n, m)
    name = f"matmul_activations_{m}x{n}x{k}"
    f = Function(code.processor.isa, name, "ptr x, ptr w, ptr y, ptr room")
    x, w, y, room = f.parameters
    chunk = layout.weight_chunks * CHUNK_BYTES
    pack = code.add(pack_rows(f.isa, BYTES, layout.weight_chunks))
    packed = layout.panel_bytes(k, n)
    steps, columns = layout.steps(k), layout.columns
    for first, count in ((0, n - n % columns), (n - n % columns, n % columns)):
        if not count:
            continue
        side = min(count, columns)
        with f.loop(0, count // side) as panel, f.loop(0, side) as row:
            number = panel.index * side + row.index + first
            given = f.at(w, number * k, "i8")
            start = f.at(room, (panel.index * side + first) * (packed // n), "i8")
            f.call(pack, given, f.at(start, row.index * chunk, "i8"), steps, side * chunk)
    f.call(multiply, x, room, y, f.at(room, packed, "i8"), m)
    return code.add(f), packed + inner


def takes(k: int, xlen: int) -> bool:
    """Return whether rows of so many bytes are whole words."""
    return k % (xlen // BYTES) == 0
