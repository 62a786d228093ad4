// Ops of dialects that the target cannot lower are refused, all of them at once.
// RUN: fewbit-opt %s -p refuse-foreign --split-input-file --verify-diagnostics | filecheck %s

// Left alone: what is lowered.
// CHECK-LABEL: func.func @lowered
// CHECK-NEXT:    arith.addi %x, %x
func.func @lowered(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  func.return %y : i32
}

// -----

// Refused: no kernel took the matmul, nor did lower-kernel.
// expected-error @unknown {{this target has no code for kernel.matmul (}}
// CHECK-NOT: @foreign
func.func @foreign(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>) -> tensor<2x3xf32> {
  %y = kernel.matmul(%x, %w) : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
