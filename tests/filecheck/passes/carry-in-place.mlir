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

// -----

// Tensors that change places are copied before either is overwritten.
// CHECK-LABEL: func.func @swap
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %x, %[[B:.*]] = %y)
// CHECK-NEXT:      %[[B2:.*]] = bufferization.alloc_tensor() copy(%[[B]])
// CHECK-NEXT:      %[[A2:.*]] = bufferization.alloc_tensor() copy(%[[A]])
// CHECK-NEXT:      %[[FIRST:.*]] = bufferization.materialize_in_destination %[[B2]] in %[[A]]
// CHECK-NEXT:      %[[SECOND:.*]] = bufferization.materialize_in_destination %[[A2]] in %[[B]]
// CHECK-NEXT:      scf.yield %[[FIRST]], %[[SECOND]]
func.func @swap(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: index) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first, %second = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    scf.yield %b, %a : tensor<4xf32>, tensor<4xf32>
  }
  func.return %first, %second : tensor<4xf32>, tensor<4xf32>
}

// -----

// What an inner loop carries is copied into the place of what it replaces.
// CHECK-LABEL: func.func @nested
// CHECK:         scf.for {{.*}} iter_args(%[[OUTER:.*]] = %x)
// CHECK:           %[[INNER:.*]] = scf.for
// CHECK:           %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[INNER]])
// CHECK-NEXT:      bufferization.materialize_in_destination %[[COPY]] in %[[OUTER]]
func.func @nested(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %zero to %n step %one iter_args(%outer = %x) -> (tensor<4xf32>) {
    %start = mico.relu(%outer) : (tensor<4xf32>) -> tensor<4xf32>
    %inner = scf.for %j = %zero to %n step %one iter_args(%old = %start) -> (tensor<4xf32>) {
      %new = mico.add(%old, %outer) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %new : tensor<4xf32>
    }
    scf.yield %inner : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
