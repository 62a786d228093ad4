"""Einsums that are matmuls as they stand: one contraction, and no transposes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import fewbit
from fewbit.frontends.torch.einsum import is_matmul
from fewbit.ir.text import print_module
from tests.frontends.torch.agreement import assert_agrees

SIZES = {"h": 2, "r": 3, "d": 16, "b": 4, "k": 64, "n": 5}


def draw(letters: str, seed: int) -> Tensor:
    shape = [SIZES[letter] for letter in letters]
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Einsum(nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.einsum(self.equation, x, y)


@pytest.mark.parametrize(
    "equation", ["hrd,hbdk->hrbk", "rd,dk->rk", "hrd,hdk->rhk", "hrd,hkd->hrk", "rd,hbd->rhb"]
)
def test_agrees_with_eager(equation: str) -> None:
    lhs, rhs = equation.split("->")[0].split(",")
    assert_agrees(Einsum(equation), draw(lhs, 0), draw(rhs, 1))


def test_keys_in_blocks_are_one_contraction() -> None:
    given = (draw("hrd", 0), draw("hbdk", 1))
    text = print_module(fewbit.import_model(Einsum("hrd,hbdk->hrbk"), given).module)
    assert text.count("linalg.generic") == 1
    assert "transpose" not in text


@pytest.mark.parametrize(
    ("lhs", "rhs", "output"),
    [
        ("hrd", "hkd", "hrk"),  # columns of the second are not innermost
        ("hdr", "hdk", "hrk"),  # rows of the first are not whole
        ("rd", "dk", "kr"),
        ("rnd", "dk", "rnk"),
        ("rd", "dd", "rd"),
        ("...d", "dk", "...k"),
        ("hrd", "hdk", "hr"),
        ("rd", "dk", ""),
    ],
)
def test_others_are_left_alone(lhs: str, rhs: str, output: str) -> None:
    assert is_matmul("rd", "dk", "rk")
    assert not is_matmul(lhs, rhs, output)


def test_weights_make_layers() -> None:
    class Projection(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(draw("dk", 1))

        def forward(self, x: Tensor) -> Tensor:
            return torch.einsum("rd,dk->rk", x, self.weight)

    program = fewbit.import_model(Projection(), (draw("rd", 0),))
    assert "mico.bitlinear" in program.text()
