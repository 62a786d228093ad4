"""Kernels of microcontrollers: matmuls and convolutions with their epilogues, in LLVM IR."""
