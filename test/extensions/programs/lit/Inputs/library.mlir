func.func private @strlen() -> i64
func.func @main() {
  %n = call @strlen() : () -> i64
  return
}
