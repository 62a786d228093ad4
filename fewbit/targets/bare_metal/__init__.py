"""Programs that boot on a core: one run on arrays that they have inside, and a report of it."""
