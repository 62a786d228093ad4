"""One typed builder of LLVM IR, for everything here that writes code."""
