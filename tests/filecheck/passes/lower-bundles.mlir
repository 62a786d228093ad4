// RUN: fewbit-opt %s -p lower-bundles | filecheck %s

// CHECK:      func.func @main(%[[U:.*]]: tensor<2x4x!mico.int<4>>, %[[S:.*]]: f32) -> (tensor<2x4x!mico.int<4>>, f32) {
// CHECK-NEXT:   func.return %[[U]], %[[S]] : tensor<2x4x!mico.int<4>>, f32
func.func @main(%b: !mico.qtensor<tensor<2x4x!mico.int<4>>, f32, none>) -> !mico.qtensor<tensor<2x4x!mico.int<4>>, f32, none> {
  func.return %b : !mico.qtensor<tensor<2x4x!mico.int<4>>, f32, none>
}
