"""Transformations of torch models before quantization, found by dataflow.

`fuse_batch_norm` (and `fuse_model`, which needs no example inputs where it can do without) folds
batch norms, `smooth` moves outliers from activations into weights, `correct_bias` takes the mean
error of quantization out of biases. Each returns a model and fills a `FusionReport` on request.
This package exists for torch and loads it.
"""

from __future__ import annotations

from fewbit.quant.fusion.batch_norm import fuse_batch_norm, fuse_model
from fewbit.quant.fusion.bias_correction import correct_bias
from fewbit.quant.fusion.report import Fused, FusionReport, Left
from fewbit.quant.fusion.smooth import smooth

__all__ = [
    "Fused",
    "FusionReport",
    "Left",
    "correct_bias",
    "fuse_batch_norm",
    "fuse_model",
    "smooth",
]
