// Linear layers of one input of few rows become one matmul, whose result is sliced.
// RUN: fewbit-opt %s -p join-matmuls -t cuda:sm_80 --split-input-file | filecheck %s

// What follows a matmul follows its part.
// CHECK: mico.constant @q.joined : tensor<6x8xf32>
// CHECK-LABEL: func.func @same_input
// CHECK-NEXT:    %[[W:.*]] = mico.get_constant @q.joined
// CHECK-NEXT:    %[[BOTH:.*]] = kernel.matmul(%x, %[[W]]) : {{.*}} -> tensor<1x6xf32>
// CHECK-DAG:     %[[K:.*]] = tensor.extract_slice %[[BOTH]][0, 4] [1, 2] [1, 1]
// CHECK-DAG:     %[[Q:.*]] = tensor.extract_slice %[[BOTH]][0, 0] [1, 4] [1, 1]
// CHECK:         %[[RELU:.*]] = linalg.generic {{.*}} ins(%[[Q]] :
// CHECK:           arith.maximumf
// CHECK:         func.return %[[RELU]], %[[K]]
mico.constant @q : tensor<4x8xf32> = dense<1.0>
mico.constant @k : tensor<2x8xf32> = dense<2.0>
func.func @same_input(%x: tensor<1x8xf32>) -> (tensor<1x4xf32>, tensor<1x2xf32>) {
  %a = kernel.matmul(%x, @q) {minimum = 0.0} : (tensor<1x8xf32>) -> tensor<1x4xf32>
  %b = kernel.matmul(%x, @k) : (tensor<1x8xf32>) -> tensor<1x2xf32>
  func.return %a, %b : tensor<1x4xf32>, tensor<1x2xf32>
}

// -----

// Left alone: two inputs.
// CHECK-LABEL: func.func @two_inputs
// CHECK:         kernel.matmul(%x,
// CHECK:         kernel.matmul(%y,
mico.constant @q : tensor<4x8xf32> = dense<1.0>
mico.constant @k : tensor<2x8xf32> = dense<2.0>
func.func @two_inputs(%x: tensor<1x8xf32>, %y: tensor<1x8xf32>) -> (tensor<1x4xf32>, tensor<1x2xf32>) {
  %a = kernel.matmul(%x, @q) : (tensor<1x8xf32>) -> tensor<1x4xf32>
  %b = kernel.matmul(%y, @k) : (tensor<1x8xf32>) -> tensor<1x2xf32>
  func.return %a, %b : tensor<1x4xf32>, tensor<1x2xf32>
}

// -----

// Left alone: many rows, of which each layer has enough work for itself.
// CHECK-LABEL: func.func @many_rows
// CHECK:         kernel.matmul(%x, %{{.*}}) : {{.*}} -> tensor<65x4xf32>
// CHECK:         kernel.matmul(%x, %{{.*}}) : {{.*}} -> tensor<65x2xf32>
mico.constant @q : tensor<4x8xf32> = dense<1.0>
mico.constant @k : tensor<2x8xf32> = dense<2.0>
func.func @many_rows(%x: tensor<65x8xf32>) -> (tensor<65x4xf32>, tensor<65x2xf32>) {
  %a = kernel.matmul(%x, @q) : (tensor<65x8xf32>) -> tensor<65x4xf32>
  %b = kernel.matmul(%x, @k) : (tensor<65x8xf32>) -> tensor<65x2xf32>
  func.return %a, %b : tensor<65x4xf32>, tensor<65x2xf32>
}
