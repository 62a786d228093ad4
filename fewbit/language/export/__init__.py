"""Checkpoints of the LLaMa family as files of other programs: GGUF, and MiCo's llama2.c."""
