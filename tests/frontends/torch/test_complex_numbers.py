# pyright: basic
"""Complex numbers and Fourier transforms inside of models, by real arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import fewbit
from fewbit.errors import UnsupportedError
from fewbit.frontends import import_model
from tests.frontends.torch.agreement import Function, assert_agrees


def spectrogram(x: Tensor) -> Tensor:
    return torch.stft(x, 16, 6, window=torch.hann_window(16), return_complex=True).abs()


def global_filter(x: Tensor) -> Tensor:
    """GFNet's: a spectrum of two axes, weighted."""
    spectrum = torch.fft.rfft2(x, dim=(1, 2), norm="ortho")
    weight = torch.complex(torch.full((7, 4, 1), 0.5), torch.full((7, 4, 1), -2.0))
    return torch.fft.irfft2(spectrum * weight, s=(7, 6), dim=(1, 2), norm="ortho")


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "stft": (spectrogram, (2, 61)),
    "rfft": (lambda x: torch.view_as_real(torch.fft.rfft(x, dim=0)), (9, 3)),
    "irfft": (lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2, n=9), (2, 9)),
    "hfft": (lambda x: torch.fft.fft2(x).imag + torch.fft.ifft(x + 1j, dim=0).real, (5, 6)),
    "filter": (global_filter, (2, 7, 6, 3)),
    "movement": (
        lambda x: torch.view_as_real(
            torch.fft.fft(x).T[1:].reshape(2, -1).conj().resolve_conj()
        ).flatten(1),
        (4, 3),
    ),
    "arithmetic": (
        lambda x: torch.view_as_real((torch.view_as_complex(x) / (2 - 1j) + 3) ** 2 - 1j),
        (3, 4, 2),
    ),
    "size_and_angle": (
        lambda x: torch.view_as_complex(x).abs() + torch.view_as_complex(x).angle(),
        (3, 4, 2),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_pytorch(name: str) -> None:
    function, shape = FUNCTIONS[name]
    assert_agrees(function, torch.randn(shape), rtol=1e-4, atol=1e-4)


class Rotary(nn.Module):
    """Rotations by a complex buffer, as the first LLaMa had them."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: Tensor
        self.register_buffer("turns", torch.polar(torch.ones(5, 4), torch.randn(5, 4)))

    def forward(self, x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.reshape(2, 5, 4, 2))
        return torch.view_as_real(pairs * self.turns).flatten(2)


def test_spectrograms_of_open_length() -> None:
    shapes = (({0: Dim.AUTO, 1: Dim.AUTO},),)
    program = import_model(Function(spectrogram), (torch.randn(2, 61),), dynamic_shapes=shapes)
    compiled: Any = fewbit.compile(program, "cpu")
    for size in ((2, 61), (1, 40), (3, 90)):
        x = torch.randn(size)
        for run in (program.run, compiled.run):
            np.testing.assert_allclose(run(x.numpy())[0], spectrogram(x), rtol=1e-4, atol=1e-5)


def test_complex_buffers() -> None:
    model = Rotary()
    assert_agrees(model, torch.randn(2, 5, 8))
    assert model.turns.dtype is torch.complex64


def test_other_ops_are_refused_by_name() -> None:
    model = Function(lambda x: torch.view_as_complex(x).sinh().abs())
    with pytest.raises(UnsupportedError, match=r"aten\.sinh\.default"):
        import_model(model, (torch.randn(3, 2),))
