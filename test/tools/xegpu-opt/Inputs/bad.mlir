module { "arith.constant"() : () -> i32 }
