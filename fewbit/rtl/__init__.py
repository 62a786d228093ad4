"""From an op to a circuit: an exploration of what hardware of one's own would take."""
