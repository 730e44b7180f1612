; The log of messages; see `checks.Log`.

; Begins a record of `bytes` bytes with what identifies it, and gives the address behind that. Before a log is written
; that is full, its records are taken.
define hidden ptr @log_record(ptr %ctx, ptr %thread, i64 %number, i64 %bytes, i64 %value) nounwind {
entry:
  %log = load ptr, at i8, ptr %ctx, i64 $log
  %offset = shl i64 %number, 4
  %next.at = getelementptr i8, ptr %log, i64 %offset
  %left.at = getelementptr i8, ptr %next.at, i64 8
  %some = load i64, ptr %left.at
  %is_full = icmp eq i64 %some, 0
  br i1 %is_full, label %take, label %write

take:
  %full = load ptr, at i8, ptr %ctx, i64 $full
  call void %full()
  br label %write

write:
  %left = load i64, ptr %left.at
  %left.next = sub i64 %left, 1
  store i64 %left.next, ptr %left.at
  %record = load ptr, ptr %next.at
  %behind = getelementptr i8, ptr %record, i64 %bytes
  store ptr %behind, ptr %next.at
  store i64 %value, ptr %record
  %clock.from = getelementptr i8, ptr %thread, i64 $clock
  %clock = load i64, ptr %clock.from
  %clock.at = getelementptr i8, ptr %record, i64 8
  store i64 %clock, ptr %clock.at
  %x.from = getelementptr i8, ptr %thread, i64 $group_id_x
  %x = load i32, ptr %x.from
  %x.at = getelementptr i8, ptr %record, i64 16
  store i32 %x, ptr %x.at
  %y.from = getelementptr i8, ptr %thread, i64 $group_id_y
  %y = load i32, ptr %y.from
  %y.at = getelementptr i8, ptr %record, i64 20
  store i32 %y, ptr %y.at
  %z.from = getelementptr i8, ptr %thread, i64 $group_id_z
  %z = load i32, ptr %z.from
  %z.at = getelementptr i8, ptr %record, i64 24
  store i32 %z, ptr %z.at
  %own.from = getelementptr i8, ptr %thread, i64 8
  %own = load i32, ptr %own.from
  %own.at = getelementptr i8, ptr %record, i64 28
  store i32 %own, ptr %own.at
  %operands = getelementptr i8, ptr %record, i64 32
  ret ptr %operands
}
