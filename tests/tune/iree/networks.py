"""A program with one convolution of a batch of one, where IREE drops attributes of its input."""

CONVOLUTION = """
func.func @main(%x: tensor<1x10x10x8xf32>, %w: tensor<3x3x8x32xf32>) -> tensor<1x8x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x8x8x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x10x10x8xf32>, tensor<3x3x8x32xf32>)
    outs(%start : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>,
      affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y : tensor<1x8x8x32xf32>) outs(%empty : tensor<1x8x8x32xf32>) {
  ^bb0(%in: f32, %old: f32):
    %m = arith.maximumf %in, %zero : f32
    linalg.yield %m : f32
  } -> tensor<1x8x8x32xf32>
  return %r : tensor<1x8x8x32xf32>
}
"""
