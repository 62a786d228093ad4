"""ATen ops in terms of other ATen ops: of those that torch-mlir lacks, or computes otherwise.

`table.py` has them all by op. They are functions of tensors, which PyTorch traces in place of the
op, and know nothing of IR. Beside them is what rewrites whole graphs of a trace into plainer ones.
"""
