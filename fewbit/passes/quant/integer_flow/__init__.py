"""What `integer_only` is built of: layers with static scales, and loops over i32 tensors."""
