// RUN: not fewbit-opt %s -p 'cse{a=1}' 2>&1 | filecheck %s --check-prefix OPTION
// RUN: not fewbit-opt %s -p canonicalise 2>&1 | filecheck %s --check-prefix NAME
// RUN: not fewbit-opt %s 2>&1 | filecheck %s --check-prefix PARSE

// OPTION: usage error: pass 'cse' has no option 'a'
// NAME: usage error: there is no pass 'canonicalise'
// NAME-NEXT: hint: did you mean 'canonicalize'
// PARSE: parse error: {{.*}}errors.mlir:10:
func.func @broken(%x: i32) {
  %y = arith.addi %x, %x i32
  func.return
}
