// RUN: fewbit-opt %s -p lower-layout,lower-few-bit-types | filecheck %s
// RUN: not fewbit-opt %s -p lower-few-bit-types 2>&1 | filecheck %s --check-prefix=LEFT

// Refused: an op that has no meaning for bytes.
// LEFT: 1 ops still need few-bit types: mico.flatten
// CHECK:      func.func @main(%x: tensor<2x4xi8>) -> tensor<8xi8> {
// CHECK-NEXT:   %y = tensor.collapse_shape %x {{.*}} : tensor<2x4xi8> into tensor<8xi8>
// CHECK-NEXT:   func.return %y : tensor<8xi8>
func.func @main(%x: tensor<2x4x!mico.int<4>>) -> tensor<8x!mico.int<4>> {
  %y = mico.flatten(%x) {start_dim = 0} : (tensor<2x4x!mico.int<4>>) -> tensor<8x!mico.int<4>>
  func.return %y : tensor<8x!mico.int<4>>
}
