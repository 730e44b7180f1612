; Barriers of a workgroup. The context has two i64 for each: the signals towards the current phase, and the number of
; complete phases. Only the worker that runs the workgroup accesses them.

; Counts a signal. A phase is complete when all `expected` signals have come. Returns the number of phases that this
; signal completes.
define hidden i64 @signal(ptr %ctx, i64 %barrier, i64 %expected) noinline nounwind {
entry:
  %barriers = load ptr, at i8, ptr %ctx, i64 $barriers
  %offset = shl i64 %barrier, 4
  %signals.at = getelementptr i8, ptr %barriers, i64 %offset
  %signals = load i64, ptr %signals.at
  %arrived = add i64 %signals, 1
  %reached = icmp sge i64 %arrived, %expected
  %some = icmp ne i64 %expected, 0
  %whole = and i1 %reached, %some
  br i1 %whole, label %complete, label %waits

waits:
  store i64 %arrived, ptr %signals.at
  ret i64 0

complete:
  ; More signals than one phase expects may have come: they complete several phases then.
  %phases = udiv i64 %arrived, %expected
  %left = urem i64 %arrived, %expected
  store i64 %left, ptr %signals.at
  %complete.at = getelementptr i8, ptr %signals.at, i64 8
  %before = load i64, ptr %complete.at
  %after = add i64 %before, %phases
  store i64 %after, ptr %complete.at
  ret i64 %phases
}

; Whether a thread passes a barrier: the barrier has a complete phase for which the thread has not waited yet. `passed`
; has for each barrier the number of phases for which the thread has waited.
define hidden i1 @pass(ptr %ctx, ptr %passed, i64 %barrier) noinline nounwind {
entry:
  %barriers = load ptr, at i8, ptr %ctx, i64 $barriers
  %offset = shl i64 %barrier, 4
  %signals.at = getelementptr i8, ptr %barriers, i64 %offset
  %complete = load i64, at i8, ptr %signals.at, i64 8
  %own.at = getelementptr i64, ptr %passed, i64 %barrier
  %own = load i64, ptr %own.at
  %passes = icmp sgt i64 %complete, %own
  br i1 %passes, label %next, label %stay

next:
  %own.next = add i64 %own, 1
  store i64 %own.next, ptr %own.at
  %progress.at = getelementptr i8, ptr %ctx, i64 $progress
  store i64 1, ptr %progress.at
  ret i1 true

stay:
  ret i1 false
}
