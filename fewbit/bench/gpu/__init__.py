"""Measuring GPU kernels beside NVIDIA's libraries. Needs a GPU and a PyTorch that sees it."""
