"""Programs and libraries that we call, and the processors that they make code for."""
