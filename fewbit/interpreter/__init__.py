"""The reference semantics of programs, on numpy."""

from fewbit.interpreter.interpreter import Frame, Interpreter, evaluate_op, interpret
from fewbit.interpreter.registry import Jump, Leave, register
from fewbit.interpreter.values import Value, register_type

__all__ = [
    "Frame",
    "Interpreter",
    "Jump",
    "Leave",
    "Value",
    "evaluate_op",
    "interpret",
    "register",
    "register_type",
]
