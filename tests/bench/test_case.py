"""What all tools of a benchmark are given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from fewbit.bench.case import Case

MAPPED = """
import numpy as np, torch

def net():
    layer = torch.nn.Linear(4, 3, bias=False)
    weight = np.memmap({path!r}, np.float32, "r", shape=(3, 4))
    layer.weight = torch.nn.Parameter(torch.from_numpy(weight), requires_grad=False)
    return layer
"""


def test_parameters_that_a_file_holds_are_not_written_to(tmp_path: Path) -> None:
    """A checkpoint's weights are mapped for reading alone: to write there ends the process."""
    path, source = tmp_path / "weights.bin", tmp_path / "net.py"
    own = np.arange(12, dtype=np.float32)
    own.tofile(path)
    source.write_text(MAPPED.format(path=str(path)))
    given = torch.nn.Linear(4, 3, bias=False)
    case = Case(folder=tmp_path, model=f"{source}:net", quantized=False)
    case.save(given, [], [])
    assert torch.equal(case.module().weight, given.weight)
    np.testing.assert_array_equal(np.fromfile(path, np.float32), own)
