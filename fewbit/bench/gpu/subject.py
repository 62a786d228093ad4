"""A plan with data: tensors in its buffers, a call that launches it, and its error.

Outputs are poisoned before a run that is run_checked: floats with NaN, integers with a pattern. The
reference is computed in float64 of the same rounded inputs, and the error is the norm of the
difference over the norm of the reference, which a single NaN makes NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from fewbit.base.typed_torch import norm
from fewbit.kernels.cuda.driver import Loaded
from fewbit.kernels.cuda.plan import Plan

TYPES = {
    "f32": torch.float32,
    "tf32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i32": torch.int32,
    "f8": torch.float8_e4m3fn,
}
TOLERANCE = {"f32": 1e-5, "tf32": 1e-3, "f16": 6e-4, "bf16": 4e-3, "i8": 0.0, "i32": 0.0}
"""Bounds on the norm of the difference over the norm of the reference, by type."""
POISON = -1234567


class Subject:
    """A plan that can be run: `inputs` are tensors of its input buffers."""

    def __init__(self, plan: Plan, inputs: Mapping[str, torch.Tensor]) -> None:
        self.plan = plan
        self.tensors = dict(inputs)
        for name, buffer in plan.buffers.items():
            if buffer.role == "out":
                empty = torch.empty(buffer.shape, dtype=TYPES[buffer.dtype], device="cuda")
                self.tensors[name] = empty
            elif buffer.role == "in":
                given = self.tensors[name]
                assert given.is_contiguous(), name
                assert given.numel() == torch.Size(buffer.shape).numel(), (name, given.shape)
        addresses = {name: tensor.data_ptr() for name, tensor in self.tensors.items()}
        self.loaded = Loaded(plan, addresses)

    def __call__(self) -> None:
        self.loaded(torch.cuda.current_stream().cuda_stream)

    @property
    def result(self) -> torch.Tensor:
        (name,) = (n for n, buffer in self.plan.buffers.items() if buffer.role == "out")
        return self.tensors[name]

    def run_checked(self) -> torch.Tensor:
        """Run into poisoned memory, and return the result."""
        out = self.result
        out.fill_(float("nan") if out.is_floating_point() else POISON)
        self()
        torch.cuda.synchronize()
        return out

    def close(self) -> None:
        self.loaded.close()


def error(result: torch.Tensor, reference: torch.Tensor) -> float:
    return norm(result.double() - reference.double()) / max(norm(reference.double()), 1e-30)
