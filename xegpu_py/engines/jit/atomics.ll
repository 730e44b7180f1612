; Atomic operations for which hosts have no instruction: the new value is computed, and written if memory still has the
; old one.

; Changes a float of $bits bits. `a` and `b` are the operands of the message. Returns the old value.
define hidden i$bits @atomic_${operation}_$bits(ptr %place, i$bits %a, i$bits %b) $attributes {
entry:
  %first = load i$bits, ptr %place, align $bytes
  br label %again

again:
  %old = phi i$bits [ %first, %entry ], [ %found, %again ]
  ; The new value, which depends on the operation.
$change
  %pair = cmpxchg ptr %place, i$bits %old, i$bits $new seq_cst seq_cst, align $bytes
  %found = extractvalue { i$bits, i1 } %pair, 0
  %same = extractvalue { i$bits, i1 } %pair, 1
  br i1 %same, label %done, label %again

done:
  ret i$bits %old
}
