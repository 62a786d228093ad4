// Neighbouring loops over neighbouring elements become one.
// RUN: fewbit-opt %s -p collapse-loops --split-input-file | filecheck %s

#all = affine_map<(i, j, k) -> (i, j, k)>
#last = affine_map<(i, j, k) -> (k)>

// The bias is read by the last loop alone, so the first two are one.
// CHECK-LABEL: func.func @program.entry
// CHECK-DAG:     %[[X:.*]] = memref.collapse_shape %arg0 {{\[\[}}0, 1], [2]] : memref<4x5x6xf32> into memref<20x6xf32>
// CHECK-DAG:     %[[Y:.*]] = memref.collapse_shape %arg2 {{\[\[}}0, 1], [2]]
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[X]], %arg1 : memref<20x6xf32>, memref<6xf32>) outs(%[[Y]] :
// CHECK:           arith.addf
func.func @program.entry(%x: memref<4x5x6xf32>, %b: memref<6xf32>, %y: memref<4x5x6xf32>) {
  linalg.generic {indexing_maps = [#all, #last, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %b : memref<4x5x6xf32>, memref<6xf32>) outs(%y : memref<4x5x6xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>

// Left alone: elements that are not neighbours in both, gaps between rows, and loops whose index
// is read.
// CHECK-LABEL: func.func @program.entry
// CHECK-NOT:     memref.collapse_shape
// CHECK:         return
func.func @program.entry(%x: memref<4x5xf32>, %y: memref<5x4xf32>, %z: memref<4x5xf32, strided<[8, 1]>>, %k: memref<4x5xindex>) {
  linalg.generic {indexing_maps = [#all, #transposed], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x5xf32>) outs(%y : memref<5x4xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x5xf32>) outs(%z : memref<4x5xf32, strided<[8, 1]>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%k : memref<4x5xindex>) {
  ^bb0(%q: index):
    %i = linalg.index 1 : index
    linalg.yield %i : index
  }
  return
}
