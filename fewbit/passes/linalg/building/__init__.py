"""What the `lower-*` passes share: how structured ops on tensors are put together.

A lowering is a function from an op to the values that replace its results. It runs inside an
implicit builder, so the ops that it constructs are the ops that it emits, in the order written.
"""
