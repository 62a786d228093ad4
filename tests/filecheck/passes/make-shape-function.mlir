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
// CHECK-NOT:   @known_shapes
func.func @known(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  func.return %x : tensor<2x4xf32>
}

// -----

// A size that data decides on is told by its bound: a slice is no larger than what it is cut from.
// CHECK-LABEL: func.func @counted_shapes(%arg0: index) -> (index, i1) {
// CHECK-NEXT:    %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT:    %[[MOST:.*]] = arith.addi %arg0, %arg0 : index
// CHECK-NEXT:    return %[[MOST]], %[[TRUE]] : index, i1
func.func @counted(%x: tensor<?xf32>, %count: tensor<index>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %i = tensor.extract %count[] : tensor<index>
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %least = arith.minsi %i, %n : index
  %cut = arith.maxsi %least, %zero : index
  %y = tensor.extract_slice %x[0] [%cut] [1] : tensor<?xf32> to tensor<?xf32>
  %last = arith.subi %cut, %one : index
  %inside = arith.cmpi slt, %last, %n : index
  cf.assert %inside, "a slice is not inside its tensor"
  %z = tensor.concat dim(0) %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %z : tensor<?xf32>
}

// -----

// A product divided by a factor is the other factor, whatever the data is: sizes of a reshape.
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<?xf32>, %count: tensor<index>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %i = tensor.extract %count[] : tensor<index>
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %least = arith.minsi %i, %n : index
  %cut = arith.maxsi %least, %zero : index
  %y = tensor.extract_slice %x[0] [%cut] [1] : tensor<?xf32> to tensor<?xf32>
  %all = arith.muli %cut, %three : index
  %part = arith.divsi %all, %three : index
  %same = arith.cmpi eq, %part, %cut : index
  cf.assert %same, "sizes differ"
  func.return %y : tensor<?xf32>
}

// -----

// Refused: a size that depends on what an input contains, and on nothing else.
// expected-error @unknown {{dimension 0 of output 0 depends on what the inputs contain, not only on their shapes, and has no bound}}
func.func @main(%n: tensor<index>) -> tensor<?xf32> {
  %i = tensor.extract %n[] : tensor<index>
  %z = tensor.empty(%i) : tensor<?xf32>
  func.return %z : tensor<?xf32>
}

// -----

// Refused: two sizes that must be equal, as only a run would tell.
// expected-error @unknown {{sizes that depend on what the inputs contain must be equal, or fit together}}
func.func @main(%x: tensor<4xf32>, %m: tensor<index>, %n: tensor<index>) -> tensor<f32> {
  %i = tensor.extract %m[] : tensor<index>
  %j = tensor.extract %n[] : tensor<index>
  %y = tensor.extract_slice %x[0] [%i] [1] : tensor<4xf32> to tensor<?xf32>
  %same = arith.cmpi eq, %i, %j : index
  cf.assert %same, "sizes differ"
  %zero = arith.constant 0 : index
  %z = tensor.extract %y[%zero] : tensor<?xf32>
  %s = tensor.from_elements %z : tensor<f32>
  func.return %s : tensor<f32>
}

// -----

// Of parts that repeat, the first call says what is asserted; the others have its sizes.
// CHECK-LABEL: func.func @parts_shapes(%arg0: index) -> (index, i1) {
// CHECK:         %[[HOLDS:.*]] = arith.cmpi eq, %arg0, %c4
// CHECK-NEXT:    return %arg0, %[[HOLDS]] : index, i1
func.func @parts(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %a = func.call @program.repeated_0(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = func.call @program.repeated_0(%a) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %c = func.call @program.repeated_0(%b) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %c : tensor<?x4xf32>
}
func.func private @program.repeated_0(%x: tensor<?x4xf32>) -> (tensor<?x4xf32> {fewbit.sized_like = 0 : i64}) attributes {fewbit.repeated = 3 : i64, fewbit.constants = []} {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %m = tensor.dim %x, %zero : tensor<?x4xf32>
  %fits = arith.cmpi eq, %m, %four : index
  cf.assert %fits, "sizes differ"
  %y = linalg.add ins(%x, %x : tensor<?x4xf32>, tensor<?x4xf32>) outs(%x : tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
