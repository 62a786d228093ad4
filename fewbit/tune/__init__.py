"""Autotuning of tile sizes and kernels: what may be chosen, what it costs, what was found."""
