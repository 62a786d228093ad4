// What a layer reads of a constant through other ops is a constant, with a name that recipes know.
// RUN: fewbit-opt %s -p fold-layer-weights --split-input-file | filecheck %s

// The hash is of [[1, 3], [2, 4]].
// CHECK: mico.constant @fc.weight : tensor<2x2xf32> = #mico.ref<"fc.weight", "a7e3168904aca4119abc6f24ff02cc449313ecdd7dcb2747427e483bddec6b57">
mico.constant @fc.weight : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>

// CHECK-LABEL: func.func @transposed
// CHECK-NEXT:    %[[W:.*]] = mico.get_constant @fc.weight
// CHECK-NEXT:    mico.bitlinear(%x, %[[W]])
func.func @transposed(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = mico.get_constant @fc.weight : tensor<2x2xf32>
  %t = mico.transpose(%w) {permutation = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = mico.bitlinear(%x, %t) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// -----

// What is moved to and fro is the constant that it was.
// CHECK: mico.constant @fc.weight : tensor<2x2xf32> = dense<
mico.constant @fc.weight : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>

// CHECK-LABEL: func.func @to_and_fro
// CHECK-NEXT:    %[[W:.*]] = mico.get_constant @fc.weight
// CHECK-NEXT:    mico.bitlinear(%x, %[[W]])
func.func @to_and_fro(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = mico.get_constant @fc.weight : tensor<2x2xf32>
  %t = mico.transpose(%w) {permutation = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %u = mico.transpose(%t) {permutation = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = mico.bitlinear(%x, %u) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// -----

// Parts of one constant are numbered; what reads all of it keeps it.
// CHECK-DAG: mico.constant @experts.0 : tensor<2x2xf32>
// CHECK-DAG: mico.constant @experts.1 : tensor<2x2xf32>
// CHECK-DAG: mico.constant @experts : tensor<4x2xf32>
mico.constant @experts : tensor<4x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]>

// CHECK-LABEL: func.func @parts
// CHECK-DAG:     %[[A:.*]] = mico.get_constant @experts.0
// CHECK-DAG:     %[[B:.*]] = mico.get_constant @experts.1
// CHECK-DAG:     mico.bitlinear(%x, %[[A]])
// CHECK-DAG:     mico.bitlinear(%x, %[[B]])
func.func @parts(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %w = mico.get_constant @experts : tensor<4x2xf32>
  %a = tensor.extract_slice %w[0, 0] [2, 2] [1, 1] : tensor<4x2xf32> to tensor<2x2xf32>
  %b = tensor.extract_slice %w[2, 0] [2, 2] [1, 1] : tensor<4x2xf32> to tensor<2x2xf32>
  %0 = mico.bitlinear(%x, %a) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %1 = mico.bitlinear(%x, %b) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  func.return %0, %1 : tensor<?x2xf32>, tensor<?x2xf32>
}

// CHECK-LABEL: func.func @whole
// CHECK-NEXT:    mico.get_constant @experts :
func.func @whole() -> tensor<4x2xf32> {
  %w = mico.get_constant @experts : tensor<4x2xf32>
  func.return %w : tensor<4x2xf32>
}

// -----

// Left alone: the weight depends on an input, or is no layer's.
mico.constant @fc.weight : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>

// CHECK-LABEL: func.func @computed
// CHECK:         %[[T:.*]] = mico.mul
// CHECK:         mico.bitlinear(%x, %[[T]])
func.func @computed(%x: tensor<?x2xf32>, %s: tensor<2x2xf32>) -> tensor<?x2xf32> {
  %w = mico.get_constant @fc.weight : tensor<2x2xf32>
  %t = mico.mul(%w, %s) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = mico.bitlinear(%x, %t) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @no_layer
// CHECK:         mico.transpose
func.func @no_layer(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = mico.get_constant @fc.weight : tensor<2x2xf32>
  %t = mico.transpose(%w) {permutation = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = mico.mul(%x, %t) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}
