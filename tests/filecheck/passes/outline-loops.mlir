// Every loop nest of the entry becomes a function, named after its layer.
// RUN: fewbit-opt %s -p outline-loops | filecheck %s

#id = affine_map<(i, j) -> (i, j)>

// Left alone: another function than the entry.
// CHECK-LABEL: func.func @other(
// CHECK-NOT:     call
// CHECK:         linalg.generic
func.func @other(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  return
}

// Equal nests are one function; one of few iterations is not split over threads; one that writes
// where it reads has arguments that overlap.
// CHECK-LABEL: func.func @program.entry(
// CHECK:         call @program.entry_000_layers_0(%arg0, %arg1, %{{.*}}, %{{.*}})
// CHECK:         call @program.entry_000_layers_0(%arg1, %arg0, %{{.*}}, %{{.*}})
// CHECK:         call @program.entry_002_layers_2(
// CHECK:         call @program.entry_003_layers_3(
func.func @program.entry(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %u: memref<2x3xf32>, %v: memref<2x3xf32>, %arena: memref<32768xi8>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } loc("layers.0")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : memref<64x64xf32>) outs(%x : memref<64x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } loc("layers.1")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%u : memref<2x3xf32>) outs(%v : memref<2x3xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } loc("layers.2")
  %first = arith.constant 0 : index
  %second = arith.constant 16384 : index
  %a = memref.view %arena[%first][] : memref<32768xi8> to memref<64x64xf32>
  %b = memref.view %arena[%second][] : memref<32768xi8> to memref<64x64xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<64x64xf32>) outs(%b : memref<64x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  } loc("layers.3")
  return
}
// CHECK: func.func private @program.entry_000_layers_0({{.*}}) attributes {loop_nest = {overlaps = false, split = 0 : i64}} {
// CHECK: func.func private @program.entry_002_layers_2({{.*}}) attributes {loop_nest = {overlaps = false}} {
// CHECK: func.func private @program.entry_003_layers_3({{.*}}) attributes {loop_nest = {overlaps = true, split = 0 : i64}} {
