"""What everything stands on: progress, files written whole, folders with a manifest."""
