"""Separable convolutions on the GPU: data, the reference, and cuDNN's two calls."""

from __future__ import annotations

import torch

from fewbit.base.typed_torch import from_numpy
from fewbit.bench.gpu import conv2d
from fewbit.kernels.cuda.separable import Separable, pack_pointwise


class Data:
    """Inputs of a plan, and the result that is expected of it."""

    def __init__(self, problem: Separable) -> None:
        d = problem.depthwise
        self.problem = problem
        self.tensors = conv2d.data(d)
        dtype = self.tensors["x"].dtype
        self.filters = (torch.randn(problem.out, d.channels, device="cuda") / d.channels**0.5).to(
            dtype
        )
        packed = pack_pointwise(problem, self.filters.view(torch.int16).cpu().numpy())
        self.inputs = {
            "x": self.tensors["x"],
            "w": self.tensors["w"][..., 0].movedim(0, -1).float().contiguous(),
            "p": from_numpy(packed).cuda().view(dtype),
        }
        middle = conv2d.reference(d, self.tensors).to(dtype)
        self.reference = middle.double() @ self.filters.double().T

    def cudnn(self) -> torch.Tensor:
        filters = self.filters[:, None, None, :].permute(0, 3, 1, 2)
        return torch.nn.functional.conv2d(self.first(), filters)

    def first(self) -> torch.Tensor:
        return conv2d.cudnn(self.problem.depthwise, self.tensors)()
