// RUN: fewbit-opt %s -p lower-elementwise | filecheck %s

// A size of 1 is repeated, and one that is missing too.
// CHECK-LABEL: func.func @add
// CHECK:         tensor.dim %x
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK:           arith.addf
func.func @add(%x: tensor<?x3xf32>, %b: tensor<1xf32>) -> tensor<?x3xf32> {
  %y = mico.add(%x, %b) : (tensor<?x3xf32>, tensor<1xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @softmax
// CHECK:         arith.maximumf
// CHECK:         math.exp
// CHECK:         arith.addf
// CHECK:         arith.divf
func.func @softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = mico.softmax(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// Left alone: a matmul, and what only moves elements.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    mico.bitlinear(%x, %w)
// CHECK-NEXT:    mico.flatten
func.func @kept(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> tensor<8xf32> {
  %y = mico.bitlinear(%x, %w) : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %z = mico.flatten(%y) {start_dim = 0} : (tensor<2x4xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}
