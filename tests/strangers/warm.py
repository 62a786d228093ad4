"""What every check needs, loaded once in the process from which those of the checks are forked.

Libraries take longer to load than a small model to compile. A first model is compiled as well, so that
what is loaded at first use is there: the seconds of a check are those of its own model.
"""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import nn

import fewbit
from tests.strangers.stranger import need

for _package in ("timm", "torchvision", "transformers"):
    with suppress(Exception):  # which the check of a model says, if it needs the package
        getattr(need(_package), "BertModel", None)  # transformers loads what it needs for models

with torch.no_grad():
    fewbit.compile(nn.Linear(4, 4), "cpu", recipe="w8a8", example_inputs=(torch.zeros(1, 4),))
