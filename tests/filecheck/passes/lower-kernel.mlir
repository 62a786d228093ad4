// RUN: fewbit-opt %s -p lower-kernel | filecheck %s

// Sums of integers, then one loop with all that a kernel does before it stores, in its order.
// CHECK-LABEL: func.func @scaled
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:           arith.extsi %{{.*}} : i8 to i32
// CHECK:           arith.muli
// CHECK:           arith.addi
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%{{.*}}, %s, %t, %b, %r :
// CHECK:           %[[F:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK-NEXT:      %[[BY_X:.*]] = arith.mulf %[[F]], %{{.*}} : f32
// CHECK-NEXT:      %[[BY_W:.*]] = arith.mulf %[[BY_X]], %{{.*}} : f32
// CHECK-NEXT:      %[[BIASED:.*]] = arith.addf %[[BY_W]], %{{.*}} : f32
// CHECK-NEXT:      %[[ADDED:.*]] = arith.addf %[[BIASED]], %{{.*}} : f32
// CHECK:           %[[LOW:.*]] = arith.maximumf %[[ADDED]], %{{.*}} : f32
// CHECK:           arith.minimumf %[[LOW]], %{{.*}} : f32
// CHECK-NOT:     kernel.
func.func @scaled(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %s: tensor<?xf32>, %t: tensor<4xf32>, %b: tensor<4xf32>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) bias(%b) add(%r) {minimum = 0.0, maximum = 6.0}
    : (tensor<?x8xi8>, tensor<4x8xi8>, tensor<?xf32>, tensor<4xf32>, tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// An activation is part of that loop, in front of the bounds.
// CHECK-LABEL: func.func @activated
// CHECK:         linalg.generic
// CHECK:         linalg.generic
// CHECK:           %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK:           %[[E:.*]] = math.exp %{{.*}} : f32
// CHECK:           %[[D:.*]] = arith.addf %{{.*}}, %[[E]] : f32
// CHECK-NEXT:      %[[A:.*]] = arith.divf %[[SUM]], %[[D]] : f32
// CHECK:           arith.maximumf %[[A]], %{{.*}} : f32
// CHECK-NOT:     linalg.generic
func.func @activated(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = kernel.matmul(%x, %w) bias(%b) {activation = "silu", minimum = -0.1} : (tensor<2x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// Bare sums have no loop behind them.
// CHECK-LABEL: func.func @bare
// CHECK:         %[[Y:.*]] = linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         func.return %[[Y]] : tensor<2x4xi32>
func.func @bare(%x: tensor<2x8xi8>, %w: tensor<4x8xi8>) -> tensor<2x4xi32> {
  %y = kernel.matmul(%x, %w) : (tensor<2x8xi8>, tensor<4x8xi8>) -> tensor<2x4xi32>
  func.return %y : tensor<2x4xi32>
}

// Depthwise: the loop over channels is the innermost, and runs over neighbours in all tensors.
// CHECK-LABEL: func.func @depthwise
// CHECK:         tensor.pad
// CHECK:         affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK:         linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, ((d1 * 2) + d3), ((d2 * 2) + d4), d5)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d4, d5)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>
func.func @depthwise(%x: tensor<1x8x8x6xf32>, %w: tensor<6x1x3x3xf32>) -> tensor<1x4x4x6xf32> {
  %y = kernel.conv2d(%x, %w) {stride = [2, 2], padding = [1, 1], groups = 6} : (tensor<1x8x8x6xf32>, tensor<6x1x3x3xf32>) -> tensor<1x4x4x6xf32>
  func.return %y : tensor<1x4x4x6xf32>
}

// Where padding does not count, the number of elements that do is computed from where a window is.
// CHECK-LABEL: func.func @mean
// CHECK:         arith.addf
// CHECK:         arith.constant dense<[2.000000e+00, 3.000000e+00]> : tensor<2xf64>
// CHECK:         arith.mulf
// CHECK:         arith.divf
// CHECK-NOT:     kernel.
func.func @mean(%x: tensor<1x4x4x6xf32>) -> tensor<1x2x2x6xf32> {
  %y = kernel.pool2d(%x) {kind = "average", kernel_size = [3, 3], stride = [2, 2], padding = [1, 1], count_include_pad = false} : (tensor<1x4x4x6xf32>) -> tensor<1x2x2x6xf32>
  func.return %y : tensor<1x2x2x6xf32>
}

// Quantization: the largest magnitude of each sample, then rounding.
// CHECK-LABEL: func.func @quantize_rows
// CHECK:         math.absf
// CHECK:         arith.maximumf
// CHECK:         math.roundeven
// CHECK-NOT:     kernel.
func.func @quantize_rows(%x: tensor<2x4x4x6xf32>) -> (tensor<2x4x4x6x!mico.int<8>>, tensor<2xf32>) {
  %u, %s = kernel.quantize_rows(%x) {bits = 8, granularity = "sample"} : (tensor<2x4x4x6xf32>) -> (tensor<2x4x4x6x!mico.int<8>>, tensor<2xf32>)
  func.return %u, %s : tensor<2x4x4x6x!mico.int<8>>, tensor<2xf32>
}

// Left alone: a layer that is no kernel yet.
// CHECK-LABEL: func.func @layer
// CHECK-NEXT:    mico.bitlinear(%x, %w)
func.func @layer(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>) -> tensor<2x4xf32> {
  %y = mico.bitlinear(%x, %w) : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
