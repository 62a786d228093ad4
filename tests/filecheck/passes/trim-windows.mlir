// RUN: fewbit-opt %s -p trim-windows | filecheck %s

#window = affine_map<(n, i, j) -> (n, i * 2 + j)>
#taps = affine_map<(n, i, j) -> (j)>
#out = affine_map<(n, i, j) -> (n, i)>

// One window of 3: the last of 4 elements is not read.
// CHECK-LABEL: func.func @still
// CHECK:         [[CUT:%.*]] = tensor.extract_slice %x[0, 0] [%{{.*}}, 3] [1, 1] : tensor<?x4xf32> to tensor<?x3xf32>
// CHECK:         linalg.generic {{.*}} ins([[CUT]], %w : tensor<?x3xf32>, tensor<3xf32>)
func.func @still(%x: tensor<?x4xf32>, %w: tensor<3xf32>, %y: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %r = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x4xf32>, tensor<3xf32>) outs(%y : tensor<?x1xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x1xf32>
  func.return %r : tensor<?x1xf32>
}

// Left alone: a window that moves, and one that reads everything.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     tensor.extract_slice
func.func @kept(%x: tensor<5x8xf32>, %z: tensor<5x3xf32>, %w: tensor<3xf32>, %y: tensor<5x3xf32>, %o: tensor<5x1xf32>) -> (tensor<5x3xf32>, tensor<5x1xf32>) {
  %r = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x8xf32>, tensor<3xf32>) outs(%y : tensor<5x3xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x3xf32>
  %q = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%z, %w : tensor<5x3xf32>, tensor<3xf32>) outs(%o : tensor<5x1xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x1xf32>
  func.return %r, %q : tensor<5x3xf32>, tensor<5x1xf32>
}
