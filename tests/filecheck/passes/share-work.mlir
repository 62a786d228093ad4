// Threads run the entry together: each does its part of every loop nest, then waits for the others.
// RUN: fewbit-opt %s -p share-work | filecheck %s
// RUN: fewbit-opt %s -p 'share-work{wait-always=true}' | filecheck %s --check-prefix=ALWAYS

// From 64 * thread / threads to 64 * (thread + 1) / threads.
// CHECK-LABEL: func.func private @split
// CHECK:         %[[LENGTH:.*]] = arith.subi %c64, %c0
// CHECK-NEXT:    %[[BEFORE:.*]] = arith.muli %[[LENGTH]], %arg1
// CHECK-NEXT:    %[[PART:.*]] = arith.divui %[[BEFORE]], %arg2
// CHECK-NEXT:    %[[BEGIN:.*]] = arith.addi %c0, %[[PART]]
// CHECK:         %[[END:.*]] = arith.addi %c0
// CHECK-NEXT:    scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c1
func.func private @split(%x: memref<64xf32>, %thread: index, %threads: index) attributes {loop_nest = {overlaps = false, split = 0 : i64}} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %k = arith.constant 0.0 : f32
  scf.for %i = %zero to %n step %one {
    memref.store %k, %x[%i] : memref<64xf32>
  }
  return
}

// What is too small to be split, the first thread does alone.
// CHECK-LABEL: func.func private @small
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %arg1, %c0 : index
// CHECK-NEXT:    scf.if %[[FIRST]]
func.func private @small(%x: memref<64xf32>, %thread: index, %threads: index) attributes {loop_nest = {overlaps = false}} {
  %zero = arith.constant 0 : index
  %k = arith.constant 0.0 : f32
  memref.store %k, %x[%zero] : memref<64xf32>
  return
}

// Left alone: what is no loop nest.
// CHECK-LABEL: func.func private @helper(%arg0: index) -> index
// CHECK-NEXT:    return %arg0
func.func private @helper(%n: index) -> index {
  return %n : index
}

// Nobody waits between nests that the first thread does alone, but where cycles are counted.
// CHECK-LABEL: func.func @program.entry(%arg0: memref<64xf32>, %arg1: index, %arg2: index, %arg3: !llvm.ptr)
// CHECK:         call @split(%arg0, %arg1, %arg2)
// CHECK-NEXT:    call @threads.barrier(%arg3, %arg2)
// CHECK-NEXT:    call @small(%arg0, %arg1, %arg2)
// CHECK-NEXT:    call @small(%arg0, %arg1, %arg2)
// CHECK-NEXT:    call @threads.barrier(%arg3, %arg2)
// CHECK-NEXT:    call @program.repeated_0(%arg0, %arg1, %arg2, %arg3)
// CHECK-NEXT:    return
// ALWAYS:         call @small
// ALWAYS-NEXT:    call @threads.barrier
// ALWAYS-NEXT:    call @small
// ALWAYS-NEXT:    call @threads.barrier
func.func @program.entry(%x: memref<64xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  call @split(%x, %zero, %one) : (memref<64xf32>, index, index) -> ()
  call @small(%x, %zero, %one) : (memref<64xf32>, index, index) -> ()
  call @small(%x, %zero, %one) : (memref<64xf32>, index, index) -> ()
  call @program.repeated_0(%x) : (memref<64xf32>) -> ()
  return
}

// All threads take part in a call for a part that repeats, which waits for itself.
// CHECK-LABEL: func.func private @program.repeated_0(%arg0: memref<64xf32>, %arg1: index, %arg2: index, %arg3: !llvm.ptr)
// CHECK:         call @small(%arg0, %arg1, %arg2)
// CHECK-NEXT:    call @threads.barrier(%arg3, %arg2)
// CHECK-NEXT:    return
func.func private @program.repeated_0(%x: memref<64xf32>) attributes {fewbit.repeated = 2 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  call @small(%x, %zero, %one) : (memref<64xf32>, index, index) -> ()
  return
}

// Of nests of dynamic size, a run decides whether all share them, or the first does them alone. Between
// two of which both may be small, all wait where one is not.
// CHECK-LABEL: func.func private @grows
func.func private @grows(%x: memref<?x64xf32>, %thread: index, %threads: index) attributes {loop_nest = {overlaps = false, split = 0 : i64}, fewbit.iterations = array<i64: 2048, 64, 0, 0>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %zero : memref<?x64xf32>
  %k = arith.constant 0.0 : f32
  scf.for %i = %zero to %n step %one {
    memref.store %k, %x[%i, %zero] : memref<?x64xf32>
  }
  return
}

// CHECK-LABEL: func.func private @program.repeated_1(%arg0: memref<?x64xf32>, %arg1: memref<64xf32>, %arg2: index, %arg3: index, %arg4: !llvm.ptr)
// CHECK:         %[[N:.*]] = memref.dim %arg0, %{{.*}}
// CHECK-NEXT:    %[[TOTAL:.*]] = arith.muli %c64, %[[N]]
// CHECK:         %[[SMALL:.*]] = arith.cmpi ult, %[[TOTAL]], %c2048
// CHECK:         %[[FIRST:.*]] = arith.select %[[SMALL]], %{{.*}}, %arg3
// CHECK-NEXT:    %[[IN:.*]] = arith.cmpi ult, %arg2, %[[FIRST]]
// CHECK-NEXT:    scf.if %[[IN]] {
// CHECK-NEXT:      call @grows(%arg0, %arg2, %[[FIRST]])
// CHECK-NEXT:    }
// CHECK:         %[[SECOND:.*]] = arith.select
// CHECK-NEXT:    %[[MOST:.*]] = arith.maxui %[[FIRST]], %[[SECOND]]
// CHECK-NEXT:    call @threads.barrier(%arg4, %[[MOST]])
// CHECK-NEXT:    %{{.*}} = arith.cmpi ult, %arg2, %[[SECOND]]
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      call @grows(%arg0, %arg2, %[[SECOND]])
// CHECK-NEXT:    }
// CHECK-NEXT:    call @threads.barrier(%arg4, %arg3)
// CHECK-NEXT:    call @split
// CHECK-NEXT:    call @threads.barrier(%arg4, %arg3)
// CHECK-NEXT:    return
func.func private @program.repeated_1(%x: memref<?x64xf32>, %y: memref<64xf32>) attributes {fewbit.repeated = 2 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  call @grows(%x, %zero, %one) : (memref<?x64xf32>, index, index) -> ()
  call @grows(%x, %zero, %one) : (memref<?x64xf32>, index, index) -> ()
  call @split(%y, %zero, %one) : (memref<64xf32>, index, index) -> ()
  return
}
