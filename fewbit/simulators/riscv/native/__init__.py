"""The fast simulator: instructions as machine code of this computer, made through LLVM."""
