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

// A size that is the product of two.
// CHECK-LABEL: func.func @program.entry
// CHECK:         memref.collapse_shape
// CHECK:         %[[N:.*]] = memref.dim %arg0, %c0
// CHECK:         %[[SIZE:.*]] = arith.muli %[[N]], %c4
// CHECK-NEXT:    return %[[SIZE]]
func.func @program.entry(%x: memref<?x4xf32>) -> index {
  %zero = arith.constant 0 : index
  %c = memref.collapse_shape %x [[0, 1]] : memref<?x4xf32> into memref<?xf32>
  %n = memref.dim %c, %zero : memref<?xf32>
  return %n : index
}

// -----

// Memory that is allocated is as large as it was asked to be.
// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[SIZE:.*]] = arith.muli %arg0, %arg1
// CHECK-NEXT:    return %[[SIZE]]
func.func @program.entry(%a: index, %b: index) -> index {
  %zero = arith.constant 0 : index
  %y = memref.alloc(%a, %b) : memref<?x?x2xf32>
  %c = memref.collapse_shape %y [[0, 1], [2]] : memref<?x?x2xf32> into memref<?x2xf32>
  %n = memref.dim %c, %zero : memref<?x2xf32>
  return %n : index
}

// -----

// Left alone: the size of memory that is not collapsed.
// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[N:.*]] = memref.dim %arg0, %c0
// CHECK-NEXT:    return %[[N]]
func.func @program.entry(%x: memref<?x4xf32>) -> index {
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?x4xf32>
  return %n : index
}
