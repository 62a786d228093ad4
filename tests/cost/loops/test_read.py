"""Ops of linalg, named and generic, as loop nests; what is none is listed with its reason."""

from __future__ import annotations

import pytest

from fewbit.cost.loops import Listing, list_nests
from fewbit.cost.loops.dumps import generic_text, parse_generic

OPS = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @ops(%image: tensor<1x9x9x4xf32>, %depth: tensor<3x3x4xf32>, %out: tensor<1x4x4x4xf32>,
    %q: tensor<8x16xi8>, %w: tensor<16x4xi8>, %scale: tensor<4xf32>, %sum: tensor<8x4xi32>,
    %x: tensor<?x4xf32>, %rows: tensor<?xf32>, %a: tensor<2x3x5xf32>, %b: tensor<2x5x7xf32>,
    %c: tensor<2x3x7xf32>) -> (tensor<1x4x4x4xf32>, tensor<8x4xi32>, tensor<?xf32>,
    tensor<?x4xf32>, tensor<2x3x7xf32>, tensor<1x3x3x4xf32>, tensor<?x4xf32>) {
  %0 = linalg.depthwise_conv_2d_nhwc_hwc {strides = dense<2> : tensor<2xi64>}
    ins(%image, %depth : tensor<1x9x9x4xf32>, tensor<3x3x4xf32>)
    outs(%out : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %1 = linalg.matmul ins(%q, %w : tensor<8x16xi8>, tensor<16x4xi8>) outs(%sum : tensor<8x4xi32>)
    -> tensor<8x4xi32>
  %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x4xf32>) outs(%rows : tensor<?xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %e = math.exp %in : f32
    %s = arith.addf %e, %acc : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %3 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %2 : tensor<?x4xf32>, tensor<?xf32>) outs(%x : tensor<?x4xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %r = arith.divf %in, %total : f32
    linalg.yield %r : f32
  } -> tensor<?x4xf32>
  %4 = linalg.batch_matmul ins(%a, %b : tensor<2x3x5xf32>, tensor<2x5x7xf32>)
    outs(%c : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %pool = tensor.empty() : tensor<1x3x3x4xf32>
  %5 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>, dilations = dense<3> : tensor<2xi64>}
    ins(%image, %window : tensor<1x9x9x4xf32>, tensor<2x2xf32>)
    outs(%pool : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  %6 = linalg.softmax dimension(1) ins(%x : tensor<?x4xf32>) outs(%x : tensor<?x4xf32>)
    -> tensor<?x4xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<1x4x4x4xf32>, tensor<8x4xi32>, tensor<?xf32>,
    tensor<?x4xf32>, tensor<2x3x7xf32>, tensor<1x3x3x4xf32>, tensor<?x4xf32>
}
"""


@pytest.fixture(scope="module")
def listing() -> Listing:
    return list_nests(parse_generic(generic_text(OPS)), dynamic=6)


def test_every_op_is_listed(listing: Listing) -> None:
    assert [nest.shape_class for nest in listing.nests] == [
        "depthwise convolution",
        "contraction",
        "reduction",
        "elementwise",
        "contraction",
        "pooling",
    ]
    (softmax,) = listing.unmodelled
    assert softmax.op == "linalg.softmax"
    assert "loops" in softmax.reason


def test_strides_and_depthwise(listing: Listing) -> None:
    conv = listing.nests[0]
    assert conv.extents == (1, 4, 4, 4, 3, 3)
    assert conv.macs == 4 * 4 * 4 * 9
    image = conv.inputs[0]
    assert image.indices is not None
    assert image.indices[1].coefficients == (0, 2, 0, 0, 1, 0)
    assert image.footprint((1, 2, 1, 4, 3, 3)) == 4 * 5 * 3 * 4


def test_bytes_are_multiplied_to_words(listing: Listing) -> None:
    matmul = listing.nests[1]
    assert matmul.macs == 8 * 4 * 16
    assert [access.bits for access in matmul.accesses] == [8, 8, 32]


def test_dynamic_sizes_stand_for_what_is_said(listing: Listing) -> None:
    total, divided = listing.nests[2:4]
    assert total.loops[0].dynamic
    assert total.extents == (6, 4)
    assert total.operations == 2 * 24
    # What is overwritten is not read.
    assert len(divided.inputs) == 2


def test_windows_of_pooling(listing: Listing) -> None:
    pool = listing.nests[5]
    assert pool.extents == (1, 3, 3, 4, 2, 2)
    assert pool.macs == 0
