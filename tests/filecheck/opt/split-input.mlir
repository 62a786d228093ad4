// RUN: fewbit-opt %s --split-input-file -p cse | filecheck %s
// RUN: not fewbit-opt %s 2>&1 | filecheck %s --check-prefix WHOLE

// WHOLE: verify error: {{.*}}split-input.mlir:13:1, op 'func.func': defines the symbol @f a second time

// CHECK: func.func @f() {
func.func @f() {
  func.return
}
// -----
// CHECK: // -----
// CHECK: func.func @f(%x: i32) {
func.func @f(%x: i32) {
  func.return
}
