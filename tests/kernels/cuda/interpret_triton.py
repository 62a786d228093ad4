# pyright: basic, reportMissingImports=false, reportIndexIssue=false
"""Run by test_triton.py with Triton's interpreter: small problems beside float64."""

from __future__ import annotations

import torch
from triton.runtime import interpreter

from fewbit.kernels.cuda.conv2d_triton import constants
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.triton_kernels.attention import attention
from fewbit.kernels.cuda.triton_kernels.conv2d import add_parts, conv2d

_patch_tensor = interpreter._patch_lang_tensor


def _patch_tensor_for_new_numpy(tensor, scope) -> None:
    """numpy 2.4 makes no integer of an array of one element, which Triton 3.6 relies on."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


interpreter._patch_lang_tensor = _patch_tensor_for_new_numpy

TYPES = {"f32": torch.float32, "i8": torch.int8}


def convolve(text: str, dtype: str, layout: str, split: int) -> None:
    problem = Convolution.parse(text).of(dtype, layout)
    buffers = problem.buffers()
    x, w = (torch.randint(-4, 5, buffers[n].shape).to(TYPES[dtype]) for n in "xw")
    y = torch.full(buffers["y"].shape, -77, dtype=torch.int32 if dtype == "i8" else torch.float32)
    config = {"bm": 16, "bn": 16, "bk": 16, "split": split}
    parts = torch.full((split, problem.pixels, problem.filters), -77, dtype=y.dtype)
    given = constants(problem, config, 2)
    conv2d[(2, split)](x, w, parts if split > 1 else y, **given)
    if split > 1:
        plane = problem.out_height * problem.out_width
        count = problem.pixels * problem.filters
        add_parts[(-(-count // 64),)](
            parts, y, problem.pixels, problem.filters, plane, layout == "nhwc", split, 64
        )
    if layout == "nhwc":
        x, w, y = (t.permute(0, 3, 1, 2) for t in (x, w, y))
    more = (problem.stride, problem.padding, problem.dilation, problem.groups)
    expected = torch.nn.functional.conv2d(x.double(), w.double(), None, *more)
    assert torch.equal(y.double(), expected), (text, dtype, layout, split)


def attend(queries: int, keys: int, size: int, causal: bool, length: int | None) -> None:
    q, k, v = (torch.randn(1, 2, n, size).half() for n in (queries, keys, keys))
    y = torch.full_like(q, float("nan"))
    lengths = torch.tensor([length or keys], dtype=torch.int32)
    none = torch.zeros(1)
    log2e = 1.4426950408889634
    padded = max(16, 1 << (size - 1).bit_length())
    attention[(-(-queries // 16), 2)](
        q, k, v, lengths, none, none, y, size**-0.5 * log2e,
        2, 2, queries, keys, size, padded, causal, length is not None, False, 16, 16,
    )  # fmt: skip
    seen = torch.arange(keys)[None, :] < lengths[0]
    if causal:
        row = torch.arange(queries)[:, None] + keys - queries
        seen = seen & (torch.arange(keys)[None, :] <= row)
    scores = (q.double() @ k.double().transpose(-1, -2) * size**-0.5).masked_fill(~seen, -torch.inf)
    expected = torch.softmax(scores, -1) @ v.double()
    assert (y.double() - expected).norm() / expected.norm() < 2e-3, (queries, keys, size, causal)


torch.manual_seed(0)
convolve("n2,5x6,16,10,k3", "f32", "nhwc", 1)
convolve("n1,6x5,6,8,k3x2,s2,p1x0,g2", "f32", "nchw", 1)
convolve("n1,5x5,5,7,k3,d2,p2", "i8", "nhwc", 3)
convolve("n1,5x4,16,9,k2,p0", "f32", "nchw", 2)
attend(20, 20, 16, False, None)
attend(17, 33, 24, True, None)
attend(9, 40, 16, False, 21)
