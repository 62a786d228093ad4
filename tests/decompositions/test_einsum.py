"""Every way to write an einsum: torch's own results, from compiled programs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.decompositions.einsum import spell_out

EQUATIONS = {
    "->": [()],
    ",->": [(), ()],
    ",i->i": [(), (3,)],
    "i->": [(3,)],
    "ij": [(3, 4)],
    "ba": [(3, 4)],
    "ii": [(3, 3)],
    "ii->i": [(3, 3)],
    "ijji->j": [(3, 4, 4, 3)],
    "ijk->ki": [(2, 3, 4)],
    "i, i": [(3,), (3,)],
    "ij,jk": [(2, 3), (3, 4)],
    "ij,jk->ik": [(2, 3), (1, 4)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 5)],
    "...->": [(2, 3)],
    "...i,ij": [(2, 5, 3), (3, 4)],
    "...ij,...jk": [(2, 1, 3, 4), (5, 4, 2)],
    "b...i,b...j->b...ij": [(2, 3, 4), (2, 3, 5)],
}


class Einsum(nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, *inputs: Tensor) -> Tensor:
        return torch.einsum(self.equation, *inputs)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_results_are_those_of_torch(equation: str) -> None:
    manual_seed(0)
    inputs = tuple(torch.randn(shape) for shape in EQUATIONS[equation])
    program = fewbit.import_model(Einsum(equation), inputs)
    (result,) = program.run(*(each.numpy() for each in inputs))
    expected = torch.einsum(equation, *inputs).numpy()
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-5)


@given(st.data())
def test_what_is_spelled_out_computes_the_same(data: st.DataObject) -> None:
    letters = st.text("ijk", max_size=3)
    operands = data.draw(
        st.lists(st.tuples(letters, letters, st.booleans()), min_size=1, max_size=3)
    )
    inputs = [f"{left}...{right}" if hides else left + right for left, right, hides in operands]
    named = sorted({letter for left, right, _ in operands for letter in left + right})
    kept = "".join(data.draw(st.lists(st.sampled_from(named), unique=True)) if named else [])
    hidden = [data.draw(st.integers(0, 2)) if hides else 0 for *_, hides in operands]
    ends = ["", f"->...{kept}" if any(hides for *_, hides in operands) else f"->{kept}"]
    equation = ",".join(inputs) + data.draw(st.sampled_from(ends))
    sizes = {"i": 2, "j": 3, "k": 4}
    shapes = [
        (*(sizes[c] for c in left), *([5] * count), *(sizes[c] for c in right))
        for (left, right, _), count in zip(operands, hidden, strict=True)
    ]
    tensors = [torch.randn(shape) for shape in shapes]
    plain, output = spell_out(equation, [tensor.ndim for tensor in tensors])
    result = torch.einsum(f"{','.join(plain)}->{output}", *tensors)
    torch.testing.assert_close(result, torch.einsum(equation, *tensors))
