"""Constants that a call has together."""

from __future__ import annotations

import numpy as np

from fewbit.program.weight_image import SharedWeights, VariantWeights, WeightImage


def test_together_is_one_behind_another():
    image = WeightImage()
    image.add("first", np.zeros(3, np.int8))
    start = image.add_together([("a", np.ones(65, np.int8)), ("b", np.ones(2, np.float32))])
    assert start == 64
    assert [each.offset for each in image.entries] == [0, 64, 192]


def test_variants_share_what_is_equal_together():
    shared = SharedWeights()
    first, second = VariantWeights(shared=shared), VariantWeights(shared=shared)
    a, b = np.arange(100, dtype=np.int8), np.ones(5, np.float32)
    first.add("b", b)
    both = first.add_together([("a", a), ("b", b)])
    assert second.add_together([("a", a), ("b", b)]) == both == 64
    assert [each.offset for each in second.entries] == [64, 192]
    other = second.add_together([("b", b), ("a", a)])
    assert other == 256
    assert second.nbytes == 448
    content = bytes(shared.view())
    assert content[256 : 256 + b.nbytes] == b.tobytes()
    assert content[320 : 320 + a.nbytes] == a.tobytes()
