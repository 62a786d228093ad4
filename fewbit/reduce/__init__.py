"""A model that fails, made as small as it can be while it still fails in the same way.

| file | what is in it |
|---|---|
| `failure.py` | how a model fails: refused, wrong, an internal error, a crash, no end |
| `check.py` | a model imported, run, compiled and compared, in a process of its own |
| `search.py` | the search: smaller models are tried until none of them fails |
| `onnx_graph.py` | smaller models of an ONNX model |
| `program_graph.py` | smaller programs of a program, for all other front ends |
| `reduction.py` | these together, for a file |
"""

from fewbit.reduce.check import Case
from fewbit.reduce.failure import Failure
from fewbit.reduce.reduction import Reduction, reduce_model

__all__ = ["Case", "Failure", "Reduction", "reduce_model"]
