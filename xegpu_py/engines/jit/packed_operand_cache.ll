; The panels of a worker: see `panels.py`, which has the layout of their memory.
;
; The key of a panel has four words: the surface's base; its width and height; its pitch and the number of the function
; that loads the panel; the block's place, x and y. The width, height and pitch of legal surfaces are far below 2**32.

; Gives the address of a block's panel. If there is none, it is made; 0 if the message is refused.
;
; Args:
;   width, height, pitch: from one on.
;   step: by how much x, in the upper half, and y grow until the lines that are listed are needed.
define hidden i64 @$find(ptr %ctx, i64 %base, i64 %width, i64 %height, i64 %pitch, i32 %x, i32 %y, i64 %step) $attributes {
entry:
  %panels = load ptr, at i8, ptr %ctx, i64 $panels
  %width.high = shl i64 %width, 32
  %extent = or i64 %width.high, %height
  %pitch.high = shl i64 %pitch, 32
  %form = or i64 %pitch.high, $tag
  %x64 = zext i32 %x to i64
  %x.high = shl i64 %x64, 32
  %y64 = zext i32 %y to i64
  %place = or i64 %x.high, %y64
  ; The hash of the key.
  %mixed.some = xor i64 %place, %form
  %mixed.first = mul i64 %mixed.some, $first_factor
  %mixed.base = add i64 %mixed.first, %base
  %mixed.low = lshr i64 %mixed.first, 32
  %mixed.all = xor i64 %mixed.base, %mixed.low
  %mixed = mul i64 %mixed.all, $second_factor
  %upper = lshr i64 %mixed, $hash_shift
  %last = load i64, at i8, ptr %panels, i64 $last_entry
  %index = and i64 %upper, %last
  %offset = mul i64 %index, $entry_bytes
  %entries = getelementptr i8, ptr %panels, i64 $entries
  %first = getelementptr i8, ptr %entries, i64 %offset
  %made = load i64, at i8, ptr %panels, i64 $made
  %floor = load i64, at i8, ptr %panels, i64 $floor
  %span = load i64, at i8, ptr %panels, i64 $span
  br label %look

look:
  ; The first entry of the key, then the second.
  %entry.here = phi ptr [ %first, %entry ], [ %second, %other ]
  %is_second = phi i1 [ false, %entry ], [ true, %other ]
  %base.at = getelementptr i64, ptr %entry.here, i64 0
  %extent.at = getelementptr i64, ptr %entry.here, i64 1
  %form.at = getelementptr i64, ptr %entry.here, i64 2
  %place.at = getelementptr i64, ptr %entry.here, i64 3
  %base.there = load i64, ptr %base.at
  %extent.there = load i64, ptr %extent.at
  %form.there = load i64, ptr %form.at
  %place.there = load i64, ptr %place.at
  %base.differs = xor i64 %base, %base.there
  %extent.differs = xor i64 %extent, %extent.there
  %form.differs = xor i64 %form, %form.there
  %place.differs = xor i64 %place, %place.there
  %surface.differs = or i64 %base.differs, %extent.differs
  %block.differs = or i64 %form.differs, %place.differs
  %differs = or i64 %surface.differs, %block.differs
  %same = icmp eq i64 %differs, 0
  ; The panel is neither invalid nor overwritten.
  %before = load i64, at i8, ptr %entry.here, i64 $entry_before
  %valid = icmp sge i64 %before, %floor
  %age = sub i64 %made, %before
  %kept = icmp sle i64 %age, %span
  %recent = and i1 %valid, %kept
  %known = and i1 %same, %recent
  br i1 %known, label %found, label %missing

found:
  %moved.at = getelementptr i8, ptr %entry.here, i64 $entry_moved
  %moved32 = load i32, ptr %moved.at
  %moved = zext i32 %moved32 to i64
  %traffic = load ptr, at i8, ptr %ctx, i64 $traffic
  %loaded.at = getelementptr i8, ptr %traffic, i64 $loaded
  %loaded = load i64, ptr %loaded.at
  %loaded.next = add i64 %loaded, %moved
  store i64 %loaded.next, ptr %loaded.at
  %panel = load i64, at i8, ptr %entry.here, i64 $entry_panel
  ret i64 %panel

missing:
  br i1 %is_second, label %make, label %other

other:
  %first.address = ptrtoint ptr %first to i64
  %second.address = xor i64 %first.address, $entry_bytes
  %second = inttoptr i64 %second.address to ptr
  br label %look

make:
  ; The new panel gets the first entry. The panel that has it moves to the second one, unless that has a newer one.
  %first.before = load i64, at i8, ptr %first, i64 $entry_before
  %newer = icmp sge i64 %first.before, %before
  br i1 %newer, label %move, label %new

move:
  %words = load <8 x i64>, ptr %first, align $entry_bytes
  store <8 x i64> %words, ptr %entry.here, align $entry_bytes
  br label %new

new:
  %result = call i64 @$make(ptr %ctx, i64 %base, i64 %width, i64 %height, i64 %pitch, i32 %x, i32 %y, i64 %step, ptr %first, i64 %extent, i64 %form, i64 %place)
  ret i64 %result
}

; Takes memory for a new panel from the ring, and writes its entry. Returns the panel's address. `stride` is its size,
; `moved` the bytes that its message moves, and `source` what `allocation_bit` gives for its surface.
define hidden i64 @new_panel(ptr %ctx, ptr %to, i64 %base, i64 %extent, i64 %form, i64 %place, i64 %stride, i64 %moved, i64 %source) noinline nounwind {
entry:
  %panels = load ptr, at i8, ptr %ctx, i64 $panels
  %sources.at = getelementptr i8, ptr %panels, i64 $sources
  %sources = load i64, ptr %sources.at
  %sources.all = or i64 %sources, %source
  store i64 %sources.all, ptr %sources.at
  %made.at = getelementptr i8, ptr %panels, i64 $made
  %made = load i64, ptr %made.at
  %next.at = getelementptr i8, ptr %panels, i64 $next_panel
  %next = load i64, ptr %next.at
  %ring = load i64, at i8, ptr %panels, i64 $ring
  %end = load i64, at i8, ptr %panels, i64 $ring_end
  ; The unused bytes at the ring's end count as made.
  %behind = add i64 %next, %stride
  %fits = icmp ule i64 %behind, %end
  %panel = select i1 %fits, i64 %next, i64 %ring
  %left = sub i64 %end, %next
  %skipped = add i64 %made, %left
  %before = select i1 %fits, i64 %made, i64 %skipped
  %made.now = add i64 %before, %stride
  store i64 %made.now, ptr %made.at
  %next.now = add i64 %panel, %stride
  store i64 %next.now, ptr %next.at
  %extent.at = getelementptr i64, ptr %to, i64 1
  %form.at = getelementptr i64, ptr %to, i64 2
  %place.at = getelementptr i64, ptr %to, i64 3
  store i64 %base, ptr %to
  store i64 %extent, ptr %extent.at
  store i64 %form, ptr %form.at
  store i64 %place, ptr %place.at
  %before.at = getelementptr i8, ptr %to, i64 $entry_before
  store i64 %before, ptr %before.at
  %panel.at = getelementptr i8, ptr %to, i64 $entry_panel
  store i64 %panel, ptr %panel.at
  %moved.at = getelementptr i8, ptr %to, i64 $entry_moved
  %moved32 = trunc i64 %moved to i32
  store i32 %moved32, ptr %moved.at
  ret i64 %panel
}

; Lists the lines of the block that a later step of the loop loads, if its first element is in the surface and the list
; has space. `block` is the first element of the current block, and `step` as above; x and y are those of that block.
define hidden void @list_lines_$shape(ptr %ctx, ptr %block, i64 %width, i64 %height, i64 %pitch, i32 %x, i32 %y, i64 %step) $attributes {
entry:
  %down32 = trunc i64 %step to i32
  %down = sext i32 %down32 to i64
  %high = sub i64 %step, %down
  %elements = ashr i64 %high, 32
  %across = mul i64 %elements, $element_bytes
  %x64 = sext i32 %x to i64
  %column.now = mul i64 %x64, $element_bytes
  %column = add i64 %column.now, %across
  %y64 = sext i32 %y to i64
  %row = add i64 %y64, %down
  %in_row = icmp ult i64 %column, %width
  %in_column = icmp ult i64 %row, %height
  %inside = and i1 %in_row, %in_column
  %moves = icmp ne i64 %step, 0
  %known = and i1 %inside, %moves
  %panels = load ptr, at i8, ptr %ctx, i64 $panels
  %cursor.at = getelementptr i8, ptr %panels, i64 $cursor
  %cursor = load i64, ptr %cursor.at
  %stop.at = getelementptr i8, ptr %panels, i64 $lines_end
  %stop = load i64, ptr %stop.at
  %panels.address = ptrtoint ptr %panels to i64
  %start = add i64 %panels.address, $lines
  ; A list that is empty begins anew.
  %empty = icmp eq i64 %cursor, %stop
  %place = select i1 %empty, i64 %start, i64 %stop
  %end = add i64 %place, $list_bytes
  %limit = add i64 %start, $lines_bytes
  %room = icmp ule i64 %end, %limit
  %lists = and i1 %known, %room
  br i1 %lists, label %list, label %out

list:
  %now = ptrtoint ptr %block to i64
  %above = mul i64 %down, %pitch
  %moved = add i64 %above, %across
  %first = add i64 %now, %moved
  %first.one = insertelement <$count x i64> poison, i64 %first, i32 0
  %firsts = shufflevector <$count x i64> %first.one, <$count x i64> poison, <$count x i32> zeroinitializer
  %pitch.one = insertelement <$count x i64> poison, i64 %pitch, i32 0
  %pitches = shufflevector <$count x i64> %pitch.one, <$count x i64> poison, <$count x i32> zeroinitializer
  %rows = mul <$count x i64> %pitches, <$row_numbers>
  %columns = add <$count x i64> %firsts, <$line_offsets>
  %all = add <$count x i64> %columns, %rows
  %to = inttoptr i64 %place to ptr
  store <$count x i64> %all, ptr %to, align 8
  ; Behind the list are addresses in the first-level cache: prefetches of these cost nothing.
  %end.to = inttoptr i64 %end to ptr
  %own.one = insertelement <$at_once x i64> poison, i64 %panels.address, i32 0
  %own = shufflevector <$at_once x i64> %own.one, <$at_once x i64> poison, <$at_once x i32> zeroinitializer
  store <$at_once x i64> %own, ptr %end.to, align 8
  %cursor.now = select i1 %empty, i64 %start, i64 %cursor
  store i64 %cursor.now, ptr %cursor.at
  store i64 %end, ptr %stop.at
  br label %out

out:
  ret void
}

; Invalidates all panels if one of them was loaded from some allocations: bits as `allocation_bit` gives them, or -1.
define hidden void @forget_panels(ptr %ctx, i64 %wanted) noinline nounwind {
entry:
  %panels = load ptr, at i8, ptr %ctx, i64 $panels
  %sources = load i64, at i8, ptr %panels, i64 $sources
  %both = and i64 %sources, %wanted
  %some = icmp ne i64 %both, 0
  br i1 %some, label %forget, label %out

forget:
  %made = load i64, at i8, ptr %panels, i64 $made
  %floor.at = getelementptr i8, ptr %panels, i64 $floor
  %floor = load i64, ptr %floor.at
  %floor.now = call i64 @llvm.smax.i64(i64 %floor, i64 %made)
  store i64 %floor.now, ptr %floor.at
  br label %out

out:
  ret void
}

; The bit of the allocation in which an address is: that of its number modulo 64; 0 if it is in none.
define hidden i64 @allocation_bit(ptr %ctx, i64 %address) noinline nounwind {
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
  %within = icmp ult i64 %distance, %length
  %index.next = add i64 %index, 1
  br i1 %within, label %found, label %next

found:
  %number = and i64 %index, 63
  %bit = shl i64 1, %number
  ret i64 %bit

missing:
  ret i64 0
}
