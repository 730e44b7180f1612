; A program that is split into several functions: each runs the part of it from one instruction on.

; Runs a thread: calls the part that has its program counter, until a part returns for another reason than that the
; thread continues in another part. The constants are the first instruction of each part, in rising order, and the parts'
; functions. $counter gets the program counter from its address; $places are the bits of it
; that are an instruction, and not the calls that have not returned.
@starts = private unnamed_addr constant [$count x i32] [$starts]
@parts = private unnamed_addr constant [$count x ptr] [$parts]
define hidden i32 @thread(ptr %ctx, ptr noalias align 64 %thread) $attributes {
entry:
  br label %again

again:
  %counter.at = getelementptr i8, ptr %thread, i64 $counter_offset
  %counter = $counter
  %at = and i32 %counter, $places
  br label %search

search:
  ; The part is one of those from `low` to before `high`.
  %low = phi i64 [ 0, %again ], [ %low.next, %half ]
  %high = phi i64 [ $count, %again ], [ %high.next, %half ]
  %size = sub i64 %high, %low
  %one = icmp eq i64 %size, 1
  br i1 %one, label %run, label %half

half:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %start = load i32, at i32, ptr @starts, i64 %middle
  %before = icmp slt i32 %at, %start
  %low.next = select i1 %before, i64 %low, i64 %middle
  %high.next = select i1 %before, i64 %middle, i64 %high
  br label %search

run:
  %part = load ptr, at ptr, ptr @parts, i64 %low
  %status = call i32 %part(ptr %ctx, ptr %thread)
  %moved = icmp eq i32 %status, $MOVED
  br i1 %moved, label %again, label %out

out:
  ret i32 %status
}
