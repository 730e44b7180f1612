; The clocks of threads, by which `races.ll` tells whether accesses are ordered.
;
; The clocks of a workgroup of n threads are i32, except for the two words of the head:
;   0               i64: the number of the workgroup's first thread in the launch, plus one
;   8               i64: bits of the accesses that were not fenced before their thread signalled a barrier
;   16              [n]: for each thread, bits of its accesses since its last fence of the memory
;   16 + 4n         [3][n][n]: for each clock and thread, the latest count that it knows of every thread
;   16 + 4n + 12nn  [barriers][3][n]: the greatest counts of the threads that have signalled the current phase
;   behind that     [barriers][4][3][n]: the same for the last four complete phases, each at its number modulo 4
; Clock 0 counts signals at barriers, clock 1 fences of global memory, clock 2 fences of shared local memory.
; The bits are 1 << clock for atomics and 8 << clock for stores, with the clock of the memory.

; The address of the counts of one clock that the running thread knows, [n].
define hidden ptr @race_row(ptr %ctx, i64 %clock) nounwind {
entry:
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %me = load i64, at i8, ptr %ctx, i64 $current
  %rows = mul i64 %clock, %threads
  %row = add i64 %rows, %me
  %words = mul i64 %row, %threads
  %behind = add i64 %words, %threads
  %pending = getelementptr i8, ptr %clocks, i64 16
  %found = getelementptr i32, ptr %pending, i64 %behind
  ret ptr %found
}

; The running thread's own count of a clock.
define hidden i32 @race_own(ptr %ctx, i64 %clock) nounwind {
entry:
  %row = call ptr @race_row(ptr %ctx, i64 %clock)
  %me = load i64, at i8, ptr %ctx, i64 $current
  %own = load i32, at i32, ptr %row, i64 %me
  ret i32 %own
}

define hidden void @race_tick(ptr %ctx, i64 %clock) nounwind {
entry:
  %row = call ptr @race_row(ptr %ctx, i64 %clock)
  %me = load i64, at i8, ptr %ctx, i64 $current
  %own.at = getelementptr i32, ptr %row, i64 %me
  %own = load i32, ptr %own.at
  %next = add i32 %own, 1
  store i32 %next, ptr %own.at
  ret void
}

; The address of the bits of the running thread's unfenced accesses.
define hidden ptr @race_pending(ptr %ctx) nounwind {
entry:
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %me = load i64, at i8, ptr %ctx, i64 $current
  %pending = getelementptr i8, ptr %clocks, i64 16
  %found = getelementptr i32, ptr %pending, i64 %me
  ret ptr %found
}

; The address of a barrier's counts, [3][n]: the greatest counts of the threads that have signalled the current phase.
define hidden ptr @race_gathered(ptr %ctx, i64 %barrier) nounwind {
entry:
  %row = call ptr @race_row(ptr %ctx, i64 3)
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %me = load i64, at i8, ptr %ctx, i64 $current
  %before = mul i64 %me, %threads
  %back = sub i64 0, %before
  %all = getelementptr i32, ptr %row, i64 %back
  %each = mul i64 %threads, 3
  %own = mul i64 %barrier, %each
  %found = getelementptr i32, ptr %all, i64 %own
  ret ptr %found
}

; The same for one of the barrier's last four complete phases.
define hidden ptr @race_complete(ptr %ctx, i64 %barrier, i64 %phase) nounwind {
entry:
  %bytes = load i64, at i8, ptr %ctx, i64 $barrier_bytes
  %barriers = lshr i64 %bytes, 4
  %before = shl i64 %barrier, 2
  %place = and i64 %phase, 3
  %number = or i64 %before, %place
  %behind = add i64 %barriers, %number
  %found = call ptr @race_gathered(ptr %ctx, i64 %behind)
  ret ptr %found
}

; Raise the counts of all three clocks at `to` to at least those at `from`. The rows of the clocks are `to.apart` and
; `from.apart` i32 apart.
define hidden void @race_raise(ptr %to, i64 %to.apart, ptr %from, i64 %from.apart, i64 %threads) nounwind {
entry:
  br label %clock

clock:
  %c = phi i64 [ 0, %entry ], [ %c.next, %done ]
  %more = icmp slt i64 %c, 3
  br i1 %more, label %row, label %out

row:
  %to.row = mul i64 %c, %to.apart
  %to.first = getelementptr i32, ptr %to, i64 %to.row
  %from.row = mul i64 %c, %from.apart
  %from.first = getelementptr i32, ptr %from, i64 %from.row
  br label %next

next:
  %t = phi i64 [ 0, %row ], [ %t.next, %raise ]
  %left = icmp slt i64 %t, %threads
  br i1 %left, label %raise, label %done

raise:
  %to.at = getelementptr i32, ptr %to.first, i64 %t
  %from.at = getelementptr i32, ptr %from.first, i64 %t
  %old = load i32, ptr %to.at
  %new = load i32, ptr %from.at
  %greater = call i32 @llvm.smax.i32(i32 %old, i32 %new)
  store i32 %greater, ptr %to.at
  %t.next = add i64 %t, 1
  br label %next

done:
  %c.next = add i64 %c, 1
  br label %clock

out:
  ret void
}

; Record a fence by the running thread. The memory is 1 for global memory and 2 for shared local memory.
define hidden void @race_fence(ptr %ctx, i64 %memory) noinline nounwind {
entry:
  call void @race_tick(ptr %ctx, i64 %memory)
  %pending.at = call ptr @race_pending(ptr %ctx)
  %pending = load i32, ptr %pending.at
  %memory32 = trunc i64 %memory to i32
  %bits = shl i32 9, %memory32
  %others = xor i32 %bits, -1
  %rest = and i32 %pending, %others
  store i32 %rest, ptr %pending.at
  ret void
}

; The number of complete phases of a barrier.
define hidden i64 @race_phases(ptr %ctx, i64 %barrier) nounwind {
entry:
  %barriers = load ptr, at i8, ptr %ctx, i64 $barriers
  %offset = shl i64 %barrier, 4
  %signals.at = getelementptr i8, ptr %barriers, i64 %offset
  %complete = load i64, at i8, ptr %signals.at, i64 8
  ret i64 %complete
}

; Record a signal at a barrier by the running thread, which completed some phases.
define hidden void @race_signal(ptr %ctx, i64 %barrier, i64 %phases) noinline nounwind {
entry:
  %end = call i64 @race_phases(ptr %ctx, i64 %barrier)
  %phase = sub i64 %end, %phases
  call void @race_tick(ptr %ctx, i64 0)
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %unfenced.at = getelementptr i8, ptr %clocks, i64 8
  %unfenced = load i64, ptr %unfenced.at
  %pending.at = call ptr @race_pending(ptr %ctx)
  %pending = load i32, ptr %pending.at
  %pending64 = zext i32 %pending to i64
  %unfenced.now = or i64 %unfenced, %pending64
  store i64 %unfenced.now, ptr %unfenced.at
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %apart = mul i64 %threads, %threads
  %row = call ptr @race_row(ptr %ctx, i64 0)
  %gathered = call ptr @race_gathered(ptr %ctx, i64 %barrier)
  call void @race_raise(ptr %gathered, i64 %threads, ptr %row, i64 %apart, i64 %threads)
  %bytes = mul i64 %threads, 12
  br label %next

next:
  %number = phi i64 [ %phase, %entry ], [ %number.next, %complete ]
  %more = icmp slt i64 %number, %end
  br i1 %more, label %complete, label %out

complete:
  %last = call ptr @race_complete(ptr %ctx, i64 %barrier, i64 %number)
  call void @llvm.memcpy.p0.p0.i64(ptr %last, ptr %gathered, i64 %bytes, i1 false)
  %number.next = add i64 %number, 1
  br label %next

out:
  ret void
}

; Record that the running thread has passed its wait for a phase of a barrier. `passed` has for each barrier the number
; of phases that the thread has passed. If signal and wait are two instructions, other threads may be more than four
; phases ahead. The counts of the phase are lost then.
define hidden void @race_pass(ptr %ctx, ptr %passed, i64 %barrier) noinline nounwind {
entry:
  %own = load i64, at i64, ptr %passed, i64 %barrier
  %phase = sub i64 %own, 1
  %phases = call i64 @race_phases(ptr %ctx, i64 %barrier)
  %ahead = sub i64 %phases, %phase
  %known = icmp sle i64 %ahead, 4
  br i1 %known, label %raise, label %out

raise:
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %apart = mul i64 %threads, %threads
  %row = call ptr @race_row(ptr %ctx, i64 0)
  %complete = call ptr @race_complete(ptr %ctx, i64 %barrier, i64 %phase)
  call void @race_raise(ptr %row, i64 %apart, ptr %complete, i64 %threads, i64 %threads)
  br label %out

out:
  ret void
}

; Whether the running thread knows of at least `least` signals at barriers of every thread of the workgroup.
define hidden i1 @race_known(ptr %ctx, i32 %least) nounwind {
entry:
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %row = call ptr @race_row(ptr %ctx, i64 0)
  br label %next

next:
  %t = phi i64 [ 0, %entry ], [ %t.next, %look ]
  %left = icmp slt i64 %t, %threads
  br i1 %left, label %look, label %yes

look:
  %count = load i32, at i32, ptr %row, i64 %t
  %t.next = add i64 %t, 1
  %enough = icmp sge i32 %count, %least
  br i1 %enough, label %next, label %no

yes:
  ret i1 true

no:
  ret i1 false
}

; The number within the workgroup of the thread to which an entry belongs. It is negative, or at least n, if the thread
; belongs to another workgroup.
define hidden i64 @race_member(ptr %ctx, i64 %access) nounwind {
entry:
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %first = load i64, ptr %clocks
  %owner = lshr i64 %access, 32
  %number = and i64 %owner, 2147483647
  %member = sub i64 %number, %first
  ret i64 %member
}

; Whether an earlier access is ordered before the current access of the running thread.
;
; Args:
;   access: the entry of the earlier access, not 0.
;   slm: 1 for shared local memory, in which workgroups do not share granules.
;   kind: the kind of the earlier access: 0 is a load, 1 a store, 2 an atomic.
define hidden i1 @race_ordered(ptr %ctx, i64 %access, i32 %slm, i32 %kind) noinline nounwind {
entry:
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %member = call i64 @race_member(ptr %ctx, i64 %access)
  %own = icmp ult i64 %member, %threads
  br i1 %own, label %together, label %apart

apart:
  %local = icmp ne i32 %slm, 0
  ret i1 %local

together:
  %low = trunc i64 %access to i32
  %stamp = and i32 %low, 2147483647
  %several = icmp slt i64 %access, 0
  %is_load = icmp eq i32 %kind, 0
  %is_store = icmp eq i32 %kind, 1
  %clock32 = add i32 %slm, 1
  %clock = zext i32 %clock32 to i64
  ; What one thread has stored is there if it has fenced that. Of all else, no unfenced access must have been signalled.
  %one_store = select i1 %several, i1 false, i1 %is_store
  %base = select i1 %is_store, i32 8, i32 1
  %shifted = shl i32 %base, %clock32
  %bits = select i1 %is_load, i32 0, i32 %shifted
  %wanted = select i1 %one_store, i32 0, i32 %bits
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %unfenced = load i64, at i8, ptr %clocks, i64 8
  %unfenced32 = trunc i64 %unfenced to i32
  %leaks = and i32 %unfenced32, %wanted
  %leaky = icmp ne i32 %leaks, 0
  br i1 %leaky, label %no, label %fenced

fenced:
  br i1 %several, label %all, label %one

one:
  %which = select i1 %one_store, i64 %clock, i64 0
  %row = call ptr @race_row(ptr %ctx, i64 %which)
  %count = load i32, at i32, ptr %row, i64 %member
  %known = icmp sge i32 %count, %stamp
  ret i1 %known

all:
  %passed = call i1 @race_known(ptr %ctx, i32 %stamp)
  ret i1 %passed

no:
  ret i1 false
}

; The greatest count of clock 0 with which any thread of the workgroup may have accessed memory so far.
define hidden i32 @race_latest(ptr %ctx) nounwind {
entry:
  %phase.before = call i32 @race_own(ptr %ctx, i64 0)
  %phase = add i32 %phase.before, 1
  ; Where signal and wait are one instruction no thread is ahead of another that has not passed what that one has.
  %plain = load i64, at i8, ptr %ctx, i64 $plain
  %is_plain = icmp ne i64 %plain, 0
  br i1 %is_plain, label %out, label %search

search:
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %rows = getelementptr i8, ptr %clocks, i64 16
  br label %next

next:
  %t = phi i64 [ 0, %search ], [ %t.next, %look ]
  %most = phi i32 [ %phase, %search ], [ %greater, %look ]
  %left = icmp slt i64 %t, %threads
  br i1 %left, label %look, label %out

look:
  %t.next = add i64 %t, 1
  %place = mul i64 %t.next, %threads
  %diagonal = add i64 %place, %t
  %count = load i32, at i32, ptr %rows, i64 %diagonal
  %own = add i32 %count, 1
  %greater = call i32 @llvm.smax.i32(i32 %most, i32 %own)
  br label %next

out:
  %found = phi i32 [ %phase, %entry ], [ %most, %next ]
  ret i32 %found
}

; The entry that stands for two accesses. The earlier access is by another thread.
;
; Args:
;   old, own: the entries of the two accesses.
;   ordered: whether the earlier access is ordered before the other.
;   least: the least count of clock 0 that a thread must know to be ordered after both, if they are of one workgroup.
define hidden i64 @race_joined(ptr %ctx, i64 %old, i64 %own, i32 %slm, i1 %ordered, i32 %least) nounwind {
entry:
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %member = call i64 @race_member(ptr %ctx, i64 %old)
  %together = icmp ult i64 %member, %threads
  %local = icmp ne i32 %slm, 0
  br i1 %together, label %same, label %apart

apart:
  %other = select i1 %local, i64 %own, i64 -2147483649
  ret i64 %other

same:
  br i1 %ordered, label %replace, label %join

replace:
  ret i64 %own

join:
  %low = trunc i64 %old to i32
  %stamp = and i32 %low, 2147483647
  %greater = call i32 @llvm.smax.i32(i32 %stamp, i32 %least)
  %greater64 = zext i32 %greater to i64
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %first = load i64, ptr %clocks
  %several = or i64 %first, 2147483648
  %high = shl i64 %several, 32
  %joined = or i64 %high, %greater64
  ret i64 %joined
}
