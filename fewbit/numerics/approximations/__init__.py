"""Elementary functions of float32 from arithmetic alone: no branches, no tables in memory.

| file | what is in it |
|---|---|
| `number.py` | what a formula may do with a number, and numbers that are numpy arrays |
| `formulas.py`, `powers.py`, `circular.py` | each function once, for any kind of number |
| `activations.py` | silu and gelu, as programs compute them |
| `tables.py` | the coefficients, each with what it approximates, where, and how well |
| `fits.py` | how the coefficients were computed |

A formula is written once. On numpy arrays it is what the tests hold against float64; on values of a
program it emits ops (`passes/linalg/expand_math.py`), and on those of a kernel instructions. All
round after every operation, so they agree to the bit.
"""

from fewbit.numerics.approximations.number import Lanes, Number, evaluate

__all__ = ["Lanes", "Number", "evaluate"]
