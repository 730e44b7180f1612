; The loop over workgroups and their threads. Threads that wait for each other run round-robin. The loop is the same for
; all programs: the properties of a program that it needs are in the context.
;
; `templates.py` replaces the words that begin with a dollar sign by byte offsets of the fields of `Context` and of a
; thread's block, the values of `Status`, and limits.

; Prepares the threads of a workgroup, or of several workgroups that run together and count as one. The memory of the
; workgroup is cleared. Each thread's block is a copy of the template, to which the thread's number, the position of the
; workgroup in the grid, and the ids of the thread's first work item are added. Registers that are written before they
; are read are not copied.
define hidden void @begin(ptr %ctx, i64 %group) noinline nounwind {
entry:
  %slm = load ptr, at i8, ptr %ctx, i64 $slm
  %slm_bytes = load i64, at i8, ptr %ctx, i64 $slm_bytes
  call void @llvm.memset.p0.i64(ptr %slm, i8 0, i64 %slm_bytes, i1 false)
  %barriers = load ptr, at i8, ptr %ctx, i64 $barriers
  %barrier_bytes = load i64, at i8, ptr %ctx, i64 $barrier_bytes
  call void @llvm.memset.p0.i64(ptr %barriers, i8 0, i64 %barrier_bytes, i1 false)
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %unclocked = icmp eq ptr %clocks, null
  br i1 %unclocked, label %located, label %clear

clear:
  ; The clocks of `race_clocks.ll`. Their first word is the number of the workgroup's first thread in the launch, plus one.
  %clock_bytes = load i64, at i8, ptr %ctx, i64 $clock_bytes
  call void @llvm.memset.p0.i64(ptr %clocks, i8 0, i64 %clock_bytes, i1 false)
  %threads.before = mul i64 %group, %threads
  %first = add i64 %threads.before, 1
  store i64 %first, ptr %clocks
  br label %located

located:
  %grid_x = load i64, at i8, ptr %ctx, i64 $grid_x
  %grid_y = load i64, at i8, ptr %ctx, i64 $grid_y
  %group_threads = load i64, at i8, ptr %ctx, i64 $group_threads
  %across = load i64, at i8, ptr %ctx, i64 $across
  %together = udiv i64 %threads, %group_threads
  %down = udiv i64 %together, %across
  ; The position of the workgroups that run together: `across` of them in x and `down` in y, in the order of x first.
  %batches_x = udiv i64 %grid_x, %across
  %batches_y = udiv i64 %grid_y, %down
  %batch_x = urem i64 %group, %batches_x
  %line = udiv i64 %group, %batches_x
  %batch_y = urem i64 %line, %batches_y
  %group_z = udiv i64 %line, %batches_y
  %z32 = trunc i64 %group_z to i32
  %first_x = mul i64 %batch_x, %across
  %first_y = mul i64 %batch_y, %down

  %blocks = load ptr, at i8, ptr %ctx, i64 $blocks
  %block_bytes = load i64, at i8, ptr %ctx, i64 $block_bytes
  %initial_bytes = load i64, at i8, ptr %ctx, i64 $initial_bytes
  %template = load ptr, at i8, ptr %ctx, i64 $template
  %given = load i64, at i8, ptr %ctx, i64 $given
  %registers = load i64, at i8, ptr %ctx, i64 $registers
  %state.from = getelementptr i8, ptr %template, i64 %registers
  %state_bytes = sub i64 %initial_bytes, %registers
  %items = load i64, at i8, ptr %ctx, i64 $items
  %block_x = load i64, at i8, ptr %ctx, i64 $block_x
  %block_y = load i64, at i8, ptr %ctx, i64 $block_y
  %local_ids = load ptr, at i8, ptr %ctx, i64 $local_ids
  %id_count = load i64, at i8, ptr %ctx, i64 $local_id_count
  br label %next

next:
  %thread = phi i64 [ 0, %located ], [ %thread.next, %ready ]
  %more = icmp slt i64 %thread, %threads
  br i1 %more, label %copy, label %done

copy:
  %offset = mul i64 %thread, %block_bytes
  %block = getelementptr i8, ptr %blocks, i64 %offset
  call void @llvm.memcpy.p0.p0.i64(ptr %block, ptr %template, i64 %given, i1 false)
  %state = getelementptr i8, ptr %block, i64 %registers
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %state.from, i64 %state_bytes, i1 false)
  %member = udiv i64 %thread, %group_threads
  %own = urem i64 %thread, %group_threads
  %member_x = urem i64 %member, %across
  %member_y = udiv i64 %member, %across
  %group_x = add i64 %first_x, %member_x
  %group_y = add i64 %first_y, %member_y
  %x32 = trunc i64 %group_x to i32
  %y32 = trunc i64 %group_y to i32
  %number.at = getelementptr i8, ptr %block, i64 8
  %number = trunc i64 %own to i32
  store i32 %number, ptr %number.at
  %x.at = getelementptr i8, ptr %block, i64 $group_id_x
  store i32 %x32, ptr %x.at
  %y.at = getelementptr i8, ptr %block, i64 $group_id_y
  store i32 %y32, ptr %y.at
  %z.at = getelementptr i8, ptr %block, i64 $group_id_z
  store i32 %z32, ptr %z.at
  %item = mul i64 %own, %items
  %own_x = urem i64 %item, %block_x
  %row = udiv i64 %item, %block_x
  %own_y = urem i64 %row, %block_y
  %own_z = udiv i64 %row, %block_y
  %own_x32 = trunc i64 %own_x to i32
  %own_y32 = trunc i64 %own_y to i32
  %own_z32 = trunc i64 %own_z to i32
  br label %ids

ids:
  %id = phi i64 [ 0, %copy ], [ %id.next, %write ]
  %id.more = icmp slt i64 %id, %id_count
  br i1 %id.more, label %write, label %ready

write:
  %place = load i64, at i64, ptr %local_ids, i64 %id
  %id_x.at = getelementptr i8, ptr %block, i64 %place
  %id_y.at = getelementptr i8, ptr %id_x.at, i64 4
  %id_z.at = getelementptr i8, ptr %id_x.at, i64 8
  store i32 %own_x32, ptr %id_x.at, align 1
  store i32 %own_y32, ptr %id_y.at, align 1
  store i32 %own_z32, ptr %id_z.at, align 1
  %id.next = add i64 %id, 1
  br label %ids

ready:
  %thread.next = add i64 %thread, 1
  br label %next

done:
  ret void
}

; Runs the threads of a workgroup round-robin until they have ended, and returns a status. In each round every thread
; runs for one time slice.
define hidden i32 @drive(ptr %ctx) noinline nounwind {
entry:
  %threads = load i64, at i8, ptr %ctx, i64 $threads
  %blocks = load ptr, at i8, ptr %ctx, i64 $blocks
  %block_bytes = load i64, at i8, ptr %ctx, i64 $block_bytes
  %status_offset = load i64, at i8, ptr %ctx, i64 $status_offset
  %run = load ptr, at i8, ptr %ctx, i64 $thread
  %budget.at = getelementptr i8, ptr %ctx, i64 $budget
  %current.at = getelementptr i8, ptr %ctx, i64 $current
  %faulty.at = getelementptr i8, ptr %ctx, i64 $faulty
  %patience.at = getelementptr i8, ptr %ctx, i64 $patience
  %progress.at = getelementptr i8, ptr %ctx, i64 $progress
  %stop = load ptr, at i8, ptr %ctx, i64 $stop
  %idle.at = getelementptr i8, ptr %ctx, i64 $idle
  %idle.before = load i64, ptr %idle.at
  store i64 0, ptr %idle.at
  br label %round

round:
  ; The number of rounds since a thread last ended or passed a barrier.
  %idle = phi i64 [ %idle.before, %entry ], [ %idle.next, %again ]
  store i64 0, ptr %progress.at
  br label %next

next:
  %thread = phi i64 [ 0, %round ], [ %thread.next, %back ]
  %live = phi i1 [ false, %round ], [ %live.next, %back ]
  %moved = phi i1 [ false, %round ], [ %moved.next, %back ]
  %yielded = phi i1 [ false, %round ], [ %yielded.next, %back ]
  %more = icmp slt i64 %thread, %threads
  br i1 %more, label %look, label %count

look:
  %offset = mul i64 %thread, %block_bytes
  %block = getelementptr i8, ptr %blocks, i64 %offset
  %status.at = getelementptr i8, ptr %block, i64 %status_offset
  %before = load i32, ptr %status.at
  %over = icmp eq i32 %before, $ENDED
  br i1 %over, label %back, label %go

go:
  store i64 $slice, ptr %budget.at
  store i64 %thread, ptr %current.at
  %after = call i32 %run(ptr %ctx, ptr %block)
  store i32 %after, ptr %status.at
  switch i32 %after, label %note [ i32 $FAULT, label %fault ]

note:
  %ended = icmp eq i32 %after, $ENDED
  %waits = icmp eq i32 %after, $WAITING
  %waited = icmp eq i32 %before, $WAITING
  %yields = icmp eq i32 %after, $YIELDED
  %not_ended = xor i1 %ended, true
  %not_waited = xor i1 %waited, true
  %arrived = and i1 %waits, %not_waited
  %moves = or i1 %ended, %arrived
  br label %back

back:
  %own_live = phi i1 [ false, %look ], [ %not_ended, %note ]
  %own_moved = phi i1 [ false, %look ], [ %moves, %note ]
  %own_yielded = phi i1 [ false, %look ], [ %yields, %note ]
  %live.next = or i1 %live, %own_live
  %moved.next = or i1 %moved, %own_moved
  %yielded.next = or i1 %yielded, %own_yielded
  %thread.next = add i64 %thread, 1
  br label %next

fault:
  store i64 %thread, ptr %faulty.at
  ret i32 $FAULT

count:
  %patience = load i64, ptr %patience.at
  %patience.left = sub i64 %patience, 1
  store i64 %patience.left, ptr %patience.at
  br i1 %live, label %interrupted, label %all_ended

all_ended:
  ret i32 $ENDED

interrupted:
  %asked = load i32, ptr %stop
  %stops = icmp ne i32 %asked, 0
  br i1 %stops, label %stopped, label %stuck

stopped:
  ret i32 $STOPPED

stuck:
  ; There is a deadlock if no thread has ended, reached or passed a barrier, or yielded, as threads that poll do.
  %passed = load i64, ptr %progress.at
  %passes = icmp ne i64 %passed, 0
  %some = or i1 %moved, %passes
  %runs = or i1 %some, %yielded
  br i1 %runs, label %idles, label %deadlock

deadlock:
  ret i32 $DEADLOCK

idles:
  %idle.more = add i64 %idle, 1
  %idle.next = select i1 %some, i64 0, i64 %idle.more
  %long = icmp sgt i64 %idle.next, $rounds
  br i1 %long, label %others, label %pauses

others:
  ret i32 $YIELDED

pauses:
  %patient = icmp sgt i64 %patience.left, 0
  br i1 %patient, label %again, label %paused

paused:
  store i64 %idle.next, ptr %idle.at
  ret i32 $PAUSED

again:
  br label %round
}

; Takes workgroups from the counter that all workers share, and runs them. The status is written to the context.
define hidden void @launch(ptr %ctx) {
entry:
  %stop = load ptr, at i8, ptr %ctx, i64 $stop
  %next = load ptr, at i8, ptr %ctx, i64 $next
  %groups = load i64, at i8, ptr %ctx, i64 $groups
  %chunk = load i64, at i8, ptr %ctx, i64 $chunk
  %pause.at = getelementptr i8, ptr %ctx, i64 $pause
  %patience.at = getelementptr i8, ptr %ctx, i64 $patience
  %first.at = getelementptr i8, ptr %ctx, i64 $first
  %last.at = getelementptr i8, ptr %ctx, i64 $last
  %ended.at = getelementptr i8, ptr %ctx, i64 $ended
  %status.at = getelementptr i8, ptr %ctx, i64 $status
  br label %check

check:
  %asked = load i32, ptr %stop
  %stops = icmp ne i32 %asked, 0
  br i1 %stops, label %stopped, label %look

look:
  %first = load i64, ptr %first.at
  %last = load i64, ptr %last.at
  %left = icmp slt i64 %first, %last
  br i1 %left, label %run, label %take

take:
  %start = atomicrmw add ptr %next, i64 %chunk monotonic, align 8
  %some = icmp slt i64 %start, %groups
  br i1 %some, label %taken, label %out

taken:
  %end = add i64 %start, %chunk
  %limit = call i64 @llvm.smin.i64(i64 %end, i64 %groups)
  store i64 %start, ptr %first.at
  store i64 %limit, ptr %last.at
  br label %run

run:
  %group = load i64, ptr %first.at
  call void @begin(ptr %ctx, i64 %group)
  %how = call i32 @drive(ptr %ctx)
  %how64 = zext i32 %how to i64
  store i64 %how64, ptr %status.at
  %fine = icmp eq i32 %how, $ENDED
  br i1 %fine, label %ran, label %failed

failed:
  ret void

ran:
  %group.next = add i64 %group, 1
  store i64 %group.next, ptr %first.at
  %ended = load i64, ptr %ended.at
  %ended.next = add i64 %ended, 1
  store i64 %ended.next, ptr %ended.at
  %patience = load i64, ptr %patience.at
  %patient = icmp sgt i64 %patience, 0
  br i1 %patient, label %next_group, label %out

next_group:
  %limit.now = load i64, ptr %last.at
  %own = icmp slt i64 %group.next, %limit.now
  br i1 %own, label %check, label %pauses

pauses:
  %pause = load i64, ptr %pause.at
  %back = icmp ne i64 %pause, 0
  br i1 %back, label %out, label %check

stopped:
  store i64 $STOPPED, ptr %status.at
  ret void

out:
  store i64 $ENDED, ptr %status.at
  ret void
}

; Resumes a workgroup that has begun.
define hidden void @resume(ptr %ctx) {
entry:
  %how = call i32 @drive(ptr %ctx)
  %how64 = zext i32 %how to i64
  %status.at = getelementptr i8, ptr %ctx, i64 $status
  store i64 %how64, ptr %status.at
  ret void
}
