; Conversions between f16 and f32: the functions that LLVM calls on CPUs without instructions for these conversions.
; These functions are part of a compiler's runtime library, which the wheels do not include.

; f16 to f32, exact.
define hidden float @__extendhfsf2(half %a) noinline nounwind {
entry:
  %half = bitcast half %a to i16
  %bits = zext i16 %half to i32
  %magnitude = and i32 %bits, 32767
  ; The biases of the exponents differ by 112. A multiplication by 2**112 is correct for subnormal numbers too.
  %moved = shl i32 %magnitude, 13
  %number = bitcast i32 %moved to float
  %product = fmul float %number, 0x46F0000000000000
  %scaled = bitcast float %product to i32
  %special = or i32 %scaled, 2139095040
  %beyond = icmp uge i32 %magnitude, 31744
  %found = select i1 %beyond, i32 %special, i32 %scaled
  %sign.half = and i32 %bits, 32768
  %sign = shl i32 %sign.half, 16
  %signed = or i32 %found, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

; f32 to f16, rounded to nearest even.
define hidden half @__truncsfhf2(float %a) noinline nounwind {
entry:
  %bits = bitcast float %a to i32
  %magnitude = and i32 %bits, 2147483647
  ; A normal half: the bias decreases by 112, and half a unit in the last place, or slightly less, is added to round.
  %last = lshr i32 %magnitude, 13
  %odd = and i32 %last, 1
  %rebiased = add i32 %magnitude, -939520001
  %rounded = add i32 %rebiased, %odd
  %normal = lshr i32 %rounded, 13
  ; f32 numbers between 0.5 and 1 have the same unit in the last place as subnormal halves.
  %number = bitcast i32 %magnitude to float
  %raised = fadd float %number, 5.000000e-01
  %raised.bits = bitcast float %raised to i32
  %subnormal = sub i32 %raised.bits, 1056964608
  %is_small = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %is_small, i32 %subnormal, i32 %normal
  %is_infinite = icmp uge i32 %magnitude, 1199570944
  %number_or_infinity = select i1 %is_infinite, i32 31744, i32 %finite
  %is_nan = icmp ugt i32 %magnitude, 2139095040
  %found = select i1 %is_nan, i32 32256, i32 %number_or_infinity
  %high = and i32 %bits, -2147483648
  %sign = lshr i32 %high, 16
  %signed = or i32 %found, %sign
  %short = trunc i32 %signed to i16
  %result = bitcast i16 %short to half
  ret half %result
}
