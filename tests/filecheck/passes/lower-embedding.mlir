// An embedding becomes a loop over its result that looks up each element.
// RUN: fewbit-opt %s -p lower-embedding | filecheck %s

// CHECK-LABEL: func.func @floats
// CHECK:         linalg.generic {{.*}} ins(%i : tensor<?xi64>)
// CHECK:         ^bb0(%[[TOKEN:.*]]: i64, %{{.*}}: f32):
// CHECK-NEXT:      %[[ROW:.*]] = arith.index_cast %[[TOKEN]] : i64 to index
// CHECK-NEXT:      %[[COLUMN:.*]] = linalg.index 1
// CHECK-NEXT:      %[[E:.*]] = tensor.extract %t[%[[ROW]], %[[COLUMN]]] : tensor<10x4xf32>
// CHECK-NEXT:      linalg.yield %[[E]]
func.func @floats(%i: tensor<?xi64>, %t: tensor<10x4xf32>) -> tensor<?x4xf32> {
  %y = mico.embedding(%i, %t) : (tensor<?xi64>, tensor<10x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Only what is looked up is scaled; a row has two groups of two columns.
// CHECK-LABEL: func.func @groups
// CHECK:         %[[T:.*]] = builtin.unrealized_conversion_cast %t : tensor<10x4x!mico.int<4>> to tensor<10x4xi8>
// CHECK:           %[[E:.*]] = tensor.extract %[[T]][%[[ROW:.*]], %[[COLUMN:.*]]] : tensor<10x4xi8>
// CHECK-NEXT:      %[[F:.*]] = arith.sitofp %[[E]] : i8 to f32
// CHECK-NEXT:      %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT:      %[[GROUP:.*]] = arith.divui %[[COLUMN]], %[[TWO]]
// CHECK-NEXT:      %[[S:.*]] = tensor.extract %s[%[[ROW]], %[[GROUP]]]
// CHECK-NEXT:      arith.mulf %[[F]], %[[S]]
func.func @groups(%i: tensor<2xi64>, %t: tensor<10x4x!mico.int<4>>, %s: tensor<10x2xf32>) -> tensor<2x4xf32> {
  %y = mico.embedding(%i, %t) weight_scale(%s) : (tensor<2xi64>, tensor<10x4x!mico.int<4>>, tensor<10x2xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// Left alone: the same table as the weight of a layer.
// CHECK-LABEL: func.func @layer
// CHECK-NEXT:    mico.bitlinear(%x, %t)
func.func @layer(%x: tensor<?x4xf32>, %t: tensor<10x4xf32>) -> tensor<?x10xf32> {
  %y = mico.bitlinear(%x, %t) : (tensor<?x4xf32>, tensor<10x4xf32>) -> tensor<?x10xf32>
  func.return %y : tensor<?x10xf32>
}
