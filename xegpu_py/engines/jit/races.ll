; The functions that native code calls at each memory access if races are looked for; `checks.py` describes the data
; that they keep. The order of accesses is that of `race_clocks.ll`.
;
; An entry of the shadow memory is an i64. Its upper half is the number in the launch of the thread that accessed the
; granule, plus one. Its lower half is the clock with which later accesses are compared. Bit 31 of the upper half means
; that several threads of one workgroup accessed the granule; the number is then that of the workgroup's first thread.
; Bit 31 of the lower half means that the granule has had several values. An entry of 0 means no access, and an entry of
; 0xFFFFFFFF7FFFFFFF means accesses by several workgroups.

; Whether some of the bytes at two places differ.
define hidden i1 @race_differs(ptr %a, ptr %b, i64 %size) nounwind {
entry:
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %wide ]
  %i.next = add i64 %i, 8
  %whole = icmp sle i64 %i.next, %size
  br i1 %whole, label %wide, label %byte

wide:
  %a.wide.at = getelementptr i8, ptr %a, i64 %i
  %b.wide.at = getelementptr i8, ptr %b, i64 %i
  %a.wide = load i64, ptr %a.wide.at, align 1
  %b.wide = load i64, ptr %b.wide.at, align 1
  %equal = icmp eq i64 %a.wide, %b.wide
  br i1 %equal, label %next, label %yes

byte:
  %n = phi i64 [ %i, %next ], [ %n.next, %look ]
  %left = icmp slt i64 %n, %size
  br i1 %left, label %look, label %no

look:
  %a.at = getelementptr i8, ptr %a, i64 %n
  %b.at = getelementptr i8, ptr %b, i64 %n
  %x = load i8, ptr %a.at
  %y = load i8, ptr %b.at
  %n.next = add i64 %n, 1
  %same = icmp eq i8 %x, %y
  br i1 %same, label %byte, label %yes

yes:
  ret i1 true

no:
  ret i1 false
}

; The number of entries, from the first of `count` on, that have a value. It reads up to seven entries behind them.
define hidden i64 @race_run(ptr %table, i64 %count, i64 %value) nounwind {
entry:
  %one = insertelement <8 x i64> poison, i64 %value, i32 0
  %all = shufflevector <8 x i64> %one, <8 x i64> poison, <8 x i32> zeroinitializer
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %same ]
  %at = getelementptr i64, ptr %table, i64 %i
  %found = load <8 x i64>, ptr %at, align 8
  %others = icmp ne <8 x i64> %found, %all
  %bits = bitcast <8 x i1> %others to i8
  %none = icmp eq i8 %bits, 0
  br i1 %none, label %same, label %some

same:
  %i.next = add i64 %i, 8
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %out

some:
  %first = call i8 @llvm.cttz.i8(i8 %bits, i1 true)
  %first64 = zext i8 %first to i64
  %run = add i64 %i, %first64
  br label %out

out:
  %length = phi i64 [ %i.next, %same ], [ %run, %some ]
  %least = call i64 @llvm.smin.i64(i64 %length, i64 %count)
  ret i64 %least
}

; Write a value to `count` entries.
define hidden void @race_fill(ptr %table, i64 %count, i64 %value) nounwind {
entry:
  %one = insertelement <8 x i64> poison, i64 %value, i32 0
  %all = shufflevector <8 x i64> %one, <8 x i64> poison, <8 x i32> zeroinitializer
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %wide ]
  %i.next = add i64 %i, 8
  %whole = icmp sle i64 %i.next, %count
  br i1 %whole, label %wide, label %single

wide:
  %at = getelementptr i64, ptr %table, i64 %i
  store <8 x i64> %all, ptr %at, align 8
  br label %next

single:
  %n = phi i64 [ %i, %next ], [ %n.next, %put ]
  %left = icmp slt i64 %n, %count
  br i1 %left, label %put, label %out

put:
  %n.at = getelementptr i64, ptr %table, i64 %n
  store i64 %value, ptr %n.at
  %n.next = add i64 %n, 1
  br label %single

out:
  ret void
}

; Acquire a lock of global memory. While another thread holds it for long, this one yields to the operating system.
define hidden void @race_lock(ptr %ctx, ptr %lock) nounwind {
entry:
  br label %try

try:
  %tries = phi i64 [ 0, %entry ], [ %tries.next, %busy ], [ %tries.next, %wait ]
  %pair = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %taken = extractvalue { i32, i1 } %pair, 1
  br i1 %taken, label %out, label %busy

busy:
  %tries.next = add i64 %tries, 1
  %some = and i64 %tries.next, 255
  %long = icmp eq i64 %some, 0
  br i1 %long, label %wait, label %try

wait:
  %yield = load ptr, at i8, ptr %ctx, i64 $yield_
  %ignored = call i32 %yield()
  br label %try

out:
  ret void
}

; Record an access of some granules, which are in one part of memory that has a lock. Returns whether there is no race.
; Adjacent granules with equal entries are compared as one: most accesses are of places that one access made.
;
; Args:
;   table: the entry of the first granule's stores; that of its loads is `stride` bytes behind, and that of its atomics
;     twice `stride`.
;   count: the number of granules.
;   values, host: the bytes that are stored, and their destination; each granule has `size` bytes.
;   kind: 0 a load, 1 a store, 2 an atomic.
;   loads: whether loads of this memory are recorded.
define hidden i1 @race_compare(ptr %ctx, ptr %table, i64 %stride, i64 %count, ptr %values, ptr %host, i64 %size, i32 %slm, i32 %kind, i1 %loads) noinline nounwind {
entry:
  %clocks = load ptr, at i8, ptr %ctx, i64 $clocks
  %first = load i64, ptr %clocks
  %me = load i64, at i8, ptr %ctx, i64 $current
  %owner = add i64 %first, %me
  %high = shl i64 %owner, 32
  %signals = call i32 @race_own(ptr %ctx, i64 0)
  %phase = add i32 %signals, 1
  %memory32 = add i32 %slm, 1
  %memory = zext i32 %memory32 to i64
  %fences = call i32 @race_own(ptr %ctx, i64 %memory)
  %fence = add i32 %fences, 1
  %is_load = icmp eq i32 %kind, 0
  %is_store = icmp eq i32 %kind, 1
  %is_atomic = icmp eq i32 %kind, 2
  %stamp = select i1 %is_store, i32 %fence, i32 %phase
  %stamp64 = zext i32 %stamp to i64
  %own = or i64 %high, %stamp64
  %local = icmp ne i32 %slm, 0
  %atomics = load i64, at i8, ptr %ctx, i64 $atomics
  %masked = lshr i64 %atomics, %memory
  %odd = and i64 %masked, 1
  %has_atomics = icmp ne i64 %odd, 0
  %looks_at_atomics = select i1 %is_atomic, i1 false, i1 %has_atomics
  %looks_at_loads = select i1 %is_load, i1 false, i1 %loads
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fine ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %place, label %yes

place:
  %left = sub i64 %count, %i
  %store.at = getelementptr i64, ptr %table, i64 %i
  %load.at = getelementptr i8, ptr %store.at, i64 %stride
  %atomic.at = getelementptr i8, ptr %load.at, i64 %stride
  %set.at = select i1 %is_atomic, ptr %atomic.at, ptr %load.at
  br i1 %is_store, label %stores, label %known

known:
  ; The same access again. A store to the granule since then would have removed the entry.
  %set = load i64, ptr %set.at
  %set.run = call i64 @race_run(ptr %set.at, i64 %left, i64 %set)
  %again = icmp eq i64 %set, %own
  br i1 %again, label %fine, label %stores

stores:
  %set.before = phi i64 [ 0, %place ], [ %set, %known ]
  %most = phi i64 [ %left, %place ], [ %set.run, %known ]
  %old = load i64, ptr %store.at
  %store.run = call i64 @race_run(ptr %store.at, i64 %most, i64 %old)
  br i1 %looks_at_loads, label %loads_run, label %atomics_run

loads_run:
  %loaded.first = load i64, ptr %load.at
  %load.run = call i64 @race_run(ptr %load.at, i64 %store.run, i64 %loaded.first)
  br label %atomics_run

atomics_run:
  %loaded = phi i64 [ 0, %stores ], [ %loaded.first, %loads_run ]
  %both.run = phi i64 [ %store.run, %stores ], [ %load.run, %loads_run ]
  br i1 %looks_at_atomics, label %changed_run, label %same_run

changed_run:
  %changed.first = load i64, ptr %atomic.at
  %atomic.run = call i64 @race_run(ptr %atomic.at, i64 %both.run, i64 %changed.first)
  br label %same_run

same_run:
  %changed = phi i64 [ 0, %atomics_run ], [ %changed.first, %changed_run ]
  %run = phi i64 [ %both.run, %atomics_run ], [ %atomic.run, %changed_run ]
  %none = icmp eq i64 %old, 0
  br i1 %none, label %look_at_loads, label %stored

stored:
  %old.owner = lshr i64 %old, 32
  %mine = icmp eq i64 %old.owner, %owner
  br i1 %mine, label %after, label %others

others:
  %ordered = call i1 @race_ordered(ptr %ctx, i64 %old, i32 %slm, i32 1)
  br label %after

after:
  %follows = phi i1 [ true, %stored ], [ %ordered, %others ]
  br i1 %is_store, label %values_of, label %read

read:
  br i1 %follows, label %look_at_loads, label %no

values_of:
  ; A store of the value that is in memory already is no race, unless the granule has had other values before.
  %offset = mul i64 %i, %size
  %value.at = getelementptr i8, ptr %values, i64 %offset
  %there.at = getelementptr i8, ptr %host, i64 %offset
  %bytes = mul i64 %run, %size
  %changes = call i1 @race_differs(ptr %value.at, ptr %there.at, i64 %bytes)
  %old.low = trunc i64 %old to i32
  %varied = icmp slt i32 %old.low, 0
  %matters = or i1 %changes, %varied
  br i1 %follows, label %keep, label %collide

collide:
  br i1 %matters, label %no, label %share

share:
  %latest = call i32 @race_latest(ptr %ctx)
  %shared = call i64 @race_joined(ptr %ctx, i64 %old, i64 %own, i32 %slm, i1 false, i32 %latest)
  br label %look_at_loads

keep:
  ; In shared local memory a barrier begins anew.
  %anew = xor i1 %mine, true
  %forgets = and i1 %local, %anew
  %stays = select i1 %forgets, i1 false, i1 %matters
  %with = or i64 %own, 2147483648
  %kept = select i1 %stays, i64 %with, i64 %own
  br label %look_at_loads

look_at_loads:
  %stored.now = phi i64 [ %own, %same_run ], [ 0, %read ], [ %shared, %share ], [ %kept, %keep ]
  %unread = icmp eq i64 %loaded, 0
  br i1 %unread, label %look_at_atomics, label %was_read

was_read:
  %loaded.owner = lshr i64 %loaded, 32
  %by_me = icmp eq i64 %loaded.owner, %owner
  br i1 %by_me, label %forget_loads, label %by_others

by_others:
  %load_ordered = call i1 @race_ordered(ptr %ctx, i64 %loaded, i32 %slm, i32 0)
  br i1 %load_ordered, label %forget_loads, label %no

forget_loads:
  br i1 %is_store, label %clear_loads, label %look_at_atomics

clear_loads:
  call void @race_fill(ptr %load.at, i64 %run, i64 0)
  br label %look_at_atomics

look_at_atomics:
  %unchanged = icmp eq i64 %changed, 0
  br i1 %unchanged, label %update, label %was_changed

was_changed:
  %changed.owner = lshr i64 %changed, 32
  %changed_by_me = icmp eq i64 %changed.owner, %owner
  br i1 %changed_by_me, label %forget_atomics, label %changed_by_others

changed_by_others:
  %atomic_ordered = call i1 @race_ordered(ptr %ctx, i64 %changed, i32 %slm, i32 2)
  br i1 %atomic_ordered, label %forget_atomics, label %no

forget_atomics:
  br i1 %is_store, label %clear_atomics, label %update

clear_atomics:
  call void @race_fill(ptr %atomic.at, i64 %run, i64 0)
  br label %update

update:
  br i1 %is_store, label %write, label %add

write:
  call void @race_fill(ptr %store.at, i64 %run, i64 %stored.now)
  br label %fine

add:
  %empty = icmp eq i64 %set.before, 0
  %set.owner = lshr i64 %set.before, 32
  %set.mine = icmp eq i64 %set.owner, %owner
  %alone = or i1 %empty, %set.mine
  br i1 %alone, label %put, label %widely

widely:
  %wide = icmp eq i64 %set.before, -2147483649
  br i1 %wide, label %fine, label %join

join:
  %set.ordered = call i1 @race_ordered(ptr %ctx, i64 %set.before, i32 %slm, i32 %kind)
  %joined = call i64 @race_joined(ptr %ctx, i64 %set.before, i64 %own, i32 %slm, i1 %set.ordered, i32 %phase)
  br label %put

put:
  %set.now = phi i64 [ %own, %add ], [ %joined, %join ]
  %same = icmp eq i64 %set.now, %set.before
  br i1 %same, label %fine, label %change

change:
  call void @race_fill(ptr %set.at, i64 %run, i64 %set.now)
  br label %fine

fine:
  %done = phi i64 [ %set.run, %known ], [ %run, %write ], [ %run, %widely ], [ %run, %put ], [ %run, %change ]
  %i.next = add i64 %i, %done
  br label %next

yes:
  ret i1 true

no:
  ret i1 false
}

; What an access of global memory is compared with: 0 nothing, 1 stores and atomics, 2 loads too. The bytes that the
; context keeps of each allocation tell: whether it was loaded from, whether it was changed, whether loads are recorded.
; Before an allocation is changed for the first time, Python copies it. -1 if it could not.
define hidden i32 @race_enter(ptr %ctx, i64 %address, i32 %kind) nounwind {
entry:
  %table = load ptr, at i8, ptr %ctx, i64 $table
  %buffers = load i64, at i8, ptr %ctx, i64 $buffers
  %latest.at = getelementptr i8, ptr %ctx, i64 $accessed
  %latest = load i64, ptr %latest.at
  %exists = icmp ult i64 %latest, %buffers
  br i1 %exists, label %look, label %search

look:
  %before = mul i64 %latest, 24
  %start.at = getelementptr i8, ptr %table, i64 %before
  %start = load i64, ptr %start.at
  %length = load i64, at i8, ptr %start.at, i64 8
  %distance = sub i64 %address, %start
  %within = icmp ult i64 %distance, %length
  br i1 %within, label %found, label %search

search:
  %there = call i1 @find(ptr %ctx, i64 %address, i64 1, ptr %latest.at)
  br i1 %there, label %found, label %bad

found:
  %index = load i64, ptr %latest.at
  %seen = load ptr, at i8, ptr %ctx, i64 $seen
  %bytes.before = shl i64 %index, 2
  %loaded.at = getelementptr i8, ptr %seen, i64 %bytes.before
  %changed.at = getelementptr i8, ptr %loaded.at, i64 1
  %records = load i8, at i8, ptr %loaded.at, i64 2
  %all = icmp ne i8 %records, 0
  %is_load = icmp eq i32 %kind, 0
  br i1 %is_load, label %load, label %change

load:
  %loaded = load atomic i8, ptr %loaded.at monotonic, align 1
  %again = icmp ne i8 %loaded, 0
  br i1 %again, label %out, label %first_load

first_load:
  store atomic i8 1, ptr %loaded.at monotonic, align 1
  br label %out

change:
  %changed = load atomic i8, ptr %changed.at acquire, align 1
  %copied = icmp ne i8 %changed, 0
  br i1 %copied, label %out, label %first_change

first_change:
  %copy = load ptr, at i8, ptr %ctx, i64 $copy_
  %made = call i32 %copy(i64 %index)
  %failed = icmp eq i32 %made, 0
  br i1 %failed, label %bad, label %out

bad:
  ret i32 -1

out:
  %least = phi i32 [ 0, %load ], [ 0, %first_load ], [ 1, %change ], [ 1, %first_change ]
  %what = select i1 %all, i32 2, i32 %least
  ret i32 %what
}

; Record an access by the running thread. Returns whether there is no race. If there is one, the context says so.
;
; Args:
;   offset: of its first byte, in the shared local memory, or in global memory from `shadow_base` on.
;   size: the number of bytes.
;   values, host: what is stored, and where, which is done too: others have to see it at their next look.
;   slm: 1 in shared local memory, 0 in global memory.
;   kind: 0 a load, 1 a store, 2 an atomic.
define hidden i1 @race_note(ptr %ctx, i64 %address, i64 %size, ptr %values, ptr %host, i32 %slm, i32 %kind) noinline nounwind {
entry:
  %local = icmp ne i32 %slm, 0
  br i1 %local, label %note, label %enter

enter:
  %what.global = call i32 @race_enter(ptr %ctx, i64 %address, i32 %kind)
  %nothing = icmp eq i32 %what.global, 0
  br i1 %nothing, label %unneeded, label %note

unneeded:
  ret i1 true

note:
  %what = phi i32 [ 2, %entry ], [ %what.global, %enter ]
  %fine = call i1 @race_record(ptr %ctx, i64 %address, i64 %size, ptr %values, ptr %host, i32 %slm, i32 %kind, i32 %what)
  ret i1 %fine
}

; The same for what `race_enter` says of the access.
define hidden i1 @race_record(ptr %ctx, i64 %address, i64 %size, ptr %values, ptr %host, i32 %slm, i32 %kind, i32 %what) noinline nounwind {
entry:
  %known = icmp sge i32 %what, 0
  br i1 %known, label %begin, label %bad

begin:
  %loads = icmp eq i32 %what, 2
  %local = icmp ne i32 %slm, 0
  %shadow.global = getelementptr i8, ptr %ctx, i64 $shadow
  %shadow.local = getelementptr i8, ptr %ctx, i64 $local_shadow
  %shadow.at = select i1 %local, ptr %shadow.local, ptr %shadow.global
  %shadow = load ptr, ptr %shadow.at
  %stride.global = getelementptr i8, ptr %ctx, i64 $shadow_stride
  %stride.local = getelementptr i8, ptr %ctx, i64 $local_stride
  %stride.at = select i1 %local, ptr %stride.local, ptr %stride.global
  %stride = load i64, ptr %stride.at
  %granule.global = getelementptr i8, ptr %ctx, i64 $granule
  %granule.local = getelementptr i8, ptr %ctx, i64 $local_granule
  %granule.at = select i1 %local, ptr %granule.local, ptr %granule.global
  %granule = load i64, ptr %granule.at
  %bytes = shl i64 1, %granule
  %base.at = getelementptr i8, ptr %ctx, i64 $shadow_base
  %base.global = load i64, ptr %base.at
  %base = select i1 %local, i64 0, i64 %base.global
  %offset = sub i64 %address, %base
  ; The granules that the access contains completely.
  %less = sub i64 %bytes, 1
  %raised = add i64 %offset, %less
  %first = lshr i64 %raised, %granule
  %end = add i64 %offset, %size
  %last = lshr i64 %end, %granule
  %is_load = icmp eq i32 %kind, 0
  br i1 %is_load, label %start, label %mark

mark:
  ; The access is not fenced yet.
  %is_store = icmp eq i32 %kind, 1
  %unit = select i1 %is_store, i32 8, i32 1
  %memory = add i32 %slm, 1
  %bit = shl i32 %unit, %memory
  %pending.at = call ptr @race_pending(ptr %ctx)
  %pending = load i32, ptr %pending.at
  %marked = or i32 %pending, %bit
  store i32 %marked, ptr %pending.at
  br label %start

start:
  %locks = load ptr, at i8, ptr %ctx, i64 $locks
  %unlocked = icmp eq ptr %locks, null
  %free = or i1 %unlocked, %local
  %part.bits = sub i64 12, %granule
  %part.places = shl i64 1, %part.bits
  br label %part

part:
  %at = phi i64 [ %first, %start ], [ %stop, %ran ]
  %left = icmp slt i64 %at, %last
  br i1 %left, label %cut, label %fine

cut:
  %number = lshr i64 %at, %part.bits
  %number.next = add i64 %number, 1
  %border = shl i64 %number.next, %part.bits
  %stop = call i64 @llvm.smin.i64(i64 %border, i64 %last)
  %lock.number = and i64 %number, 4095
  %lock.offset = shl i64 %lock.number, 6
  %lock = getelementptr i8, ptr %locks, i64 %lock.offset
  br i1 %free, label %run, label %take

take:
  call void @race_lock(ptr %ctx, ptr %lock)
  br label %run

run:
  %table = getelementptr i64, ptr %shadow, i64 %at
  %count = sub i64 %stop, %at
  %start.byte = shl i64 %at, %granule
  %inner = sub i64 %start.byte, %offset
  %own.values = getelementptr i8, ptr %values, i64 %inner
  %own.host = getelementptr i8, ptr %host, i64 %inner
  %good = call i1 @race_compare(ptr %ctx, ptr %table, i64 %stride, i64 %count, ptr %own.values, ptr %own.host, i64 %bytes, i32 %slm, i32 %kind, i1 %loads)
  %stores = icmp eq i32 %kind, 1
  br i1 %stores, label %store, label %release

store:
  %moved = shl i64 %count, %granule
  call void @llvm.memcpy.p0.p0.i64(ptr %own.host, ptr %own.values, i64 %moved, i1 false)
  br label %release

release:
  br i1 %free, label %ran, label %give

give:
  store atomic i32 0, ptr %lock release, align 4
  br label %ran

ran:
  br i1 %good, label %part, label %bad

bad:
  %race.at = getelementptr i8, ptr %ctx, i64 $race
  store i64 1, ptr %race.at
  ret i1 false

fine:
  ret i1 true
}

; Record the accesses of a message's lanes. Returns whether there is no race.
;
; Args:
;   addresses, hosts: i64 for each lane, the addresses of the program and of the host.
;   bits: the lanes that act.
;   size: the bytes that each lane accesses.
;   values: of a store, the values of the lanes, one behind the other.
define hidden i1 @race_note_lanes(ptr %ctx, ptr %addresses, ptr %hosts, i64 %lanes, i32 %bits, i64 %size, ptr %values, i32 %slm, i32 %kind) noinline nounwind {
entry:
  %address.first = load i64, ptr %addresses
  br label %beside

beside:
  ; Lanes side by side that all act are one access.
  %n = phi i64 [ 0, %entry ], [ %n.next, %look ]
  %unseen = icmp slt i64 %n, %lanes
  br i1 %unseen, label %look, label %together

look:
  %n.next = add i64 %n, 1
  %n.address = load i64, at i64, ptr %addresses, i64 %n
  %distance = sub i64 %n.address, %address.first
  %expected = mul i64 %n, %size
  %near = icmp eq i64 %distance, %expected
  %n32 = trunc i64 %n to i32
  %n.shifted = lshr i32 %bits, %n32
  %n.acts = trunc i32 %n.shifted to i1
  %fits = and i1 %near, %n.acts
  br i1 %fits, label %beside, label %each

together:
  %host.first = load i64, ptr %hosts
  %host = inttoptr i64 %host.first to ptr
  %whole = mul i64 %lanes, %size
  %whole.fine = call i1 @race_note(ptr %ctx, i64 %address.first, i64 %whole, ptr %values, ptr %host, i32 %slm, i32 %kind)
  ret i1 %whole.fine

each:
  %lane = phi i64 [ 0, %look ], [ %lane.next, %next ]
  %more = icmp slt i64 %lane, %lanes
  br i1 %more, label %test, label %yes

test:
  %lane32 = trunc i64 %lane to i32
  %shifted = lshr i32 %bits, %lane32
  %acts = trunc i32 %shifted to i1
  br i1 %acts, label %note, label %next

note:
  %address = load i64, at i64, ptr %addresses, i64 %lane
  %own = load ptr, at ptr, ptr %hosts, i64 %lane
  %before = mul i64 %lane, %size
  %value = getelementptr i8, ptr %values, i64 %before
  %fine = call i1 @race_note(ptr %ctx, i64 %address, i64 %size, ptr %value, ptr %own, i32 %slm, i32 %kind)
  br i1 %fine, label %next, label %no

next:
  %lane.next = add i64 %lane, 1
  br label %each

yes:
  ret i1 true

no:
  ret i1 false
}

; The same for lanes whose accesses lie side by side, from an address on.
define hidden i1 @race_note_beside(ptr %ctx, i64 %address, ptr %host, i32 %bits, i64 %size, ptr %values, i32 %slm, i32 %kind) noinline nounwind {
entry:
  br label %next

next:
  %left = phi i32 [ %bits, %entry ], [ %left.next, %note ]
  %none = icmp eq i32 %left, 0
  br i1 %none, label %yes, label %note

note:
  ; The lanes from the first one that acts to the next one that does not.
  %start = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %shifted = lshr i32 %left, %start
  %others = xor i32 %shifted, -1
  %count = call i32 @llvm.cttz.i32(i32 %others, i1 false)
  %start64 = zext i32 %start to i64
  %count64 = zext i32 %count to i64
  %ones = shl i64 1, %count64
  %own = sub i64 %ones, 1
  %own.placed = shl i64 %own, %start64
  %own32 = trunc i64 %own.placed to i32
  %left.next = xor i32 %left, %own32
  %before = mul i64 %start64, %size
  %bytes = mul i64 %count64, %size
  %own.address = add i64 %address, %before
  %own.host = getelementptr i8, ptr %host, i64 %before
  %own.values = getelementptr i8, ptr %values, i64 %before
  %fine = call i1 @race_note(ptr %ctx, i64 %own.address, i64 %bytes, ptr %own.values, ptr %own.host, i32 %slm, i32 %kind)
  br i1 %fine, label %next, label %no

yes:
  ret i1 true

no:
  ret i1 false
}

; Record the accesses of a block's rows in global memory, from its first byte in the surface on. Returns whether there is
; no race.
;
; Args:
;   address, host: the addresses of the first byte.
;   pitch: bytes from one row to the next.
;   size: bytes of each row.
;   values: of a store, the values of the rows, which are `apart` bytes apart.
define hidden i1 @race_note_rows(ptr %ctx, i64 %address, ptr %host, i64 %pitch, i64 %rows, i64 %size, ptr %values, i64 %apart, i32 %kind) noinline nounwind {
entry:
  %high = icmp sgt i64 %rows, 0
  %wide = icmp sgt i64 %size, 0
  %some = and i1 %high, %wide
  br i1 %some, label %enter, label %yes

enter:
  %what = call i32 @race_enter(ptr %ctx, i64 %address, i32 %kind)
  %nothing = icmp eq i32 %what, 0
  br i1 %nothing, label %yes, label %located

located:
  ; The rows' entries lie far apart: all are on their way before the first is compared.
  %shadow = load ptr, at i8, ptr %ctx, i64 $shadow
  %base = load i64, at i8, ptr %ctx, i64 $shadow_base
  %granule = load i64, at i8, ptr %ctx, i64 $granule
  %distance = sub i64 %address, %base
  br label %ahead

ahead:
  %n = phi i64 [ 0, %located ], [ %n.next, %fetch ]
  %n.more = icmp slt i64 %n, %rows
  br i1 %n.more, label %fetch, label %next

fetch:
  %n.next = add i64 %n, 1
  %n.above = mul i64 %n, %pitch
  %n.first = add i64 %distance, %n.above
  %n.granule = lshr i64 %n.first, %granule
  %n.at = getelementptr i64, ptr %shadow, i64 %n.granule
  %n.behind = getelementptr i8, ptr %n.at, i64 64
  call void @llvm.prefetch.p0(ptr %n.at, i32 1, i32 3, i32 1)
  call void @llvm.prefetch.p0(ptr %n.behind, i32 1, i32 3, i32 1)
  br label %ahead

next:
  %row = phi i64 [ 0, %ahead ], [ %row.next, %note ]
  %more = icmp slt i64 %row, %rows
  br i1 %more, label %note, label %yes

note:
  %row.next = add i64 %row, 1
  %above = mul i64 %row, %pitch
  %own = add i64 %address, %above
  %own.host = getelementptr i8, ptr %host, i64 %above
  %before = mul i64 %row, %apart
  %own.values = getelementptr i8, ptr %values, i64 %before
  %fine = call i1 @race_record(ptr %ctx, i64 %own, i64 %size, ptr %own.values, ptr %own.host, i32 0, i32 %kind, i32 %what)
  br i1 %fine, label %next, label %no

yes:
  ret i1 true

no:
  ret i1 false
}

; Copy the values of a store to `to`, one lane behind the other. Those of an operand are `lane.apart` and `element.apart`
; bytes apart, and have `size` bytes in memory.
define hidden void @race_gather(ptr %to, ptr %from, i64 %lanes, i64 %lane.apart, i64 %elements, i64 %element.apart, i64 %size) noinline nounwind {
entry:
  br label %next

next:
  %n = phi i64 [ 0, %entry ], [ %n.next, %done ]
  %to.lane = phi ptr [ %to, %entry ], [ %to.element, %done ]
  %more = icmp slt i64 %n, %lanes
  br i1 %more, label %lane, label %out

lane:
  %before = mul i64 %n, %lane.apart
  %from.lane = getelementptr i8, ptr %from, i64 %before
  br label %element

element:
  %e = phi i64 [ 0, %lane ], [ %e.next, %copy ]
  %to.element = phi ptr [ %to.lane, %lane ], [ %to.next, %copy ]
  %left = icmp slt i64 %e, %elements
  br i1 %left, label %copy, label %done

copy:
  %e.before = mul i64 %e, %element.apart
  %from.element = getelementptr i8, ptr %from.lane, i64 %e.before
  call void @llvm.memcpy.p0.p0.i64(ptr %to.element, ptr %from.element, i64 %size, i1 false)
  %to.next = getelementptr i8, ptr %to.element, i64 %size
  %e.next = add i64 %e, 1
  br label %element

done:
  %n.next = add i64 %n, 1
  br label %next

out:
  ret void
}
