// What an iteration of a loop hands to the next is written where it was read from.
// RUN: fewbit-opt %s -p carry-in-place --split-input-file | filecheck %s

// CHECK-LABEL: func.func @loop
// CHECK:         scf.for {{.*}} iter_args(%[[OLD:.*]] = %x)
// CHECK-NEXT:      %[[NEW:.*]] = mico.relu(%[[OLD]])
// CHECK-NEXT:      %[[KEPT:.*]] = bufferization.materialize_in_destination %[[NEW]] in %[[OLD]]
// CHECK-NEXT:      scf.yield %[[KEPT]]
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %zero to %n step %one iter_args(%old = %x) -> (tensor<4xf32>) {
    %new = mico.relu(%old) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %new : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

// Left alone: what is handed on unchanged, and what is no tensor.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     bufferization
// CHECK:           scf.yield %old, %more
func.func @kept(%x: tensor<4xf32>, %n: index) -> (tensor<4xf32>, index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y, %k = scf.for %i = %zero to %n step %one iter_args(%old = %x, %count = %zero) -> (tensor<4xf32>, index) {
    %more = arith.addi %count, %i : index
    scf.yield %old, %more : tensor<4xf32>, index
  }
  func.return %y, %k : tensor<4xf32>, index
}
