"""ZigZag as a cost model: nests and hardware in its words, and the mapping that it finds in ours.

It knows no vectors and no unrolling, so our model chooses the register tile, which ZigZag takes for
an array of processing elements, and ZigZag what lies in which cache. What it cannot express goes to
our model, and the result says so. ZigZag is an extra: `pip install 'fewbit[zigzag]'`.
"""

from fewbit.tune.zigzag.mapping import Zigzag, zigzag_schedules
from fewbit.tune.zigzag.workload import layer_of, refusal

__all__ = ["Zigzag", "layer_of", "refusal", "zigzag_schedules"]
