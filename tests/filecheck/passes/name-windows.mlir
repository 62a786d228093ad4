// RUN: fewbit-opt %s -p name-windows | filecheck %s

// Channels last, output channels last in the weight.
// CHECK-LABEL: func.func @conv
// CHECK:         tensor.pad
// CHECK:         affine_map<(d0, d1, d2, d3) -> (d2, d3, d1, d0)>
// CHECK:         linalg.conv_2d_nhwc_hwcf
// CHECK-NOT:     kernel.
func.func @conv(%x: tensor<1x8x8x6xf32>, %w: tensor<4x6x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %y = kernel.conv2d(%x, %w) {stride = [2, 2], padding = [1, 1]} : (tensor<1x8x8x6xf32>, tensor<4x6x3x3xf32>) -> tensor<1x4x4x4xf32>
  func.return %y : tensor<1x4x4x4xf32>
}

// CHECK-LABEL: func.func @depthwise
// CHECK:         linalg.depthwise_conv_2d_nhwc_hwc
func.func @depthwise(%x: tensor<1x8x8x6xf32>, %w: tensor<6x1x3x3xf32>) -> tensor<1x6x6x6xf32> {
  %y = kernel.conv2d(%x, %w) {groups = 6} : (tensor<1x8x8x6xf32>, tensor<6x1x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return %y : tensor<1x6x6x6xf32>
}

// Left alone: other groups.
// CHECK-LABEL: func.func @groups
// CHECK:         kernel.conv2d
func.func @groups(%x: tensor<1x8x8x6xf32>, %w: tensor<6x3x3x3xf32>) -> tensor<1x6x6x6xf32> {
  %y = kernel.conv2d(%x, %w) {groups = 2} : (tensor<1x8x8x6xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x6x6xf32>
  func.return %y : tensor<1x6x6x6xf32>
}
