// Loop nests that transpose are tiled, and blocks of 8 x 8 are transposed in vectors.
// RUN: fewbit-opt %s -p tile-loops | filecheck %s

#id = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func private @transpose
// CHECK-SAME:    loop_nest = {overlaps = false, split = 0 : i64}
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-COUNT-8:     vector.load {{.*}} vector<8xf32>
// CHECK:             vector.shuffle
// CHECK-COUNT-8:     vector.store {{.*}} vector<8xf32>
func.func private @transpose(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %thread: index, %threads: index) attributes {loop_nest = {overlaps = false, split = 0 : i64}} {
  linalg.generic {indexing_maps = [#transposed, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  return
}

// Left alone: a nest that reads and writes in the order of memory.
// CHECK-LABEL: func.func private @stream
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.for
func.func private @stream(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %thread: index, %threads: index) attributes {loop_nest = {overlaps = false, split = 0 : i64}} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  return
}

// Left alone: an operand is read at a fixed index of a dimension, for which there are no vectors.
// CHECK-LABEL: func.func private @fixed
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.for
func.func private @fixed(%x: memref<64x1x64xf32>, %y: memref<64x64xf32>, %thread: index, %threads: index) attributes {loop_nest = {overlaps = false, split = 0 : i64}} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, 0, i)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x1x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  return
}
