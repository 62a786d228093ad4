"""Kernels for NVIDIA GPUs, in CUDA C++ and Triton, compiled to plans. See docs/gpu.md."""
