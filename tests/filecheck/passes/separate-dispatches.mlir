// What IREE must not fuse is kept apart by barriers.
// RUN: fewbit-opt %s -p separate-dispatches | filecheck %s

#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>

// One result, read at two places by one op.
// CHECK-LABEL: func.func @outer
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}}["parallel", "reduction"]
// CHECK:         %[[WHOLE:.*]] = "util.optimization_barrier"(%[[SUM]]) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK-NEXT:    linalg.generic {{.*}}["parallel", "parallel"]} ins(%[[WHOLE]], %[[WHOLE]]
func.func @outer(%x: tensor<3x4xf32>, %zeros: tensor<3xf32>, %out: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %sum = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf32>) outs(%zeros : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<3xf32>
  %product = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel"]} ins(%sum, %sum : tensor<3xf32>, tensor<3xf32>) outs(%out : tensor<3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<3x3xf32>
  func.return %product : tensor<3x3xf32>
}

// The same through a reshape and an elementwise op: a matmul over one element is elementwise.
// CHECK-LABEL: func.func @through_views
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}}["parallel", "reduction"]
// CHECK:         "util.optimization_barrier"(%[[SUM]])
// CHECK-NOT:     util.optimization_barrier
func.func @through_views(%x: tensor<3x4xf32>, %zeros: tensor<3xf32>, %row: tensor<3xf32>, %out: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %sum = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf32>) outs(%zeros : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<3xf32>
  %exp = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%sum : tensor<3xf32>) outs(%row : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<3xf32>
  %left = tensor.expand_shape %exp [[0, 1]] output_shape [3, 1] : tensor<3xf32> into tensor<3x1xf32>
  %right = tensor.expand_shape %sum [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
  %product = linalg.matmul ins(%left, %right : tensor<3x1xf32>, tensor<1x3xf32>) outs(%out : tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %product : tensor<3x3xf32>
}

// Left alone: the same place twice, as in a softmax, and a reduction of two places, which IREE does
// not fuse.
// CHECK-LABEL: func.func @same_place
// CHECK-NOT:     util.optimization_barrier
// CHECK:         func.return
func.func @same_place(%x: tensor<3x4xf32>, %zeros: tensor<3xf32>, %all: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>) {
  %sum = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf32>) outs(%zeros : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<3xf32>
  %column = tensor.expand_shape %sum [[0, 1]] output_shape [3, 1] : tensor<3xf32> into tensor<3x1xf32>
  %shares = linalg.generic {indexing_maps = [#rows, affine_map<(i, j) -> (i, 0)>, #all], iterator_types = ["parallel", "parallel"]} ins(%sum, %column : tensor<3xf32>, tensor<3x1xf32>) outs(%all : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<3x4xf32>
  %total = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "reduction"]} ins(%sum, %sum : tensor<3xf32>, tensor<3xf32>) outs(%zeros : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  } -> tensor<3xf32>
  func.return %shares, %total : tensor<3x4xf32>, tensor<3xf32>
}

// What is sorted is a copy of its own, from another dispatch: times a one that IREE does not know.
// CHECK-LABEL: func.func @sort
// CHECK:         %[[EXP:.*]] = linalg.generic
// CHECK:         %[[ONE:.*]] = "util.optimization_barrier"({{.*}}) : (tensor<f32>) -> tensor<f32>
// CHECK:         %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[EXP]], %[[ONE]] : tensor<4xf32>, tensor<f32>)
// CHECK:           arith.mulf
// CHECK:         %[[OWN:.*]] = "util.optimization_barrier"(%[[COPY]])
// CHECK-NEXT:    "tm_tensor.sort"(%[[OWN]])
// CHECK:         func.return %[[EXP]]
func.func @sort(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %sorted = "tm_tensor.sort"(%exp) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    %before = arith.cmpf ole, %a, %b : f32
    "tm_tensor.yield"(%before) : (i1) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %exp, %sorted : tensor<4xf32>, tensor<4xf32>
}

// Two sorts of one tensor have a copy each; memory without work is changed as it is.
// CHECK-LABEL: func.func @sorts
// CHECK:         %[[EXP:.*]] = linalg.generic
// CHECK:         linalg.generic {{.*}} ins(%[[EXP]],
// CHECK:         %[[OWN:.*]] = "util.optimization_barrier"
// CHECK-NEXT:    "tm_tensor.sort"(%[[OWN]])
// CHECK:         linalg.generic {{.*}} ins(%[[EXP]],
// CHECK:         %[[OTHER:.*]] = "util.optimization_barrier"
// CHECK-NEXT:    "tm_tensor.sort"(%[[OTHER]])
// CHECK-NOT:     util.optimization_barrier
// CHECK:         "tm_tensor.sort"(%empty)
func.func @sorts(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %up = "tm_tensor.sort"(%exp) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    %before = arith.cmpf ole, %a, %b : f32
    "tm_tensor.yield"(%before) : (i1) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %down = "tm_tensor.sort"(%exp) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    %before = arith.cmpf oge, %a, %b : f32
    "tm_tensor.yield"(%before) : (i1) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %once_more = "tm_tensor.sort"(%empty) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    %before = arith.cmpf oge, %a, %b : f32
    "tm_tensor.yield"(%before) : (i1) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %up, %down, %once_more : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A slice that takes one of two elements is a copy, before a matmul reads it; one of whole rows is not.
// CHECK-LABEL: func.func @slices
// CHECK:         %[[LOOSE:.*]] = tensor.extract_slice %x[0, 0, 0] [1, 8, 1]
// CHECK-NEXT:    %[[COPY:.*]] = "util.optimization_barrier"(%[[LOOSE]])
// CHECK-NEXT:    tensor.collapse_shape %[[COPY]]
// CHECK:         %[[DENSE:.*]] = tensor.extract_slice %y[0, 0, 0] [1, 1, 8]
// CHECK-NEXT:    tensor.collapse_shape %[[DENSE]]
func.func @slices(%x: tensor<1x8x2xf32>, %y: tensor<1x2x8xf32>, %w: tensor<8x3xf32>, %out: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  %loose = tensor.extract_slice %x[0, 0, 0] [1, 8, 1] [1, 1, 1] : tensor<1x8x2xf32> to tensor<1x8x1xf32>
  %a = tensor.collapse_shape %loose [[0], [1, 2]] : tensor<1x8x1xf32> into tensor<1x8xf32>
  %p = linalg.matmul ins(%a, %w : tensor<1x8xf32>, tensor<8x3xf32>) outs(%out : tensor<1x3xf32>) -> tensor<1x3xf32>
  %dense = tensor.extract_slice %y[0, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<1x2x8xf32> to tensor<1x1x8xf32>
  %b = tensor.collapse_shape %dense [[0, 1], [2]] : tensor<1x1x8xf32> into tensor<1x8xf32>
  %q = linalg.matmul ins(%b, %w : tensor<1x8xf32>, tensor<8x3xf32>) outs(%out : tensor<1x3xf32>) -> tensor<1x3xf32>
  func.return %p, %q : tensor<1x3xf32>, tensor<1x3xf32>
}

// So is one that elements are gathered from, and a slice of it, which is all that is copied.
// CHECK-LABEL: func.func @gathers
// CHECK:         tensor.extract_slice %x[0, 0] [3, 2] [1, 2]
// CHECK-NEXT:    %[[ROWS:.*]] = tensor.extract_slice
// CHECK-NEXT:    %[[COPY:.*]] = "util.optimization_barrier"(%[[ROWS]])
// CHECK:         %[[DENSE:.*]] = tensor.extract_slice %x[0, 1] [2, 2]
// CHECK-NOT:     util.optimization_barrier
// CHECK:         tensor.extract %[[COPY]]
// CHECK:         tensor.extract %[[DENSE]]
func.func @gathers(%x: tensor<3x4xf32>, %at: tensor<5xindex>, %out: tensor<5xf32>) -> tensor<5xf32> {
  %columns = tensor.extract_slice %x[0, 0] [3, 2] [1, 2] : tensor<3x4xf32> to tensor<3x2xf32>
  %rows = tensor.extract_slice %columns[1, 0] [2, 2] [1, 1] : tensor<3x2xf32> to tensor<2x2xf32>
  %dense = tensor.extract_slice %x[0, 1] [2, 2] [1, 1] : tensor<3x4xf32> to tensor<2x2xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%at : tensor<5xindex>) outs(%out : tensor<5xf32>) {
  ^bb0(%i: index, %b: f32):
    %p = tensor.extract %rows[%i, %i] : tensor<2x2xf32>
    %q = tensor.extract %dense[%i, %i] : tensor<2x2xf32>
    %sum = arith.addf %p, %q : f32
    linalg.yield %sum : f32
  } -> tensor<5xf32>
  func.return %sums : tensor<5xf32>
}

// A single element is a copy before it is joined with others; more of them are not.
// CHECK-LABEL: func.func @joins
// CHECK:         %[[ONE:.*]] = tensor.extract_slice %x[0] [1]
// CHECK-NEXT:    %[[COPY:.*]] = "util.optimization_barrier"(%[[ONE]])
// CHECK-NEXT:    %[[COLUMN:.*]] = tensor.expand_shape %[[COPY]]
// CHECK-NOT:     util.optimization_barrier
// CHECK:         tensor.concat
func.func @joins(%x: tensor<5xf32>) -> tensor<3x1xf32> {
  %one = tensor.extract_slice %x[0] [1] [1] : tensor<5xf32> to tensor<1xf32>
  %a = tensor.expand_shape %one [[0, 1]] output_shape [1, 1] : tensor<1xf32> into tensor<1x1xf32>
  %two = tensor.extract_slice %x[1] [2] [1] : tensor<5xf32> to tensor<2xf32>
  %b = tensor.expand_shape %two [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %all = tensor.concat dim(0) %a, %b : (tensor<1x1xf32>, tensor<2x1xf32>) -> tensor<3x1xf32>
  func.return %all : tensor<3x1xf32>
}

// A size that is dynamic is said again behind a barrier.
// CHECK-LABEL: func.func @sorts_dynamic
// CHECK:         %[[COPY:.*]] = linalg.generic
// CHECK:         %[[SIZE:.*]] = tensor.dim %[[COPY]], %{{.*}}
// CHECK-NEXT:    %[[WHOLE:.*]] = "util.optimization_barrier"(%[[COPY]])
// CHECK-NEXT:    %[[KNOWN:.*]] = "flow.tensor.tie_shape"(%[[WHOLE]], %[[SIZE]])
// CHECK-NEXT:    "tm_tensor.sort"(%[[KNOWN]])
func.func @sorts_dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = math.exp %x : tensor<?xf32>
  %sorted = "tm_tensor.sort"(%y) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf ole, %a, %b : f32
    "tm_tensor.yield"(%less) : (i1) -> ()
  }) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %sorted : tensor<?xf32>
}

// The copy of integers is plus a zero, so that each run makes it anew where it depends on no input.
// CHECK-LABEL: func.func @sorts_constants
// CHECK:         %[[ZERO:.*]] = "util.optimization_barrier"({{.*}}) : (tensor<i64>) -> tensor<i64>
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %[[ZERO]] : tensor<4xi64>, tensor<i64>)
// CHECK:           arith.addi
// CHECK:         tm_tensor.sort
func.func @sorts_constants(%out: tensor<4xi64>) -> tensor<4xi64> {
  %empty = tensor.empty() : tensor<4xi64>
  %places = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<4xi64>) {
  ^bb0(%a: i64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    linalg.yield %j : i64
  } -> tensor<4xi64>
  %sorted = "tm_tensor.sort"(%places) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: i64, %b: i64):
    %less = arith.cmpi sge, %a, %b : i64
    "tm_tensor.yield"(%less) : (i1) -> ()
  }) : (tensor<4xi64>) -> tensor<4xi64>
  func.return %sorted : tensor<4xi64>
}

// What was pooled is complete before a reduction looks for its places, but not for a sum over it.
// CHECK-LABEL: func.func @places
// CHECK:         %[[MAX:.*]] = linalg.pooling_nchw_max
// CHECK:         %[[WHOLE:.*]] = "util.optimization_barrier"(%[[MAX]])
// CHECK:         linalg.generic {{.*}} ins(%[[WHOLE]], %window
// CHECK:         %[[OTHER:.*]] = linalg.pooling_nchw_max
// CHECK-NOT:     util.optimization_barrier
// CHECK:         linalg.generic {{.*}} ins(%[[OTHER]]
#image = affine_map<(n, c, h, w, k, l) -> (n, c, h, w)>
#window = affine_map<(n, c, h, w, k, l) -> (k, l)>
func.func @places(%x: tensor<5x1x8x4xf32>, %window: tensor<2x2xf32>, %least: tensor<5x1x4x2xf32>, %none: tensor<5x1x4x2xi64>, %zeros: tensor<5x4x2xf32>) -> (tensor<5x1x4x2xi64>, tensor<5x4x2xf32>) {
  %max = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %window : tensor<5x1x8x4xf32>, tensor<2x2xf32>) outs(%least : tensor<5x1x4x2xf32>) -> tensor<5x1x4x2xf32>
  %places = linalg.generic {indexing_maps = [#image, #window, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%max, %window : tensor<5x1x4x2xf32>, tensor<2x2xf32>) outs(%none : tensor<5x1x4x2xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64):
    %i = linalg.index 4 : index
    %j = arith.index_cast %i : index to i64
    linalg.yield %j : i64
  } -> tensor<5x1x4x2xi64>
  %other = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %window : tensor<5x1x8x4xf32>, tensor<2x2xf32>) outs(%least : tensor<5x1x4x2xf32>) -> tensor<5x1x4x2xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, h, w)>], iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%other : tensor<5x1x4x2xf32>) outs(%zeros : tensor<5x4x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x4x2xf32>
  func.return %places, %sums : tensor<5x1x4x2xi64>, tensor<5x4x2xf32>
}

// What loops end with is read behind a barrier, but for numbers.
// CHECK-LABEL: func.func @loops
// CHECK:         %[[END:.*]], %[[COUNT:.*]] = scf.for
// CHECK:         %[[WHOLE:.*]] = "util.optimization_barrier"(%[[END]])
// CHECK-NEXT:    func.return %[[WHOLE]], %[[COUNT]]
func.func @loops(%x: tensor<4xf32>, %n: index) -> (tensor<4xf32>, index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end, %count = scf.for %i = %zero to %n step %one iter_args(%y = %x, %j = %zero) -> (tensor<4xf32>, index) {
    %f = arith.constant 1.0 : f32
    %z = tensor.insert %f into %y[%i] : tensor<4xf32>
    scf.yield %z, %i : tensor<4xf32>, index
  }
  func.return %end, %count : tensor<4xf32>, index
}

// Truth values of open size are complete before one finds out whether any is true; others are not.
// CHECK-LABEL: func.func @truths
// CHECK:         %[[OPEN:.*]] = linalg.generic {{.*}} ins(%x : tensor<?xi1>)
// CHECK:         %[[WHOLE:.*]] = "util.optimization_barrier"(%[[OPEN]])
// CHECK:         %[[KNOWN:.*]] = "flow.tensor.tie_shape"(%[[WHOLE]]
// CHECK:         linalg.generic {{.*}}["reduction"]} ins(%[[KNOWN]]
// CHECK-NOT:     util.optimization_barrier
// CHECK:         func.return
#one = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @truths(%x: tensor<?xi1>, %y: tensor<4xi1>, %f: tensor<i1>) -> (tensor<i1>, tensor<i1>) {
  %open = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : tensor<?xi1>) outs(%x : tensor<?xi1>) {
  ^bb0(%a: i1, %b: i1):
    %c = arith.xori %a, %b : i1
    linalg.yield %c : i1
  } -> tensor<?xi1>
  %any = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%open : tensor<?xi1>) outs(%f : tensor<i1>) {
  ^bb0(%a: i1, %b: i1):
    %c = arith.ori %a, %b : i1
    linalg.yield %c : i1
  } -> tensor<i1>
  %four = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%y : tensor<4xi1>) outs(%y : tensor<4xi1>) {
  ^bb0(%a: i1, %b: i1):
    %c = arith.xori %a, %b : i1
    linalg.yield %c : i1
  } -> tensor<4xi1>
  %of_four = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%four : tensor<4xi1>) outs(%f : tensor<i1>) {
  ^bb0(%a: i1, %b: i1):
    %c = arith.ori %a, %b : i1
    linalg.yield %c : i1
  } -> tensor<i1>
  func.return %any, %of_four : tensor<i1>, tensor<i1>
}

// What is gathered, of open size, is complete before it is reduced, also behind an elementwise op.
// CHECK-LABEL: func.func @gathers_to_reduce
// CHECK:         %[[OPEN:.*]] = linalg.generic {{.*}} ins(%i : tensor<?xindex>)
// CHECK:         tensor.extract
// CHECK:         %[[WHOLE:.*]] = "util.optimization_barrier"(%[[OPEN]])
// CHECK:         %[[KNOWN:.*]] = "flow.tensor.tie_shape"(%[[WHOLE]]
// CHECK:         linalg.generic {{.*}}["parallel"]} ins(%[[KNOWN]]
// CHECK:         linalg.generic {{.*}}["reduction"]}
// CHECK-NOT:     util.optimization_barrier
// CHECK:         func.return
func.func @gathers_to_reduce(%x: tensor<8xf32>, %i: tensor<?xindex>, %j: tensor<4xindex>, %out: tensor<?xf32>, %four: tensor<4xf32>, %f: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %open = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%i : tensor<?xindex>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: index, %b: f32):
    %c = tensor.extract %x[%a] : tensor<8xf32>
    linalg.yield %c : f32
  } -> tensor<?xf32>
  %negated = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%open : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%negated : tensor<?xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  %few = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%j : tensor<4xindex>) outs(%four : tensor<4xf32>) {
  ^bb0(%a: index, %b: f32):
    %c = tensor.extract %x[%a] : tensor<8xf32>
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %of_few = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%few : tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  func.return %sum, %of_few : tensor<f32>, tensor<f32>
}

// A slice is replaced in a copy, if others read the whole.
// CHECK-LABEL: func.func @replaces
// CHECK:         %[[BOTH:.*]] = linalg.generic
// CHECK:         %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[BOTH]]
// CHECK:         tensor.insert_slice %s into %[[COPY]]
// CHECK:         %[[ONE:.*]] = linalg.generic
// CHECK:         tensor.insert_slice %s into %[[ONE]]
func.func @replaces(%x: tensor<4xf32>, %s: tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %both = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %replaced = tensor.insert_slice %s into %both[1] [1] [1] : tensor<1xf32> into tensor<4xf32>
  %one = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.absf %a : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %other = tensor.insert_slice %s into %one[1] [1] [1] : tensor<1xf32> into tensor<4xf32>
  func.return %both, %replaced, %other : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
