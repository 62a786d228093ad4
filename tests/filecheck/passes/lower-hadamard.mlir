// A rotation becomes a loop for each bit of an index within a block.
// RUN: fewbit-opt %s -p lower-hadamard | filecheck %s

// Neighbours are read, sums are written to the first half of a block, differences to the second.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[BLOCKS:.*]] = tensor.expand_shape %x {{.*}} : tensor<?x12xf32> into tensor<?x3x4xf32>
// CHECK:         %[[PAIRS:.*]] = tensor.expand_shape %[[BLOCKS]] {{.*}} into tensor<?x3x2x2xf32>
// CHECK:         %[[STAGE:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, 1)>, {{.*}} ins(%[[PAIRS]], %[[PAIRS]] :
// CHECK:           linalg.index 2
// CHECK:           arith.addf
// CHECK-NEXT:      arith.subf
// CHECK-NEXT:      arith.select
// CHECK-NEXT:      linalg.yield
// CHECK:         tensor.collapse_shape %[[STAGE]]
// The last stage multiplies by 1 / sqrt(4).
// CHECK:         linalg.generic
// CHECK:           arith.select
// CHECK-NEXT:      arith.constant 5.000000e-01 : f32
// CHECK-NEXT:      arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @rows(%x: tensor<?x12xf32>) -> tensor<?x12xf32> {
  %y = mico.hadamard(%x) {block = 4 : i32} : (tensor<?x12xf32>) -> tensor<?x12xf32>
  func.return %y : tensor<?x12xf32>
}

// Floats of 16 bits are rotated in f32.
// CHECK-LABEL: func.func @narrow
// CHECK:           arith.extf %{{.*}} : f16 to f32
// CHECK:           arith.truncf %{{.*}} : f32 to f16
func.func @narrow(%x: tensor<4xf16>) -> tensor<4xf16> {
  %y = mico.hadamard(%x) {block = 4 : i32} : (tensor<4xf16>) -> tensor<4xf16>
  func.return %y : tensor<4xf16>
}

// Left alone: what computes with rows that are rotated.
// CHECK-LABEL: func.func @layer
// CHECK-NEXT:    mico.bitlinear(%x, %w) {act_bits = 8 : i32}
func.func @layer(%x: tensor<1x4xf32>, %w: tensor<2x4xf32>) -> tensor<1x2xf32> {
  %y = mico.bitlinear(%x, %w) {act_bits = 8 : i32} : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}
