; From addresses of the program's memory to addresses of the host. The table of allocations in the context has three i64
; for each: its first address, its size in bytes, and the distance from an address in it to the host's address.

; Converts an address. Writes the host's address to `to`, and returns whether `size` bytes lie within one allocation.
; `acting` is for the functions of several lanes.
define hidden i1 @locate_1(ptr %ctx, i64 %address, i64 %size, i32 %acting, ptr %to) $attributes {
entry:
  %table = load ptr, at i8, ptr %ctx, i64 $table
  %buffers = load i64, at i8, ptr %ctx, i64 $buffers
  %idle = icmp eq i32 %acting, 0
  br label %next

next:
  %index = phi i64 [ 0, %entry ], [ %index.next, %look ]
  %more = icmp slt i64 %index, %buffers
  br i1 %more, label %look, label %missing

look:
  %offset = mul i64 %index, 24
  %start.at = getelementptr i8, ptr %table, i64 %offset
  %start = load i64, ptr %start.at
  %length = load i64, at i8, ptr %start.at, i64 8
  %distance = sub i64 %address, %start
  ; Signed: an allocation may be smaller than the access.
  %last = sub i64 %length, %size
  %early = icmp sle i64 %distance, %last
  %late = icmp sge i64 %distance, 0
  %within = and i1 %early, %late
  %index.next = add i64 %index, 1
  br i1 %within, label %found, label %next

found:
  %delta = load i64, at i8, ptr %start.at, i64 16
  %host = add i64 %address, %delta
  store i64 %host, ptr %to
  ret i1 true

missing:
  ret i1 %idle
}

; Finds the allocation in which `size` bytes at an address lie. Writes its number to `to`, and returns whether there is one.
define hidden i1 @find(ptr %ctx, i64 %address, i64 %size, ptr %to) $attributes {
entry:
  %table = load ptr, at i8, ptr %ctx, i64 $table
  %buffers = load i64, at i8, ptr %ctx, i64 $buffers
  br label %next

next:
  %index = phi i64 [ 0, %entry ], [ %index.next, %look ]
  %more = icmp slt i64 %index, %buffers
  br i1 %more, label %look, label %missing

look:
  %offset = mul i64 %index, 24
  %start.at = getelementptr i8, ptr %table, i64 %offset
  %start = load i64, ptr %start.at
  %length = load i64, at i8, ptr %start.at, i64 8
  %distance = sub i64 %address, %start
  ; Signed: an allocation may be smaller than the access.
  %last = sub i64 %length, %size
  %early = icmp sle i64 %distance, %last
  %late = icmp sge i64 %distance, 0
  %within = and i1 %early, %late
  %index.next = add i64 %index, 1
  br i1 %within, label %found, label %next

found:
  store i64 %index, ptr %to
  ret i1 true

missing:
  ret i1 false
}

; Converts the addresses of lanes. Writes the host's addresses to `to`, and returns whether each access of `size` bytes
; by a lane that acts lies within one allocation. `acting` has a bit for each lane.
define hidden i1 @locate_$lanes(ptr %ctx, <$lanes x i64> %addresses, i64 %size, i32 %acting, ptr %to) $attributes {
entry:
  %table = load ptr, at i8, ptr %ctx, i64 $table
  %buffers = load i64, at i8, ptr %ctx, i64 $buffers
  %all = zext i32 %acting to i64
  br label %next

next:
  ; The lanes whose accesses were not found yet.
  %left = phi i64 [ %all, %entry ], [ %left.next, %look ]
  %hosts = phi <$lanes x i64> [ %addresses, %entry ], [ %hosts.next, %look ]
  %index = phi i64 [ 0, %entry ], [ %index.next, %look ]
  %more = icmp slt i64 %index, %buffers
  br i1 %more, label %look, label %done

look:
  %offset = mul i64 %index, 24
  %start.at = getelementptr i8, ptr %table, i64 %offset
  %start = load i64, ptr %start.at
  %length = load i64, at i8, ptr %start.at, i64 8
  %delta = load i64, at i8, ptr %start.at, i64 16
  %start.one = insertelement <$lanes x i64> poison, i64 %start, i32 0
  %starts = shufflevector <$lanes x i64> %start.one, <$lanes x i64> poison, <$lanes x i32> zeroinitializer
  %distances = sub <$lanes x i64> %addresses, %starts
  ; Signed: an allocation may be smaller than the access.
  %last = sub i64 %length, %size
  %last.one = insertelement <$lanes x i64> poison, i64 %last, i32 0
  %lasts = shufflevector <$lanes x i64> %last.one, <$lanes x i64> poison, <$lanes x i32> zeroinitializer
  %early = icmp sle <$lanes x i64> %distances, %lasts
  %late = icmp sge <$lanes x i64> %distances, zeroinitializer
  %within = and <$lanes x i1> %early, %late
  %delta.one = insertelement <$lanes x i64> poison, i64 %delta, i32 0
  %deltas = shufflevector <$lanes x i64> %delta.one, <$lanes x i64> poison, <$lanes x i32> zeroinitializer
  %moved = add <$lanes x i64> %addresses, %deltas
  %hosts.next = select <$lanes x i1> %within, <$lanes x i64> %moved, <$lanes x i64> %hosts
  %found.lanes = bitcast <$lanes x i1> %within to i$lanes
  %found = zext i$lanes %found.lanes to i64
  %others = xor i64 %found, -1
  %left.next = and i64 %left, %others
  %index.next = add i64 %index, 1
  %some = icmp ne i64 %left.next, 0
  br i1 %some, label %next, label %done

done:
  %hosts.last = phi <$lanes x i64> [ %hosts, %next ], [ %hosts.next, %look ]
  %left.last = phi i64 [ %left, %next ], [ %left.next, %look ]
  store <$lanes x i64> %hosts.last, ptr %to, align 8
  %fine = icmp eq i64 %left.last, 0
  ret i1 %fine
}

; Whether the operands of a 2D block message, and the column of its block, keep the rules of the target.
define hidden i1 @legal_surface_$bytes(i64 %base, i64 %width, i64 %height, i64 %pitch, i32 %x) $attributes {
entry:
  %base.odd = and i64 %base, $base_mask
  %width.odd = and i64 %width, $width_mask
  %pitch.odd = and i64 %pitch, $pitch_mask
  %x.odd.narrow = and i32 %x, $x_mask
  %x.odd = zext i32 %x.odd.narrow to i64
  %odd.some = or i64 %base.odd, %width.odd
  %odd.more = or i64 %pitch.odd, %x.odd
  %odd = or i64 %odd.some, %odd.more
  %even = icmp eq i64 %odd, 0
  ; The pitch is no less than the width.
  %wide = icmp uge i64 %width, $least_bytes
  %apart = icmp uge i64 %pitch, %width
  %near = icmp ule i64 %pitch, $most_pitch
  %low = icmp ule i64 %height, $most_extent
  %fine.some = and i1 %even, %wide
  %fine.more = and i1 %apart, %near
  %fine.most = and i1 %fine.some, %fine.more
  %fine = and i1 %fine.most, %low
  ret i1 %fine
}

; Whether a surface of 2D blocks is legal, and lies within one allocation: the host's address of its base, or 0.
; The padding of the last row need not be allocated: only bytes up to the row's width count.
define hidden i64 @surface_$bytes(ptr %ctx, i64 %base, i64 %width, i64 %height, i64 %pitch, i32 %x) $attributes {
entry:
  %host.at = alloca i64
  %fine = call i1 @$legal(i64 %base, i64 %width, i64 %height, i64 %pitch, i32 %x)
  br i1 %fine, label %legal, label %refused

legal:
  %rows = sub i64 %height, 1
  %before = mul i64 %rows, %pitch
  %extent = add i64 %before, %width
  %fits = call i1 @$locate(ptr %ctx, i64 %base, i64 %extent, i32 1, ptr %host.at)
  br i1 %fits, label %located, label %refused

located:
  %host = load i64, ptr %host.at
  ret i64 %host

refused:
  ret i64 0
}

; Whether a surface is legal, and what a block of `across` columns and `down` rows accesses of it lies within one
; allocation, into which the surface may reach from before, or out of which after: the host's address of its base, or 0.
; A block outside of the surface accesses nothing, for which any other number stands.
define hidden i64 @accessed_surface_$bytes(ptr %ctx, i64 %base, i64 %width, i64 %height, i64 %pitch, i32 %x, i32 %y, i64 %across, i64 %down) $attributes {
entry:
  %host.at = alloca i64
  %fine = call i1 @$legal(i64 %base, i64 %width, i64 %height, i64 %pitch, i32 %x)
  br i1 %fine, label %legal, label %refused

legal:
  %x64 = sext i32 %x to i64
  %y64 = sext i32 %y to i64
  %columns = udiv i64 %width, $bytes
  %left = call i64 @llvm.smax.i64(i64 %x64, i64 0)
  %top = call i64 @llvm.smax.i64(i64 %y64, i64 0)
  %x.end = add i64 %x64, %across
  %y.end = add i64 %y64, %down
  %right = call i64 @llvm.smin.i64(i64 %x.end, i64 %columns)
  %bottom = call i64 @llvm.smin.i64(i64 %y.end, i64 %height)
  %wide = sub i64 %right, %left
  %high = sub i64 %bottom, %top
  %some.columns = icmp sgt i64 %wide, 0
  %some.rows = icmp sgt i64 %high, 0
  %some = and i1 %some.columns, %some.rows
  br i1 %some, label %part, label %nothing

part:
  %rows.start = mul i64 %top, %pitch
  %left.bytes = mul i64 %left, $bytes
  %start = add i64 %rows.start, %left.bytes
  %first = add i64 %base, %start
  %rows = sub i64 %high, 1
  %before = mul i64 %rows, %pitch
  %last.bytes = mul i64 %wide, $bytes
  %extent = add i64 %before, %last.bytes
  %fits = call i1 @$locate(ptr %ctx, i64 %first, i64 %extent, i32 1, ptr %host.at)
  br i1 %fits, label %located, label %refused

located:
  %first.host = load i64, ptr %host.at
  %host = sub i64 %first.host, %start
  ret i64 %host

nothing:
  ret i64 1

refused:
  ret i64 0
}
