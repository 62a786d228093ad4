// Inputs, outputs and weights of the entry become memory that its caller gives.
// RUN: fewbit-opt %s -p bind-memory -t cpu:x86-64-v3 --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p make-shape-function,bind-memory -t cpu:x86-64-v3 --split-input-file | filecheck %s --check-prefix=COUNTED
// RUN: not fewbit-opt %s -p bind-memory --split-input-file 2>&1 | filecheck %s --check-prefix=NONE

// Refused: without a target there is no place for weights.
// NONE: a pass needs to know the weight image

// A constant is a view of the weights.
// CHECK-NOT:   mico.constant
// CHECK-LABEL: func.func @main(%x: memref<4xf32>, %output0: memref<4xf32>, %weights: memref<64xi8>) {
// CHECK-DAG:     %[[X:.*]] = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
// CHECK-DAG:     %[[W:.*]] = memref.view %weights[%{{.*}}][] : memref<64xi8> to memref<4xf32>
// CHECK-NEXT:    %[[K:.*]] = bufferization.to_tensor %[[W]] restrict
// CHECK-NEXT:    %[[Y:.*]] = linalg.add ins(%[[X]], %[[K]] :
// CHECK-NEXT:    bufferization.materialize_in_destination %[[Y]] in restrict writable %output0
// CHECK-NEXT:    func.return
mico.constant @w : tensor<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = mico.get_constant @w : tensor<4xf32>
  %y = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// Left alone: another function than the entry.
// CHECK-LABEL: func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32>
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

// State is copied to the place of its new value unless it lies there, and changed in place.
// CHECK-LABEL: func.func @state(%x: memref<4xf32>, %s: memref<4xf32>, %output0: memref<4xf32>, %weights: memref<0xi8>) {
// CHECK:         %[[APART:.*]] = arith.cmpi ne
// CHECK-NEXT:    scf.if %[[APART]] {
// CHECK-NEXT:      "memref.copy"(%s, %output0)
// CHECK:         %[[STATE:.*]] = bufferization.to_tensor %output0 restrict writable
// CHECK:         %[[Y:.*]] = linalg.add ins(%{{.*}}, %[[STATE]] :
// CHECK-NEXT:    bufferization.materialize_in_destination %[[Y]] in %[[STATE]]
func.func @state(%x: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32> {fewbit.updates = 1 : i64}) {
  %y = linalg.add ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%s : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Where data decides on a size, the elements lie at the start of an output's memory without gaps, and
// the size is written to one more memory.
// COUNTED-LABEL: func.func @counted(%x: memref<2x4xf32>, %n: memref<index>, %output0: memref<2x?xf32>, %output0_dim1: memref<i64>, %weights: memref<0xi8>) {
// COUNTED:         %[[Y:.*]] = tensor.extract_slice
// COUNTED:         %[[SIZE:.*]] = tensor.dim %[[Y]]
// COUNTED-NEXT:    %[[NUMBER:.*]] = arith.index_cast %[[SIZE]] : index to i64
// COUNTED-NEXT:    memref.store %[[NUMBER]], %output0_dim1[] : memref<i64>
// COUNTED:         %[[SIZE:.*]] = tensor.dim %[[Y]]
// COUNTED:         %[[FRONT:.*]] = memref.reinterpret_cast %output0 to offset: [0], sizes: [2, %[[SIZE]]], strides: [%[[SIZE]], 1]
// COUNTED-NEXT:    bufferization.materialize_in_destination %[[Y]] in restrict writable %[[FRONT]]
func.func @counted(%x: tensor<2x4xf32>, %n: tensor<index>) -> tensor<2x?xf32> {
  %most = arith.constant 4 : index
  %i = tensor.extract %n[] : tensor<index>
  %cut = arith.minsi %i, %most : index
  %y = tensor.extract_slice %x[0, 0] [2, %cut] [1, 1] : tensor<2x4xf32> to tensor<2x?xf32>
  func.return %y : tensor<2x?xf32>
}
