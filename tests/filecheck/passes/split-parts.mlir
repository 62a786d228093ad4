// RUN: fewbit-opt %s -p 'place-devices{rules="net.b=npu"},split-parts' | filecheck %s
// RUN: not fewbit-opt %s -p 'place-devices{rules="net.b=npu","re:net.loop.*=dsp"},split-parts' 2>&1 | filecheck %s --check-prefix=LOOP

mico.constant @w : tensor<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>

// A subgraph of one device stays, and is called by its part.
// CHECK-LABEL: graph.subgraph @net.b on <npu>
graph.subgraph @net.b(%x: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = mico.add(%s, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  graph.return %x, %t : tensor<4xf32>, tensor<4xf32>
}

// One of several devices is inlined.
// CHECK-NOT: @net(
graph.subgraph @net(%x: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %w = mico.get_constant @w : tensor<4xf32>
  %a = mico.add(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b, %t = graph.call @net.b(%a, %s) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c = mico.add(%b, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  graph.return %c, %t : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: graph.subgraph @net.loop.body on <cpu>
graph.subgraph @net.loop.body(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  graph.return %y : tensor<4xf32>
}

// Each part has its own constants.
// CHECK-LABEL: graph.subgraph @part0 on <cpu>(%x: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    mico.get_constant @w
// CHECK-NEXT:    %[[A:.*]] = mico.add
// CHECK-NEXT:    graph.return %[[A]]

// The state is behind all other inputs of the part that updates it.
// CHECK-LABEL: graph.subgraph @part1 on <npu>(%a: tensor<4xf32>, %s: tensor<4xf32>)
// CHECK-NEXT:    graph.call @net.b
// CHECK-NEXT:    graph.return

// CHECK-LABEL: graph.subgraph @part2 on <cpu>
// CHECK:         mico.get_constant @w
// CHECK:         mico.add
// CHECK:         scf.if

// What passes from device to device is transferred, and the state is not.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[A0:.*]] = graph.call @part0(%x)
// CHECK-NEXT:    %[[A1:.*]] = graph.transfer %[[A0]] from <cpu> to <npu>
// CHECK-NEXT:    %[[B0:.*]], %[[T:.*]] = graph.call @part1(%[[A1]], %s)
// CHECK-NEXT:    %[[B1:.*]] = graph.transfer %[[B0]] from <npu> to <cpu>
// CHECK-NEXT:    %[[C:.*]] = graph.call @part2(%q, %[[B1]])
// CHECK-NEXT:    func.return %[[C]], %[[T]]

// Refused: control flow on several devices.
// LOOP: what is in one 'scf.if' is on cpu and dsp
// LOOP: hint: control flow stays on one device
func.func @main(%x: tensor<4xf32>, %q: i1, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32> {fewbit.updates = 2 : i64, fewbit.initial = @w}) {
  %c, %t = graph.call @net(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %r = scf.if %q -> (tensor<4xf32>) {
    %d = graph.call @net.loop.body(%c) : (tensor<4xf32>) -> tensor<4xf32>
    %e = mico.relu(%d) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %c : tensor<4xf32>
  }
  func.return %r, %t : tensor<4xf32>, tensor<4xf32>
}
