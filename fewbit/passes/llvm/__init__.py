"""From loops to LLVM IR and machine code."""
