llvm.func @system(!llvm.ptr) -> i32
func.func @main() {
  %p = llvm.mlir.zero : !llvm.ptr
  %r = llvm.call @system(%p) : (!llvm.ptr) -> i32
  return
}
