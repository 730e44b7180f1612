; Calls a function of five integers or pointers. The record has its address and its arguments; the result is written to
; its first word.
define void @call(ptr %record) {
entry:
  %function = load ptr, ptr %record
  %a.at = getelementptr i64, ptr %record, i64 1
  %b.at = getelementptr i64, ptr %record, i64 2
  %c.at = getelementptr i64, ptr %record, i64 3
  %d.at = getelementptr i64, ptr %record, i64 4
  %e.at = getelementptr i64, ptr %record, i64 5
  %a = load i64, ptr %a.at
  %b = load i64, ptr %b.at
  %c = load i64, ptr %c.at
  %d = load i64, ptr %d.at
  %e = load i64, ptr %e.at
  %result = call i64 %function(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e)
  store i64 %result, ptr %record
  ret void
}
