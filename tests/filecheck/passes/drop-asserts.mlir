// Assertions leave the entry: the shape function has checked them before it runs.
// RUN: fewbit-opt %s -p drop-asserts | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT:     cf.assert
// CHECK:         func.return %n
func.func @main(%x: tensor<?xf32>) -> index {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %filled = arith.cmpi sgt, %n, %zero : index
  cf.assert %filled, "the input is empty"
  func.return %n : index
}

// Left alone: another function, which the shape function knows nothing of.
// CHECK-LABEL: func.func private @helper
// CHECK-NEXT:    cf.assert %ok, "kept"
func.func private @helper(%ok: i1) {
  cf.assert %ok, "kept"
  func.return
}
