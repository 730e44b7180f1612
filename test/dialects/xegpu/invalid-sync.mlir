// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f() {
  // expected-error @below {{'xegpu.alloc_nbarrier' op requires the attribute 'nbarrier_num' or the operand 'count'}}
  xegpu.alloc_nbarrier
  return
}

// -----

func.func @f() {
  // expected-error @below {{'xegpu.alloc_nbarrier' op the number of barriers must be 1 to 255, but got 0}}
  xegpu.alloc_nbarrier 0
  return
}

// -----

func.func @f() {
  // expected-error @below {{'xegpu.alloc_nbarrier' op the number of barriers must be 1 to 255, but got 256}}
  xegpu.alloc_nbarrier 256
  return
}

// -----

func.func @f(%n: i32) {
  // expected-error @below {{operand 'count' must be 8-bit integer or index, but got 'i32'}}
  xegpu.alloc_nbarrier %n : i32
  return
}

// -----

func.func @f(%n: i32) {
  // expected-error @below {{operand 'nbarrier_id' must be 8-bit integer, but got 'i32'}}
  xegpu.init_nbarrier %n, %n : i32, i32 -> !xegpu.nbarrier
  return
}

// -----

func.func @f(%n: i8) {
  // expected-error @below {{result 'result' must be !xegpu.nbarrier, but got 'i8'}}
  xegpu.init_nbarrier %n, %n : i8, i8 -> i8
  return
}

// -----

func.func @f(%n: i8) {
  // expected-error @below {{operand 'nbarrier' must be !xegpu.nbarrier, but got 'i8'}}
  xegpu.nbarrier_wait %n : i8
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected one of workgroup, gpu, but got 'subgroup'}}
  xegpu.fence {scope = subgroup, memory_kind = global}
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected one of global, shared, but got 'slm'}}
  xegpu.fence {scope = gpu, memory_kind = slm}
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected schedule_barrier, but got 'unroll'}}
  xegpu.compile_hint {hint = unroll}
  return
}

// -----

func.func @older_producers_and_consumers(%n: i8) {
  // expected-error @below {{'xegpu.create_nbarrier' op has 4 producers and 2 consumers, but the RFC's named barriers have threads that all arrive and wait}}
  // expected-note @below {{use one barrier for each direction}}
  xegpu.create_nbarrier %n, %n {num_producers = 4, num_consumers = 2} : (i8, i8) -> !xegpu.nbarrier
  return
}

// -----

// expected-error @below {{expected wi_layout, wi_data in #xegpu.sg_map}}
func.func private @map(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<{block = [8, 16], wi_layout = [1, 16], wi_data = [1, 1]}>>)

// -----

func.func @f(%n: i8) {
  // expected-error @below {{'xegpu.create_nbarrier' op the number of threads must be 1 to 255, but got 0}}
  %b = xegpu.create_nbarrier %n, %n {num_producers = 0 : i8, num_consumers = 0 : i8} : (i8, i8) -> !xegpu.nbarrier
  return
}

// -----

func.func @f(%n: i8) {
  // expected-error @below {{'xegpu.create_nbarrier' op the number of threads must be 1 to 255, but got 256}}
  %b = xegpu.create_nbarrier %n, %n {num_producers = 256 : i32, num_consumers = 256 : i32} : (i8, i8) -> !xegpu.nbarrier
  return
}
