func.func @callee() {
  return
}
func.func @main() {
  %f = constant @callee : () -> ()
  call_indirect %f() : () -> ()
  return
}
