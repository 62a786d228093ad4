// Sums over elements side by side may be computed in any order.
// RUN: fewbit-opt %s -p reassociate-sums | filecheck %s

#all = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @along
// CHECK:           arith.addf %out, %in fastmath<reassoc> : f32
func.func @along(%x: memref<4x8xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x8xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%p: f32, %s: f32):
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  return
}

// Left alone: what is summed lies a row apart.
// CHECK-LABEL: func.func @across
// CHECK:           arith.addf %out, %in : f32
func.func @across(%x: memref<8x4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#transposed, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%p: f32, %s: f32):
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  return
}

// Left alone: the order of accumulators of groups is fixed, and an addition that is no sum.
// CHECK-LABEL: func.func @kept
// CHECK:           %[[F:.*]] = arith.sitofp
// CHECK:           arith.addf %out, %{{.*}} : f32
// CHECK:           arith.addf %in, %in : f32
// CHECK-NOT:       reassoc
func.func @kept(%x: memref<4x8xi32>, %f: memref<4x8xf32>, %scale: memref<4x8xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %scale : memref<4x8xi32>, memref<4x8xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%p: i32, %q: f32, %s: f32):
    %a = arith.sitofp %p : i32 to f32
    %b = arith.mulf %a, %q : f32
    %t = arith.addf %s, %b : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%f : memref<4x8xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%p: f32, %s: f32):
    %t = arith.addf %p, %p : f32
    %m = arith.maximumf %s, %t : f32
    linalg.yield %m : f32
  }
  return
}
