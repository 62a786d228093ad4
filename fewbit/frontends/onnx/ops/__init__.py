"""Entries of the table of ops, by group; importing a group fills its part of the table."""

from importlib import import_module

GROUPS = (
    "activation",
    "arithmetic",
    "attention",
    "cast",
    "comparison",
    "constant",
    "control_flow",
    "convolution",
    "detection",
    "indexing",
    "integer",
    "loops",
    "matmul",
    "movement",
    "normalization",
    "packed",
    "padding",
    "pooling",
    "quantization",
    "recurrent",
    "reduction",
    "regions",
    "resize",
    "sampling",
    "scatter",
    "sequence",
    "shape",
    "signal",
)

for _group in GROUPS:
    import_module(f"{__name__}.{_group}")
