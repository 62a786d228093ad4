// RUN: fewbit-opt %s -p lower-bit-conv | filecheck %s

// Padding is of zeros, behind the zero point; strides and dilations are in the index.
// CHECK-LABEL: func.func @conv
// CHECK:         arith.subi %{{.*}} : i32
// CHECK:         tensor.pad %{{.*}} low[0, 0, 1, 0] high[0, 0, 0, 2]
// CHECK:         tensor.expand_shape {{.*}} into tensor<1x2x1x6x7xi32>
// CHECK:         linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, ((d3 * 2) + d6), (d4 + (d7 * 2)))>
// CHECK:         tensor.collapse_shape {{.*}} into tensor<1x4x2x3xi32>
func.func @conv(%x: tensor<1x2x5x5x!mico.int<8>>, %w: tensor<4x1x3x3x!mico.int<4>>, %s: f32, %z: i32) -> tensor<1x4x2x3xf32> {
  %y = mico.bitconv2d(%x, %w) weight_scale(%s) act_scale(%s) act_zero_point(%z) {stride = [2, 1], padding = [1, 0, 0, 2], dilation = [1, 2], groups = 2} : (tensor<1x2x5x5x!mico.int<8>>, tensor<4x1x3x3x!mico.int<4>>, f32, f32, i32) -> tensor<1x4x2x3xf32>
  func.return %y : tensor<1x4x2x3xf32>
}

// Left alone: a channels-last convolution is for kernels and for lower-kernel.
// CHECK-LABEL: func.func @kernel
// CHECK-NEXT:    kernel.conv2d(%x, %w)
func.func @kernel(%x: tensor<1x5x5x2xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x3x3x4xf32> {
  %y = kernel.conv2d(%x, %w) : (tensor<1x5x5x2xf32>, tensor<4x2x3x3xf32>) -> tensor<1x3x3x4xf32>
  func.return %y : tensor<1x3x3x4xf32>
}
