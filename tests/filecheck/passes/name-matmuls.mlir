// Generic ops that are matmuls become linalg.contract, and are kept whole.
// RUN: fewbit-opt %s -p name-matmuls | filecheck %s

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#turn = affine_map<(i, j) -> (j, i)>
#same = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-DAG: #[[BY_ROW:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[BY_COLUMN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>

// The transpose of a factor is the order in which it is read. A second user of factors and result
// keeps loops from being fused into the matmul.
// CHECK-LABEL: func.func @transposed
// CHECK:         %[[Y:.*]] = linalg.contract indexing_maps = [#{{.*}}, #[[BY_ROW]], #{{.*}}] ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<5x6xf32>) outs(%arg2 :
// CHECK-NEXT:    bufferization.dealloc_tensor %arg0
// CHECK-NEXT:    bufferization.dealloc_tensor %arg1
// CHECK-NEXT:    bufferization.dealloc_tensor %[[Y]]
func.func @transposed(%x: tensor<4x6xf32>, %w: tensor<5x6xf32>, %y: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %e = tensor.empty() : tensor<6x5xf32>
  %t = linalg.generic {indexing_maps = [#turn, #same], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<5x6xf32>) outs(%e : tensor<6x5xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  } -> tensor<6x5xf32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %t : tensor<4x6xf32>, tensor<6x5xf32>) outs(%y : tensor<4x5xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %s, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// Sums that begin with zeros have no loop that writes them.
// CHECK-LABEL: func.func @from_zero
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x5xf32>
// CHECK:         linalg.contract indexing_maps = [#{{.*}}, #[[BY_COLUMN]], #{{.*}}] {from_zero} ins(%arg0, %arg1 : {{.*}}) outs(%[[E]] :
func.func @from_zero(%x: tensor<4x6xf32>, %w: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, #same], iterator_types = ["parallel", "parallel"]}
      ins(%zero : f32) outs(%e : tensor<4x5xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  } -> tensor<4x5xf32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%y : tensor<4x5xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %s, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// Left alone: dot products, row by row.
// CHECK-LABEL: func.func @squares
// CHECK-NOT:     linalg.contract
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.contract
func.func @squares(%x: tensor<4x6xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [#same, #same, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %s, %m : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
