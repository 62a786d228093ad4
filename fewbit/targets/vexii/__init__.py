"""VexiiRiscv with MiCo's dot products: bare-metal programs, run by an instruction-set simulator."""
