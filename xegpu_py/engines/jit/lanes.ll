; Program counters of the lanes of a thread whose lanes diverge: i32[32] at `counters`. The bits of $divergent are the
; lanes that can diverge; the others run whenever the thread runs.

; The lowest counter of the lanes that can diverge; $ENDED_PC if all have ended.
define hidden i32 @least(ptr %counters) $attributes {
entry:
  %all = load <32 x i32>, ptr %counters, align 4
  %own = bitcast i32 $divergent to <32 x i1>
  %live = select <32 x i1> %own, <32 x i32> %all, <32 x i32> splat (i32 $ENDED_PC)
  %least = call i32 @llvm.vector.reduce.smin.v32i32(<32 x i32> %live)
  ret i32 %least
}

; Chooses the lanes that run next: those with the lowest counter. Returns this counter, the lowest counter of the other
; lanes, where the chosen ones stop, and the lanes that are enabled.
define hidden { i32, i32, i32 } @schedule(ptr %counters) $attributes {
entry:
  %all = load <32 x i32>, ptr %counters, align 4
  %own = bitcast i32 $divergent to <32 x i1>
  %live = select <32 x i1> %own, <32 x i32> %all, <32 x i32> splat (i32 $ENDED_PC)
  %least = call i32 @llvm.vector.reduce.smin.v32i32(<32 x i32> %live)
  %least.one = insertelement <32 x i32> poison, i32 %least, i32 0
  %leasts = shufflevector <32 x i32> %least.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %here = icmp eq <32 x i32> %live, %leasts
  %others = select <32 x i1> %here, <32 x i32> splat (i32 $ENDED_PC), <32 x i32> %live
  %stop = call i32 @llvm.vector.reduce.smin.v32i32(<32 x i32> %others)
  %chosen = bitcast <32 x i1> %here to i32
  %uniform = xor i32 $divergent, -1
  %enabled = or i32 %chosen, %uniform
  %first = insertvalue { i32, i32, i32 } poison, i32 %least, 0
  %second = insertvalue { i32, i32, i32 } %first, i32 %stop, 1
  %third = insertvalue { i32, i32, i32 } %second, i32 %enabled, 2
  ret { i32, i32, i32 } %third
}

; Sets the counters of some lanes, which are bits, to a number.
define hidden void @move(ptr %counters, i32 %lanes, i32 %to) $attributes {
entry:
  %all = load <32 x i32>, ptr %counters, align 4
  %chosen = bitcast i32 %lanes to <32 x i1>
  %to.one = insertelement <32 x i32> poison, i32 %to, i32 0
  %tos = shufflevector <32 x i32> %to.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %next = select <32 x i1> %chosen, <32 x i32> %tos, <32 x i32> %all
  store <32 x i32> %next, ptr %counters, align 4
  ret void
}

; Sets the counters of some lanes, which are bits, to numbers of their own: i32[32] at `from`.
define hidden void @restore(ptr %counters, i32 %lanes, ptr %from) $attributes {
entry:
  %all = load <32 x i32>, ptr %counters, align 4
  %kept = load <32 x i32>, ptr %from, align 4
  %chosen = bitcast i32 %lanes to <32 x i1>
  %next = select <32 x i1> %chosen, <32 x i32> %kept, <32 x i32> %all
  store <32 x i32> %next, ptr %counters, align 4
  ret void
}
