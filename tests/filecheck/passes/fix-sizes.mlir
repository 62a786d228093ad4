// A batch that is open becomes one sample, and what depends on it follows.
// RUN: fewbit-opt %s -p fix-sizes --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main(%x: tensor<1x4x6xf32>) -> tensor<1x24xf32>
// CHECK-NEXT:    mico.relu(%x) : {{.*}} -> tensor<1x4x6xf32>
// CHECK-NEXT:    mico.reshape({{.*}}) {{.*}} -> tensor<1x24xf32>
func.func @main(%x: tensor<?x4x6xf32>) -> tensor<?x24xf32> {
  %y = mico.relu(%x) : (tensor<?x4x6xf32>) -> tensor<?x4x6xf32>
  %z = mico.reshape(%y) {shape = [0, 24]} : (tensor<?x4x6xf32>) -> tensor<?x24xf32>
  func.return %z : tensor<?x24xf32>
}

// -----

// Left alone: sizes that are known.
// CHECK-LABEL: func.func @known(%x: tensor<3x4xf32>) -> tensor<3x4xf32>
func.func @known(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  func.return %x : tensor<3x4xf32>
}
