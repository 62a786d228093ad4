"""Programs on several devices: each part by its own target, all in one artifact."""
