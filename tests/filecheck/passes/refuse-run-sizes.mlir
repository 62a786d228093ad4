// Sizes that are computed from shapes are known when launches are planned; those that are computed
// from elements of inputs are refused.
// RUN: fewbit-opt %s -t cuda:sm_80 --split-input-file --verify-diagnostics -p refuse-run-sizes | filecheck %s

// Left alone: a size that is the input's.
// CHECK: tensor.empty
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  func.return %e : tensor<?xf32>
}

// -----

// Left alone: where a slice begins may depend on elements.
// CHECK: tensor.extract_slice
func.func @main(%x: tensor<8xf32>, %p: tensor<1xindex>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %at = tensor.extract %p[%zero] : tensor<1xindex>
  %y = tensor.extract_slice %x[%at] [4] [1] : tensor<8xf32> to tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Refused: how long it is may not.
// expected-error @+4 {{the size of a tensor depends on what the inputs contain}}
func.func @main(%x: tensor<8xf32>, %p: tensor<1xindex>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.extract %p[%zero] : tensor<1xindex>
  %y = tensor.extract_slice %x[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
  func.return %y : tensor<?xf32>
}
