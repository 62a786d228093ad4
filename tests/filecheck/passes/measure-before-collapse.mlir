// The size of collapsed memory is that of the memory as it was, so that one size is one value.
// RUN: fewbit-opt %s -p measure-before-collapse --split-input-file | filecheck %s

// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[N:.*]] = memref.dim %arg0, %[[ONE]] : memref<1x?x4xf32>
// CHECK-NEXT:    return %[[N]]
func.func @program.entry(%x: memref<1x?x4xf32>) -> index {
  %zero = arith.constant 0 : index
  %c = memref.collapse_shape %x [[0, 1], [2]] : memref<1x?x4xf32> into memref<?x4xf32>
  %n = memref.dim %c, %zero : memref<?x4xf32>
  return %n : index
}

// -----

// Left alone: a size that is the product of two.
// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[C:.*]] = memref.collapse_shape
// CHECK-NEXT:    %[[N:.*]] = memref.dim %[[C]], %c0
// CHECK-NEXT:    return %[[N]]
func.func @program.entry(%x: memref<?x4xf32>) -> index {
  %zero = arith.constant 0 : index
  %c = memref.collapse_shape %x [[0, 1]] : memref<?x4xf32> into memref<?xf32>
  %n = memref.dim %c, %zero : memref<?xf32>
  return %n : index
}
