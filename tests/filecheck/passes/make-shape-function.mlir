// What tells the shapes of outputs is written as a function of open sizes; add-shape-function shows it.
// RUN: fewbit-opt %s -p make-shape-function,add-shape-function --split-input-file --verify-diagnostics | filecheck %s

// Sizes of inputs come in; the output's, and whether all assertions hold, come out.
// CHECK: #[[SUM:.*]] = affine_map<()[s0, s1] -> (s0 + s1)>
// CHECK-LABEL: func.func @main(
// CHECK-LABEL: func.func @main_shapes(%arg0: index, %arg1: index) -> (index, i1) {
// CHECK-NEXT:    %[[HOLDS:.*]] = arith.cmpi eq, %arg0, %arg1 : index
// CHECK-NEXT:    %[[SIZE:.*]] = affine.apply #[[SUM]]()[%arg0, %arg1]
// CHECK-NEXT:    return %[[SIZE]], %[[HOLDS]] : index, i1
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %zero = arith.constant 0 : index
  %m = tensor.dim %x, %zero : tensor<?x4xf32>
  %n = tensor.dim %y, %zero : tensor<?x4xf32>
  %same = arith.cmpi eq, %m, %n : index
  cf.assert %same, "sizes differ"
  %z = tensor.concat dim(0) %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}

// -----

// Left alone: where all sizes are known there is nothing to tell.
// CHECK-LABEL: func.func @known
// CHECK-NOT:   func.func
func.func @known(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  func.return %x : tensor<2x4xf32>
}

// -----

// Refused: a size that depends on what an input contains.
// expected-error @unknown {{a size depends on what the inputs contain, not only on their shapes}}
func.func @main(%n: tensor<index>) -> tensor<?xf32> {
  %i = tensor.extract %n[] : tensor<index>
  %z = tensor.empty(%i) : tensor<?xf32>
  func.return %z : tensor<?xf32>
}
