// RUN: fewbit-opt %s -p lower-bundles | filecheck %s

// CHECK:      func.func @main(%[[U:.*]]: tensor<2x4x!mico.int<4>>, %[[S:.*]]: f32) -> (tensor<2x4x!mico.int<4>>, f32) {
// CHECK-NEXT:   func.return %[[U]], %[[S]] : tensor<2x4x!mico.int<4>>, f32
func.func @main(%b: !mico.qtensor<tensor<2x4x!mico.int<4>>, f32, none>) -> !mico.qtensor<tensor<2x4x!mico.int<4>>, f32, none> {
  func.return %b : !mico.qtensor<tensor<2x4x!mico.int<4>>, f32, none>
}

// Left alone: values that are no bundles.
// CHECK:      func.func @plain(%x: tensor<2x4x!mico.int<4>>, %s: f32) -> (tensor<2x4x!mico.int<4>>, f32) {
// CHECK-NEXT:   func.return %x, %s
func.func @plain(%x: tensor<2x4x!mico.int<4>>, %s: f32) -> (tensor<2x4x!mico.int<4>>, f32) {
  func.return %x, %s : tensor<2x4x!mico.int<4>>, f32
}
