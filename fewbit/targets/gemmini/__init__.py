"""The target `gemmini`: a systolic array behind the RoCC port of an RV64 host."""
