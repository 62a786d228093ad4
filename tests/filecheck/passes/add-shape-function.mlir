// The shape function is put beside the entry, with which it is lowered.
// RUN: fewbit-opt %s -p make-shape-function,drop-asserts,to-upstream,add-shape-function --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p to-upstream,add-shape-function --split-input-file | filecheck %s --check-prefix=UNMADE

// CHECK-LABEL: func.func @open(%arg0: tensor<?x4xf32>)
// CHECK-LABEL: func.func @open_shapes(%arg0: index) -> (index, i1) {
// CHECK:         return %arg0, %true : index, i1

// Left alone: nothing made a shape function before.
// UNMADE-NOT: _shapes
func.func @open(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  func.return %x : tensor<?x4xf32>
}

// -----

// Left alone: a program without open sizes has none.
// CHECK-LABEL: func.func @known
// CHECK-NOT:   _shapes
func.func @known(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  func.return %x : tensor<2x4xf32>
}
