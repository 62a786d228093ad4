// Outputs are copied in an order in which none is overwritten before it is read.
// RUN: fewbit-opt %s -p order-outputs --split-input-file | filecheck %s

// The second output lies in the memory of the first.
// CHECK-LABEL: func.func @program.entry
// CHECK:         call @kernel(%arg0)
// CHECK:         %[[NEW:.*]] = memref.alloc
// CHECK:         %[[VIEW:.*]] = memref.expand_shape %arg0
// CHECK-NEXT:    memref.copy %[[VIEW]], %arg1
// CHECK-NEXT:    memref.copy %[[NEW]], %arg0
// CHECK-NEXT:    return
func.func @program.entry(%first: memref<4xf32>, %second: memref<4x1xf32>) {
  func.call @kernel(%first) : (memref<4xf32>) -> ()
  %new = memref.alloc() : memref<4xf32>
  func.call @kernel(%new) : (memref<4xf32>) -> ()
  %view = memref.expand_shape %first [[0, 1]] output_shape [4, 1] : memref<4xf32> into memref<4x1xf32>
  memref.copy %new, %first : memref<4xf32> to memref<4xf32>
  memref.copy %view, %second : memref<4x1xf32> to memref<4x1xf32>
  return
}
func.func private @kernel(memref<4xf32>)

// -----

// So may what a branch gives, and a copy to a part of an output's memory writes that.
// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[EITHER:.*]] = scf.if
// CHECK:         %[[PART:.*]] = memref.reinterpret_cast %arg0
// CHECK-NEXT:    memref.copy %[[EITHER]], %arg1
// CHECK-NEXT:    memref.copy %{{.*}}, %[[PART]]
func.func @program.entry(%first: memref<4xf32>, %second: memref<4xf32>, %third: memref<4xf32>, %c: i1) {
  %either = scf.if %c -> (memref<4xf32>) {
    scf.yield %first : memref<4xf32>
  } else {
    scf.yield %third : memref<4xf32>
  }
  %new = memref.alloc() : memref<2xf32>
  %part = memref.reinterpret_cast %first to offset: [0], sizes: [2], strides: [1] : memref<4xf32> to memref<2xf32>
  memref.copy %new, %part : memref<2xf32> to memref<2xf32>
  memref.copy %either, %second : memref<4xf32> to memref<4xf32>
  return
}

// -----

// Left alone: copies of other memory, and what is copied before something is computed from it.
// CHECK-LABEL: func.func @program.entry
// CHECK:         memref.copy %arg1, %arg0
// CHECK-NEXT:    call @kernel(%arg0)
// CHECK-NEXT:    memref.copy %[[A:.*]], %arg1
// CHECK-NEXT:    memref.copy %[[B:.*]], %arg2
func.func @program.entry(%first: memref<4xf32>, %second: memref<4xf32>, %third: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  memref.copy %second, %first : memref<4xf32> to memref<4xf32>
  func.call @kernel(%first) : (memref<4xf32>) -> ()
  memref.copy %a, %second : memref<4xf32> to memref<4xf32>
  memref.copy %b, %third : memref<4xf32> to memref<4xf32>
  return
}
func.func private @kernel(memref<4xf32>)

// -----

// A transposed view of an output is its memory, too.
// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[TRANSPOSED:.*]] = memref.transpose %arg0
// CHECK-NEXT:    memref.copy %[[TRANSPOSED]], %arg1
// CHECK-NEXT:    memref.copy %{{.*}}, %arg0
func.func @program.entry(%first: memref<2x3xf32>, %second: memref<3x2xf32, strided<[1, 3]>>) {
  %new = memref.alloc() : memref<2x3xf32>
  %transposed = memref.transpose %first (i, j) -> (j, i) : memref<2x3xf32> to memref<3x2xf32, strided<[1, 3]>>
  memref.copy %new, %first : memref<2x3xf32> to memref<2x3xf32>
  memref.copy %transposed, %second : memref<3x2xf32, strided<[1, 3]>> to memref<3x2xf32, strided<[1, 3]>>
  return
}
