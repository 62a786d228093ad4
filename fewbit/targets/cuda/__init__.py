"""The target `cuda`: whole programs on an NVIDIA GPU, launched by its driver alone."""
