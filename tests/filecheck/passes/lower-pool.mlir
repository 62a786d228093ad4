// Pooling becomes a reduction over windows of the padded input.
// RUN: fewbit-opt %s -p lower-pool | filecheck %s

// Padding never is the largest.
// CHECK-LABEL: func.func @max
// CHECK:         %[[LEAST:.*]] = arith.constant -128 : i8
// CHECK:         tensor.pad %{{.*}} low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK:           tensor.yield %[[LEAST]] : i8
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, ((d2 * 2) + d4), ((d3 * 2) + d5))>
// CHECK:           arith.maxsi %{{.*}} : i8
func.func @max(%x: tensor<1x2x4x4x!mico.int<4>>) -> tensor<1x2x3x3x!mico.int<4>> {
  %y = mico.maxpool2d(%x) {kernel_size = [2, 2], stride = [2, 2], padding = [1, 1]} : (tensor<1x2x4x4x!mico.int<4>>) -> tensor<1x2x3x3x!mico.int<4>>
  func.return %y : tensor<1x2x3x3x!mico.int<4>>
}

// All windows have four elements.
// CHECK-LABEL: func.func @mean
// CHECK-NOT:     tensor.pad
// CHECK:           arith.addf
// CHECK:         %[[FOUR:.*]] = arith.constant 4.000000e+00 : f64
// CHECK:           arith.divf %{{.*}}, %[[FOUR]] : f64
func.func @mean(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32> {
  %y = mico.avgpool2d(%x) {kernel_size = [2, 2]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  func.return %y : tensor<1x2x2x2xf32>
}

// Elements that count are known by where a window is: of three windows, those at the ends have one
// row or column of padding each.
// CHECK-LABEL: func.func @mean_of_some
// CHECK:         %[[WIDE:.*]] = linalg.generic {{.*}} ins(%x :
// CHECK:         tensor.pad %[[WIDE]]
// CHECK:         %[[SUMS:.*]] = linalg.generic {{.*}} "reduction", "reduction"]}
// CHECK:         %[[ROWS:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, 1.000000e+00]> : tensor<3xf64>
// CHECK:         %[[COLUMNS:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, 1.000000e+00]> : tensor<3xf64>
// CHECK:         linalg.generic {{.*}} ins(%[[SUMS]], %[[ROWS]], %[[COLUMNS]] :
// CHECK:           arith.mulf
// CHECK:           arith.divf
func.func @mean_of_some(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32> {
  %y = mico.avgpool2d(%x) {kernel_size = [2, 2], padding = [1, 1], count_include_pad = false} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
  func.return %y : tensor<1x2x3x3xf32>
}

// Of a size that only a run knows, they are computed.
// CHECK-LABEL: func.func @mean_of_open_size
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel"]}
// CHECK:           linalg.index 0
// CHECK:           arith.minsi
// CHECK:           arith.maxsi
// CHECK:           arith.sitofp
func.func @mean_of_open_size(%x: tensor<1x2x?x4xf32>) -> tensor<1x2x?x3xf32> {
  %y = mico.avgpool2d(%x) {kernel_size = [2, 2], padding = [1, 1], stride = [2, 2], count_include_pad = false} : (tensor<1x2x?x4xf32>) -> tensor<1x2x?x3xf32>
  func.return %y : tensor<1x2x?x3xf32>
}

// Left alone: channels-last pooling is for kernels and for lower-kernel.
// CHECK-LABEL: func.func @kernel
// CHECK-NEXT:    kernel.pool2d(%x)
func.func @kernel(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32> {
  %y = kernel.pool2d(%x) {kind = "max", kernel_size = [2, 2]} : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
  func.return %y : tensor<1x2x2x2xf32>
}
