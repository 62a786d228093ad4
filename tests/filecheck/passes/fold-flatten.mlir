// A channels-last image is flattened as it lies, and the weight's columns are put in that order.
// RUN: fewbit-opt %s -p fold-flatten | filecheck %s

mico.constant @w : tensor<1x4xf32> = dense<[[1.0, 2.0, 3.0, 4.0]]>

// The hash is of 1, 3, 2, 4: two channels of two pixels, now pixel by pixel.
// CHECK: mico.constant @w.1 : tensor<1x4xf32> = #mico.ref<"w.1", "1598613756789c47f4411f861b8cedb3e8e9cca3e7a5b6cafe8eae74c3c78b27">
// CHECK: mico.constant @w : {{.*}} = dense<{{\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]]>

// CHECK-LABEL: func.func @classifier
// CHECK-NEXT:    %[[FLAT:.*]] = mico.reshape(%x) {shape = [0, 4]} : (tensor<?x1x2x2xf32>) -> tensor<?x4xf32>
// CHECK-NEXT:    %[[RELU:.*]] = mico.relu(%[[FLAT]])
// CHECK-NEXT:    %[[W:.*]] = mico.get_constant @w.1
// CHECK-NEXT:    kernel.matmul(%[[RELU]], %[[W]])
func.func @classifier(%x: tensor<?x1x2x2xf32>) -> tensor<?x1xf32> {
  %w = mico.get_constant @w : tensor<1x4xf32>
  %transposed = mico.transpose(%x) {permutation = [0, 3, 1, 2]} : (tensor<?x1x2x2xf32>) -> tensor<?x2x1x2xf32>
  %flat = mico.flatten(%transposed) : (tensor<?x2x1x2xf32>) -> tensor<?x4xf32>
  %relu = mico.relu(%flat) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = kernel.matmul(%relu, %w) : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x1xf32>
  func.return %y : tensor<?x1xf32>
}

// Left alone: something else reads the features in their order.
// CHECK-LABEL: func.func @read_twice
// CHECK:         mico.get_constant @w :
// CHECK:         mico.transpose
// CHECK:         %[[FLAT:.*]] = mico.flatten
// CHECK:         kernel.matmul(%[[FLAT]]
func.func @read_twice(%x: tensor<?x1x2x2xf32>) -> (tensor<?x1xf32>, tensor<?x4xf32>) {
  %w = mico.get_constant @w : tensor<1x4xf32>
  %transposed = mico.transpose(%x) {permutation = [0, 3, 1, 2]} : (tensor<?x1x2x2xf32>) -> tensor<?x2x1x2xf32>
  %flat = mico.flatten(%transposed) : (tensor<?x2x1x2xf32>) -> tensor<?x4xf32>
  %y = kernel.matmul(%flat, %w) : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x1xf32>
  func.return %y, %flat : tensor<?x1xf32>, tensor<?x4xf32>
}
