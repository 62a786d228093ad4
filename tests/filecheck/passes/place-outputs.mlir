// What is computed for an output is computed in its memory, not copied there.
// RUN: fewbit-opt %s -p place-outputs --split-input-file | filecheck %s

// CHECK-LABEL: func.func @program.entry
// CHECK-NEXT:    %[[VIEW:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [4, 1], strides: [1, 1]
// CHECK-NEXT:    call @kernel(%[[VIEW]])
// CHECK-NOT:     memref.copy
func.func @program.entry(%output: memref<4xf32>) {
  %a = memref.alloc() : memref<4x1xf32>
  func.call @kernel(%a) : (memref<4x1xf32>) -> ()
  %c = memref.collapse_shape %a [[0, 1]] : memref<4x1xf32> into memref<4xf32>
  memref.copy %c, %output : memref<4xf32> to memref<4xf32>
  return
}
func.func private @kernel(memref<4x1xf32>)

// -----

// Left alone: something else uses the output.
// CHECK-LABEL: func.func @program.entry
// CHECK-NEXT:    %[[A:.*]] = memref.alloc
// CHECK-NEXT:    call @kernel(%[[A]])
// CHECK-NEXT:    call @kernel(%arg0)
// CHECK-NEXT:    memref.copy %[[A]], %arg0
func.func @program.entry(%output: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  func.call @kernel(%a) : (memref<4xf32>) -> ()
  func.call @kernel(%output) : (memref<4xf32>) -> ()
  memref.copy %a, %output : memref<4xf32> to memref<4xf32>
  return
}
func.func private @kernel(memref<4xf32>)

// -----

// Left alone: part of a buffer.
// CHECK-LABEL: func.func @program.entry
// CHECK-NEXT:    %[[A:.*]] = memref.alloc
// CHECK:         memref.copy
func.func @program.entry(%output: memref<4xf32>) {
  %a = memref.alloc() : memref<8xf32>
  func.call @kernel(%a) : (memref<8xf32>) -> ()
  %half = memref.subview %a[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %half, %output : memref<4xf32, strided<[1]>> to memref<4xf32>
  return
}
func.func private @kernel(memref<8xf32>)
