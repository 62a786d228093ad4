"""What a call leaves behind in a module: state is refused, and what nobody reads is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fewbit
from fewbit.errors import UnsupportedError


class Pyramid(nn.Module):
    """Keeps its levels where another method finds them, as networks for optical flow do."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[Tensor] = [torch.zeros(1)]

    def build(self, x: Tensor) -> None:
        self.levels = [x]
        for _ in range(2):
            self.levels.append(nn.functional.avg_pool1d(self.levels[-1], 2))

    def forward(self, x: Tensor) -> Tensor:
        self.build(x.sin())
        return torch.cat(self.levels, -1)


class Largest(nn.Module):
    """Keeps the largest value that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        self.seen = torch.maximum(self.seen, x.amax(0))
        return x - self.seen


def test_tensors_that_are_left_behind() -> None:
    model, x = Pyramid(), torch.randn(2, 3, 8)
    before = model.levels
    program = fewbit.import_model(model, (x,))
    assert model.levels is before
    other = torch.randn(2, 3, 8)
    np.testing.assert_allclose(program.run(other.numpy())[0], model(other), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_state_that_the_example_does_not_show(scale: float) -> None:
    """A second call on the same inputs gives the same results; one on others in between does not."""
    x = scale * torch.arange(1.0, 7).reshape(2, 3) / 10
    with pytest.raises(UnsupportedError, match=r"forward changes the model\.seen"):
        fewbit.import_model(Largest(), (x,))
