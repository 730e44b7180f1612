// Address variables, and functions of a kernel.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: xegpu-opt %s --visa-optimize --visa-allocate | FileCheck %s
// RUN: xegpu-translate --mlir-to-visaasm %s | FileCheck %s --check-prefix=TEXT
// RUN: xegpu-translate --mlir-to-visaasm %s | xegpu-translate --visaasm-to-mlir | FileCheck %s
// RUN: xegpu-translate --mlir-to-visaasm %s -o %t.visaasm
// RUN: xegpu-run %t.visaasm zeros:i32:16 arange:i32:16 --print Out --engine=both | FileCheck %s --check-prefix=OUT

// Lane i reads element 15 - i, and element 3 becomes 99; the function squares those from 8 on.
// OUT: [15 14 13 99 11 10  9  8 49 36 25 16  9  4  1  0]

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @k() kernel attributes {
  // CHECK-SAME: visa.functions = ["main", "square"]
  // TEXT: .kernel "k"
  gpu.func @k() kernel attributes {visa.attributes = {SimdSize = 16 : i64, Target = "cm"}, visa.functions = ["main", "square"]} {
    %Out = visa.decl "Out", uq x 1, align = qword
    %In = visa.decl "In", uq x 1, align = qword
    %X = visa.decl "X", d x 16, align = GRF
    %Y = visa.decl "Y", d x 16, align = GRF
    %steps = visa.decl "steps", w x 16, align = GRF
    // CHECK: %A = visa.decl_address "A", 16
    // GENERIC: %[[A:.*]] = "visa.decl_address"() {count = 16 : i64, var_name = "A"} : () -> !visa.address
    // TEXT: .decl A v_type=A num_elts=16
    %A = visa.decl_address "A", 16
    %P = visa.decl_pred "P", 16
    visa.input %Out, offset = 64, size = 8
    visa.input %In, offset = 72, size = 8
    // TEXT: .function "main"
    // TEXT-NEXT: main:
    visa.label main
    visa.lsc_load.ugm (M1_NM, 1) %X[0]:d32x16t flat[%In[0]]:a64
    visa.mov (M1_NM, 8) %steps(0,0)<1> 0x76543210:uv
    visa.add (M1_NM, 8) %steps(0,8)<1> %steps(0,0)<1;1,0> 0x8:w
    visa.mul (M1_NM, 16) %steps(0,0)<1> %steps(0,0)<1;1,0> -4:w
    // CHECK: visa.addr_add (M1_NM, 16) %A(0)<1> &%X[60] %steps(0,0)<1;1,0>
    // GENERIC: "visa.addr_add"(%[[A]], {{.*}}dst_access = "%(0)<1>"{{.*}}src0_access = "&%[60]"{{.*}} : (!visa.address, !visa.var, !visa.var) -> ()
    // TEXT: addr_add (M1_NM, 16) A(0)<1> &X[60] steps(0,0)<1;1,0>
    visa.addr_add (M1_NM, 16) %A(0)<1> &%X[60] %steps(0,0)<1;1,0>
    // CHECK: visa.mov (M1, 16) %Y(0,0)<1> r[%A(0),0]<1,0>:d
    // GENERIC: src0_access = "r[%(0),0]<1,0>:d"
    // TEXT: mov (M1, 16) Y(0,0)<1> r[A(0),0]<1,0>:d
    visa.mov (M1, 16) %Y(0,0)<1> r[%A(0),0]<1,0>:d
    // CHECK: visa.addr_add (M1_NM, 1) %A(2)<1> &%Y[12] 0x0:w
    visa.addr_add (M1_NM, 1) %A(2)<1> &%Y[12] 0x0:w
    // CHECK: visa.addr_add (M1_NM, 1) %A(3)<1> %A(2)<0;1,0> 0x4:w
    // TEXT: addr_add (M1_NM, 1) A(3)<1> A(2)<0;1,0> 0x4:w
    visa.addr_add (M1_NM, 1) %A(3)<1> %A(2)<0;1,0> 0x4:w
    // CHECK: visa.mov (M1_NM, 1) r[%A(3),-4]<1>:d 0x63:d
    // TEXT: mov (M1_NM, 1) r[A(3),-4]<1>:d 0x63:d
    visa.mov (M1_NM, 1) r[%A(3),-4]<1>:d 0x63:d
    visa.setp (M1_NM, 16) %P 0xff00:uw
    // CHECK: visa.call (M1, 16, %P) square
    // TEXT: (P) call (M1, 16) square
    visa.call (M1, 16, %P) square
    visa.lsc_store.ugm (M1_NM, 1) flat[%Out[0]]:a64 %Y[0]:d32x16t
    visa.ret (M1, 1)
    // CHECK: visa.label square
    // TEXT: .function "square"
    // TEXT-NEXT: square:
    visa.label square
    visa.mul (M1, 16) %Y(0,0)<1> %Y(0,0)<1;1,0> %Y(0,0)<1;1,0>
    visa.ret (M1, 16)
    gpu.return
  }
}
