// RUN: fewbit-opt %s -p im2col | filecheck %s

// Columns of 3 x 3 pixels of 4 channels, times the weight with its channels last.
// CHECK-LABEL: func.func @conv
// CHECK:         linalg.generic {{.*}} ins(%w : tensor<6x4x3x3xf32>)
// CHECK:         tensor.pad %x
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, ((d1 * 2) + d4), ((d2 * 2) + d5), d3, d6)>
// CHECK:         %[[COLUMNS:.*]] = tensor.collapse_shape {{.*}} into tensor<?x5x5x1x36xf32>
// CHECK:         linalg.fill
// CHECK:         linalg.generic {{.*}} ins(%[[COLUMNS]], {{.*}} : tensor<?x5x5x1x36xf32>, tensor<1x6x36xf32>)
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.addf
func.func @conv(%x: tensor<?x9x9x4xf32>, %w: tensor<6x4x3x3xf32>) -> tensor<?x5x5x6xf32> {
  %y = kernel.conv2d(%x, %w) {stride = [2, 2], padding = [1, 1, 1, 1]} : (tensor<?x9x9x4xf32>, tensor<6x4x3x3xf32>) -> tensor<?x5x5x6xf32>
  func.return %y : tensor<?x5x5x6xf32>
}

// Left alone: a channel at a time is no matmul.
// CHECK-LABEL: func.func @depthwise
// CHECK-NEXT:    kernel.conv2d
func.func @depthwise(%x: tensor<?x9x9x4xf32>, %w: tensor<4x1x3x3xf32>) -> tensor<?x7x7x4xf32> {
  %y = kernel.conv2d(%x, %w) {groups = 4 : i32, stride = [1, 1]} : (tensor<?x9x9x4xf32>, tensor<4x1x3x3xf32>) -> tensor<?x7x7x4xf32>
  func.return %y : tensor<?x7x7x4xf32>
}
