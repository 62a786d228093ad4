// Copies become linalg ops, which become loops; MLIR would call a function of its runtime.
// RUN: fewbit-opt %s -p copies-to-linalg | filecheck %s

// CHECK-LABEL: func.func @copy
// CHECK-NEXT:    linalg.copy {{.*}}ins(%arg0 : memref<4xf32>) outs(%arg1 : memref<4xf32>)
// CHECK-NEXT:    return
func.func @copy(%x: memref<4xf32>, %y: memref<4xf32>) {
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

// Left alone: one element that is read and written.
// CHECK-LABEL: func.func @element
// CHECK-NEXT:    memref.load
// CHECK-NEXT:    memref.store
// CHECK-NEXT:    return
func.func @element(%x: memref<4xf32>, %y: memref<4xf32>, %i: index) {
  %a = memref.load %x[%i] : memref<4xf32>
  memref.store %a, %y[%i] : memref<4xf32>
  return
}
