"""RISC-V in plain Python: words, assembler, object files, and a simulator that counts."""
