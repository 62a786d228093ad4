// RUN: fewbit-opt %s -p to-upstream,keep-calls | filecheck %s

// CHECK: func.func @main
// CHECK-SAME: no_inline
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
