// What depends on weights alone is computed once, and kept as a weight.
// RUN: fewbit-opt %s -p fold-weights | filecheck %s

// The hash is of [[1, 0]].
// CHECK: mico.constant @w.folded : tensor<1x2xf32> = #mico.ref<"w.folded", "aa61e0956f8e10d13c234d41ef99fc1492467c7096930cc5ba2a6c4fa43e8ad1">
// CHECK: mico.constant @w : tensor<2x1xf32>
mico.constant @w : tensor<2x1xf32> = dense<[[1.0], [-2.0]]>

// CHECK-LABEL: func.func @computed
// CHECK-NEXT:    %[[K:.*]] = mico.get_constant @w.folded
// CHECK-NEXT:    mico.mul(%x, %[[K]])
func.func @computed(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %w = mico.get_constant @w : tensor<2x1xf32>
  %transposed = mico.transpose(%w) {permutation = [1, 0]} : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %relu = mico.relu(%transposed) : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = mico.mul(%x, %relu) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}

// Left alone: an input takes part.
// CHECK-LABEL: func.func @of_input
// CHECK-NEXT:    %[[W:.*]] = mico.get_constant @w
// CHECK-NEXT:    mico.add(%[[W]], %x)
func.func @of_input(%x: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %w = mico.get_constant @w : tensor<2x1xf32>
  %y = mico.add(%w, %x) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  func.return %y : tensor<2x1xf32>
}

// Left alone: 8 bytes that are broadcast to 32 KiB are faster computed than read.
// CHECK-LABEL: func.func @broadcast
// CHECK:         %[[W:.*]] = mico.get_constant @w
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[W]] :
// CHECK:         func.return %[[Y]]
func.func @broadcast() -> tensor<2x4096xf32> {
  %w = mico.get_constant @w : tensor<2x1xf32>
  %e = tensor.empty() : tensor<2x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<2x1xf32>) outs(%e : tensor<2x4096xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4096xf32>
  func.return %y : tensor<2x4096xf32>
}
