// Indices that depend on data are clamped, so that lookups and writes stay inside their tensor.
// RUN: fewbit-opt %s -p bound-lookups --split-input-file | filecheck %s

// CHECK-LABEL: func.func @lookup
// CHECK:         %[[SIZE:.*]] = tensor.dim %t
// CHECK-NEXT:    %[[LAST:.*]] = arith.subi %[[SIZE]]
// CHECK-NEXT:    %[[LEAST:.*]] = arith.maxsi %i, %{{.*}} : index
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.minsi %[[LEAST]], %[[LAST]] : index
// CHECK-NEXT:    tensor.extract %t[%[[INSIDE]]]
func.func @lookup(%t: tensor<10xf32>, %i: index) -> f32 {
  %y = tensor.extract %t[%i] : tensor<10xf32>
  func.return %y : f32
}

// -----

// Three rows must fit behind the place at which they are written.
// CHECK-LABEL: func.func @write
// CHECK:         %[[THREE:.*]] = arith.constant 3 : index
// CHECK:         %[[SIZE:.*]] = tensor.dim %t
// CHECK-NEXT:    %[[LAST:.*]] = arith.subi %[[SIZE]], %[[THREE]]
// CHECK-NEXT:    %[[LEAST:.*]] = arith.maxsi %i
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.minsi %[[LEAST]], %[[LAST]]
// CHECK-NEXT:    tensor.insert_slice %rows into %t[%[[INSIDE]], 0]
func.func @write(%t: tensor<10x4xf32>, %rows: tensor<3x4xf32>, %i: index) -> tensor<10x4xf32> {
  %y = tensor.insert_slice %rows into %t[%i, 0] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<10x4xf32>
  func.return %y : tensor<10x4xf32>
}

// -----

// Left alone: constants and the indices of loops, which are inside already.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     arith.maxsi
// CHECK:         func.return
func.func @kept(%t: tensor<4xf32>) -> (f32, tensor<4xf32>) {
  %two = arith.constant 2 : index
  %a = tensor.extract %t[%two] : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %b = tensor.extract %t[%i] : tensor<4xf32>
    linalg.yield %b : f32
  } -> tensor<4xf32>
  func.return %a, %y : f32, tensor<4xf32>
}
