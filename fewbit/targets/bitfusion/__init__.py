"""BitFusion: an accelerator whose multipliers are composed of 2-bit bricks."""
