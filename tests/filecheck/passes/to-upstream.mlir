// A module of upstream's dialects goes over to upstream's MLIR, which prints it in its own way.
// RUN: fewbit-opt %s -p to-upstream --split-input-file --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @main(%arg0: i32) -> i32
// CHECK-NEXT:    %0 = arith.addi %arg0, %arg0 : i32
// CHECK-NEXT:    return %0 : i32
func.func @main(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  func.return %y : i32
}

// -----

// Refused: upstream does not know dialects of ours.
// expected-error @unknown {{upstream MLIR does not take the program}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
