// Allocations of the entry become views of one arena, at offsets planned by lifetimes.
// RUN: fewbit-opt %s -p plan-memory,canonicalize --split-input-file --verify-diagnostics | filecheck %s

// The second buffer lies where the first was; the third must not, while the second is in use.
// CHECK-LABEL: func.func @program.entry(%arg0: memref<4xf32>, %arg1: memref<?xi8>)
// CHECK-NOT:     memref.alloc
// CHECK:         %[[A:.*]] = memref.view %arg1[%c0][]
// CHECK-NEXT:    call @use(%[[A]], %[[A]])
// CHECK-NEXT:    %[[B:.*]] = memref.view %arg1[%[[FIRST:.*]]][]
// CHECK-NEXT:    %[[C:.*]] = memref.view %arg1[%[[SECOND:.*]]][]
// CHECK-NEXT:    call @use(%[[B]], %[[C]])
// CHECK-LABEL: func.func @program.entry_arena_bytes
// CHECK:         %[[BYTES:.*]] = arith.constant 128 : index
// CHECK:         return %[[BYTES]]
func.func @program.entry(%x: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  call @use(%a, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  %b = memref.alloc() : memref<4xf32>
  %c = memref.alloc() : memref<4xf32>
  call @use(%b, %c) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
func.func private @use(memref<4xf32>, memref<4xf32>)

// -----

// A reshape to sizes in memory is a view: what it shows is in use as long as the view is.
// CHECK-LABEL: func.func @program.entry(
// CHECK-LABEL: func.func @program.entry_arena_bytes
// CHECK:         %[[BYTES:.*]] = arith.constant 128 : index
// CHECK:         return %[[BYTES]]
func.func @program.entry(%x: memref<2xindex>) {
  %a = memref.alloc() : memref<4xf32>
  %view = memref.reshape %a(%x) : (memref<4xf32>, memref<2xindex>) -> memref<?x?xf32>
  %b = memref.alloc() : memref<4xf32>
  call @use(%b) : (memref<4xf32>) -> ()
  call @look(%view) : (memref<?x?xf32>) -> ()
  return
}
func.func private @use(memref<4xf32>)
func.func private @look(memref<?x?xf32>)

// -----

// An open size is a unit of the arena.
// CHECK-LABEL: func.func @program.entry(%arg0: memref<?xf32>, %arg1: memref<?xi8>)
// CHECK:         %[[N:.*]] = memref.dim %arg0, %c0
// CHECK:         memref.view %arg1[%{{.*}}][%[[N]]] : memref<?xi8> to memref<?xf32>
// CHECK-LABEL: func.func @program.entry_arena_bytes
// CHECK:         %[[N:.*]] = memref.dim %arg0, %c0
// CHECK:         arith.muli %[[N]], %c16
func.func @program.entry(%x: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  return
}
func.func private @use(memref<?xf32>)

// -----

// Left alone: the memory of inputs and outputs is the caller's; an arena of nothing is planned.
// CHECK-LABEL: func.func @program.entry(%arg0: memref<4xf32>, %arg1: memref<?xi8>)
// CHECK-NEXT:    call @use(%arg0)
// CHECK-LABEL: func.func @program.entry_arena_bytes
// CHECK-NEXT:    %c0 = arith.constant 0 : index
// CHECK-NEXT:    return %c0
func.func @program.entry(%x: memref<4xf32>) {
  call @use(%x) : (memref<4xf32>) -> ()
  return
}
func.func private @use(memref<4xf32>)

// -----

// A size that data decides on has its place by its bound, 16 numbers, and is there as it is.
// CHECK-LABEL: func.func @program.entry(%arg0: memref<1xindex>, %arg1: memref<?xi8>)
// CHECK:         %[[READ:.*]] = memref.load %arg0
// CHECK:         %[[SIZE:.*]] = arith.minsi %[[READ]], %c16
// CHECK:         memref.view %arg1[%c0][%[[SIZE]]] : memref<?xi8> to memref<?xf32>
// CHECK-LABEL: func.func @program.entry_arena_bytes
// CHECK-NEXT:    %[[BYTES:.*]] = arith.constant 64 : index
// CHECK-NEXT:    return %[[BYTES]]
func.func @program.entry(%x: memref<1xindex>) {
  %zero = arith.constant 0 : index
  %most = arith.constant 16 : index
  %read = memref.load %x[%zero] : memref<1xindex>
  %n = arith.minsi %read, %most : index
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  return
}
func.func private @use(memref<?xf32>)

// -----

// So does one that is bounded by a size: the arena has room for all of it.
// CHECK-LABEL: func.func @program.entry_arena_bytes
// CHECK:         %[[N:.*]] = memref.dim %arg1, %c0
// CHECK:         arith.muli %[[N]], %c16
func.func @program.entry(%x: memref<1xindex>, %y: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %most = memref.dim %y, %zero : memref<?xf32>
  %read = memref.load %x[%zero] : memref<1xindex>
  %n = arith.minsi %read, %most : index
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  return
}
func.func private @use(memref<?xf32>)

// -----

// Refused: a size that only the run knows, with no bound.
// expected-error @unknown {{the size of a buffer depends on data}}
func.func @program.entry(%x: memref<1xindex>) {
  %zero = arith.constant 0 : index
  %n = memref.load %x[%zero] : memref<1xindex>
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  return
}
func.func private @use(memref<?xf32>)
