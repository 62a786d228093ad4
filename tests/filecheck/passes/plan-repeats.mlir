// Buffers of a function that is called for parts which repeat lie in memory that its caller has.
// RUN: fewbit-opt %s -p plan-repeats,canonicalize,cse --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p plan-repeats,plan-memory,canonicalize --split-input-file | filecheck %s --check-prefix=ARENA

// Two buffers that live together are one of the caller's, for each call.
// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[A:.*]] = memref.alloc() : memref<128xi8>
// CHECK-NEXT:    call @program.repeated_0(%arg0, %[[A]])
// CHECK:         %[[B:.*]] = memref.alloc() : memref<128xi8>
// CHECK-NEXT:    call @program.repeated_0(%arg0, %[[B]])
// CHECK-LABEL: func.func private @program.repeated_0(%arg0: memref<4xf32>, %arg1: memref<128xi8>)
// CHECK-NOT:     memref.alloc
// CHECK:         memref.view %arg1[%c0][] : memref<128xi8> to memref<4xf32>
// CHECK:         memref.view %arg1[%c64][] : memref<128xi8> to memref<4xf32>

// The caller's plan has them in one place: one call ends before the other begins.
// ARENA-LABEL: func.func @program.entry_arena_bytes
// ARENA:         %[[BYTES:.*]] = arith.constant 128 : index
// ARENA-NEXT:    return %[[BYTES]]
func.func @program.entry(%x: memref<4xf32>) {
  call @program.repeated_0(%x) : (memref<4xf32>) -> ()
  call @program.repeated_0(%x) : (memref<4xf32>) -> ()
  return
}
func.func private @program.repeated_0(%x: memref<4xf32>) attributes {fewbit.repeated = 2 : i64} {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  call @use(%x, %a, %b) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
  return
}
func.func private @use(memref<4xf32>, memref<4xf32>, memref<4xf32>)

// -----

// An open size is a unit, worked out once before the first call: that of the caller's own memory.
// CHECK-LABEL: func.func @program.entry(%arg0: memref<?xf32>)
// CHECK:         %[[N:.*]] = memref.dim %arg0, %c0
// CHECK:         %[[BYTES:.*]] = arith.muli %[[N]], %c16
// CHECK:         %[[A:.*]] = memref.alloc(%[[BYTES]]) : memref<?xi8>
// CHECK-NEXT:    call @program.repeated_0(%arg0, %[[A]], %[[N]])
// CHECK-LABEL: func.func private @program.repeated_0(%arg0: memref<?xf32>, %arg1: memref<?xi8>, %arg2: index)
// CHECK:         memref.view %arg1[%c0][%{{.*}}] : memref<?xi8> to memref<?xf32>
func.func @program.entry(%x: memref<?xf32>) {
  call @program.repeated_0(%x) : (memref<?xf32>) -> ()
  call @program.repeated_0(%x) : (memref<?xf32>) -> ()
  return
}
func.func private @program.repeated_0(%x: memref<?xf32>) attributes {fewbit.repeated = 2 : i64} {
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%x, %a) : (memref<?xf32>, memref<?xf32>) -> ()
  return
}
func.func private @use(memref<?xf32>, memref<?xf32>)

// -----

// Left alone: other functions than those.
// CHECK-LABEL: func.func private @helper
// CHECK-NEXT:    memref.alloc() : memref<4xf32>
func.func @program.entry() {
  call @helper() : () -> ()
  return
}
func.func private @helper() {
  %a = memref.alloc() : memref<4xf32>
  call @use(%a) : (memref<4xf32>) -> ()
  return
}
func.func private @use(memref<4xf32>)
