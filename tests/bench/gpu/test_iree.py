"""IREE's rung of the ladder: its text computes the convolution, on the processor here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.bench.gpu import iree
from fewbit.bench.gpu.ladder import split_variants
from fewbit.kernels.cuda.arch import HOPPER
from fewbit.kernels.cuda.convolution import Convolution


def test_it_is_a_rung() -> None:
    families, has_iree = split_variants("mma,iree")
    assert [family.name for family in families] == ["mma"]
    assert has_iree
    assert split_variants("all")[1]
    assert not split_variants("mma")[1]
    assert "groups" in (iree.refuse(Convolution.parse("n1,8x8,8,8,k3,g2")) or "")
    assert "tf32" in (iree.refuse(Convolution.parse("n1,8x8,8,8,k3").of("tf32", "nhwc")) or "")


CASES = [("n2,9x7,8,6,k3,s2,d2", "f32", "nhwc")]
MORE = [
    ("n1,9x9,8,8,k3,g8", "f32", "nhwc"),
    ("n1,9x9,8,8,k3,g8", "f32", "nchw"),
    ("n2,9x7,8,6,k3,p0", "f16", "nhwc"),
    ("n2,9x7,8,6,k3,s2", "i8", "nchw"),
]


@pytest.mark.parametrize(
    ("shape", "dtype", "layout"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)],
)
def test_the_text_is_the_convolution(shape: str, dtype: str, layout: str, tmp_path: Path) -> None:
    problem = Convolution.parse(shape).of(dtype, layout)
    rng = np.random.default_rng(0)
    buffers = problem.buffers()
    x, w = (rng.integers(-5, 6, buffers[n].shape) for n in ("x", "w"))
    path = tmp_path / "conv.mlir"
    path.write_text(iree.text_of(problem))
    art = fewbit.compile(path, "iree-cpu", tmp_path / "conv", tuning_db="none")
    kind = {"f32": np.float32, "f16": np.float16, "i8": np.int8}[dtype]
    tensors = {"x": from_numpy(x.astype(kind)), "w": from_numpy(w.astype(kind))}
    given = iree.arrays_of(problem, tensors)
    found = np.asarray(art.runner(*given)[0], np.float64)
    image, filters = (from_numpy(a).double() for a in (x, w))
    if layout == "nhwc":
        image, filters = image.permute(0, 3, 1, 2), filters.permute(0, 3, 1, 2)
    how = (None, problem.stride, problem.padding, problem.dilation, problem.groups)
    expected = torch.nn.functional.conv2d(image, filters, *how)
    expected = expected.permute(0, 2, 3, 1) if layout == "nhwc" else expected
    assert np.array_equal(found, expected.numpy())


def test_a_module_is_compiled_once(tmp_path: Path) -> None:
    problem = Convolution.parse("n1,8x8,8,8,k3")
    place = iree.module_of(problem, HOPPER, tmp_path)
    made = {path.name: path.stat().st_mtime_ns for path in place.iterdir()}
    assert iree.module_of(problem, HOPPER, tmp_path) == place
    assert made == {path.name: path.stat().st_mtime_ns for path in place.iterdir()}
    assert any(b".target sm_90" in path.read_bytes() for path in place.glob("*.vmfb"))
