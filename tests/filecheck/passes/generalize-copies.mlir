// Copies that differ in sizes and strides only get one type, where there are many.
// RUN: fewbit-opt %s -p generalize-copies --split-input-file | filecheck %s

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @program.entry(
// CHECK:         %[[X:.*]] = memref.cast %arg0 : memref<9x32xf32> to memref<?x32xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT:    %[[Y:.*]] = memref.cast %{{.*}} : memref<9x32xf32, strided<[64, 1]>> to memref<?x32xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT:    linalg.generic {{.*}} ins(%[[X]] : memref<?x32xf32, strided<[?, 1], offset: ?>>) outs(%[[Y]] :
// Left alone: rows of another length, of which there is one; and what is more than a copy.
// CHECK:         linalg.generic {{.*}} ins(%arg8 : memref<9x16xf32>)
// CHECK:         linalg.generic {{.*}} ins(%arg0 : memref<9x32xf32>)
// CHECK:           arith.addf
func.func @program.entry(%a: memref<9x32xf32>, %b: memref<8x32xf32>, %c: memref<7x32xf32>, %d: memref<6x32xf32>,
                         %e: memref<5x32xf32>, %f: memref<4x32xf32>, %g: memref<3x32xf32>, %h: memref<2x32xf32>,
                         %i: memref<9x16xf32>, %y: memref<9x64xf32>) {
  %ya = memref.subview %y[0, 0] [9, 32] [1, 1] : memref<9x64xf32> to memref<9x32xf32, strided<[64, 1]>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<9x32xf32>) outs(%ya : memref<9x32xf32, strided<[64, 1]>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %yb = memref.subview %y[0, 32] [8, 32] [1, 1] : memref<9x64xf32> to memref<8x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : memref<8x32xf32>) outs(%yb : memref<8x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %yc = memref.subview %y[0, 32] [7, 32] [1, 1] : memref<9x64xf32> to memref<7x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<7x32xf32>) outs(%yc : memref<7x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %yd = memref.subview %y[0, 32] [6, 32] [1, 1] : memref<9x64xf32> to memref<6x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d : memref<6x32xf32>) outs(%yd : memref<6x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %ye = memref.subview %y[0, 32] [5, 32] [1, 1] : memref<9x64xf32> to memref<5x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%e : memref<5x32xf32>) outs(%ye : memref<5x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %yf = memref.subview %y[0, 32] [4, 32] [1, 1] : memref<9x64xf32> to memref<4x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%f : memref<4x32xf32>) outs(%yf : memref<4x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %yg = memref.subview %y[0, 32] [3, 32] [1, 1] : memref<9x64xf32> to memref<3x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g : memref<3x32xf32>) outs(%yg : memref<3x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %yh = memref.subview %y[0, 32] [2, 32] [1, 1] : memref<9x64xf32> to memref<2x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h : memref<2x32xf32>) outs(%yh : memref<2x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  %yi = memref.subview %y[0, 32] [9, 16] [1, 1] : memref<9x64xf32> to memref<9x16xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : memref<9x16xf32>) outs(%yi : memref<9x16xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<9x32xf32>) outs(%ya : memref<9x32xf32, strided<[64, 1]>>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#transposed = affine_map<(i, j) -> (j, i)>
#id = affine_map<(i, j) -> (i, j)>

// Left alone: a single copy, and one that transposes.
// CHECK-LABEL: func.func @program.entry(
// CHECK-NOT:     memref.cast
// CHECK:         return
func.func @program.entry(%x: memref<4x5xf32>, %y: memref<4x5xf32>, %z: memref<5x4xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x5xf32>) outs(%y : memref<4x5xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #transposed], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x5xf32>) outs(%z : memref<5x4xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  return
}
