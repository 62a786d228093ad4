// Ops that move data become ops on tensors: shapes are collapsed and expanded, transposes are loops.
// RUN: fewbit-opt %s -p lower-layout | filecheck %s

// CHECK-LABEL: func.func @flatten
// CHECK-NEXT:    tensor.collapse_shape %x {{\[\[}}0 : i64], [1 : i64, 2 : i64]] : tensor<?x2x3xf32> into tensor<?x6xf32>
func.func @flatten(%x: tensor<?x2x3xf32>) -> tensor<?x6xf32> {
  %y = mico.flatten(%x) : (tensor<?x2x3xf32>) -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}

// CHECK-LABEL: func.func @reshape
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK-NEXT:    tensor.expand_shape %x {{\[\[}}0 : i64], [1 : i64, 2 : i64]] output_shape [%[[N]], 2, 3]
func.func @reshape(%x: tensor<?x6xf32>) -> tensor<?x2x3xf32> {
  %y = mico.reshape(%x) {shape = [0, 2, 3]} : (tensor<?x6xf32>) -> tensor<?x2x3xf32>
  func.return %y : tensor<?x2x3xf32>
}

// CHECK-LABEL: func.func @transpose
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      linalg.yield %[[A]]
func.func @transpose(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %y = mico.transpose(%x) {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @concat
// CHECK-NEXT:    tensor.concat dim(1) %x, %y
func.func @concat(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) -> tensor<2x4xf32> {
  %z = mico.concat(%x, %y) {dim = 1} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  func.return %z : tensor<2x4xf32>
}

// A reshape to the same shape is nothing.
// CHECK-LABEL: func.func @same
// CHECK-NEXT:    func.return %x
func.func @same(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = mico.reshape(%x) {shape = [0, -1]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// Left alone: what computes, in any layout.
// CHECK-LABEL: func.func @relu
// CHECK-NEXT:    mico.relu(%x)
func.func @relu(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = mico.relu(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
