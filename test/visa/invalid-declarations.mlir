// RUN: xegpu-opt %s --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @twice() kernel {
    %0 = visa.decl "X", f x 16
    // expected-error @+1 {{'visa.decl_pred' op redefinition of variable 'X'}}
    %1 = visa.decl_pred "X", 16
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @names() kernel {
    // expected-error @+2 {{'visa.decl' op '1X' is not a valid variable name}}
    // expected-note @+1 {{a name consists of letters, digits, '_' and '$', and does not begin with a digit}}
    %0 = visa.decl "1X", f x 16
    // expected-error @+2 {{'visa.decl_pred' op 'a b' is not a valid variable name}}
    // expected-note @+1 {{a name consists of letters, digits, '_' and '$', and does not begin with a digit}}
    %1 = visa.decl_pred "a b", 16
    // expected-error @+2 {{'visa.decl' op redefinition of '%r0'}}
    // expected-note @+1 {{this is the name of a built-in variable}}
    %2 = visa.decl "%r0", ud x 16
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @element() kernel {
    // expected-error @+1 {{expected one of ub, b, uw, w, ud, d, uq, q, hf, bf, f, df, but got 'f32'}}
    %0 = visa.decl "X", f32 x 16
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @align() kernel {
    // expected-error @+1 {{expected one of byte, word, dword, qword, oword, hword, wordx32, wordx64, GRF, GRFx2, but got '64'}}
    %0 = visa.decl "X", f x 16, align = 64
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_elements() kernel {
    // expected-error @+1 {{variable 'X' has no elements}}
    %0 = visa.decl "X", f x 0
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @alias() kernel {
    %0 = visa.decl "X", f x 16
    // expected-error @+1 {{alias 'Y' reaches from byte 32 to 96, but 'X' has 64 bytes}}
    %1 = visa.decl "Y", f x 16, alias = %0 + 32
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @offset_of_nothing() kernel {
    // expected-error @+1 {{'visa.decl' op 'offset' requires 'alias'}}
    %0 = "visa.decl"() {var_name = "X", element = "f", count = 16 : i64, offset = 4 : i64} : () -> !visa.var
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @bits() kernel {
    // expected-error @+1 {{attribute 'count': expected one of 1, 2, 4, 8, 16, 32, but got '3'}}
    %0 = visa.decl_pred "P", 3
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @builtin() kernel {
    // expected-error @+1 {{expected one of r0, group_id_x, group_id_y, group_id_z, cr0, sr0, msg0, tsc, scratchloc, sp, fp, arg, retval, but got 'r1'}}
    %0 = visa.builtin r1
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @input_kind() kernel {
    %0 = visa.decl "X", ud x 3
    // expected-error @+1 {{expected one of LOCAL_SIZE, GROUP_COUNT, LOCAL_ID, but got 'GROUP_ID'}}
    visa.input %0, offset = 64, size = 12, kind = GROUP_ID
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @inputs() kernel {
    %0 = visa.decl "X", ud x 3
    // expected-error @+1 {{input 'X' has 8 bytes, but its variable has 12}}
    visa.input %0, offset = 64, size = 8
    %1 = visa.builtin r0
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @predicate_as_input() kernel {
    // expected-note @+1 {{prior use here}}
    %0 = visa.decl_pred "P", 16
    // expected-error @+1 {{use of value '%0' expects different type than prior uses: '!visa.var' vs '!visa.pred'}}
    visa.input %0, offset = 64, size = 8
    gpu.return
  }
}

// -----

// expected-error @+1 {{unknown type '!visa.flag'}}
func.func private @types(!visa.flag)
