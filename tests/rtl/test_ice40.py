"""Circuits on an FPGA: the page's figures, and no path from an input through a tree."""

from __future__ import annotations

import re

import pytest

from fewbit.rtl.dot_unit import DotUnit
from fewbit.rtl.ice40 import available, synthesize
from tests.test_docs import ROOT


@pytest.mark.skipif(not available(), reason="Yosys and nextpnr are not installed")
@pytest.mark.slow
@pytest.mark.parametrize(("x", "w"), [(8, 8), (2, 1), (1, 1)])
def test_area_and_frequency(x: int, w: int) -> None:
    unit = DotUnit(x, w, 64, 1, 32 // x)
    area = synthesize(unit)
    page = (ROOT / "docs" / "rtl.md").read_text()
    shown = re.search(rf"\| `{unit.name}` \| ([\d,]+) \| (\d+) \| ([\d,]+) \| (\d+) \|", page)
    assert shown is not None
    tables, flip_flops, cells, megahertz = (int(n.replace(",", "")) for n in shown.groups())
    assert (area.tables, area.cells) == pytest.approx((tables, cells), rel=0.05)
    assert area.flip_flops == flip_flops >= 32 + unit.lanes * w + unit.sum_bits
    assert area.megahertz == pytest.approx(megahertz, rel=0.15)
    assert area.input_nanoseconds < 1000 / area.megahertz
