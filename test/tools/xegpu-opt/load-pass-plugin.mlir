// A file of Python adds passes, as a shared library adds them to mlir-opt. Its errors are located diagnostics.

// RUN: xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --mark-loads %s | FileCheck %s --check-prefix=MARK
// RUN: xegpu-opt --mark-loads='number=32 name-of-mark=test.other' %s -load-pass-plugin %S/Inputs/mark_loads.py | FileCheck %s --check-prefix=OPTIONS
// RUN: xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --pass-pipeline='builtin.module(canonicalize,mark-loads{number=16})' %s | FileCheck %s --check-prefix=PIPELINE
// RUN: xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --help-pass=mark-loads | FileCheck %s --check-prefix=HELP
// RUN: xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --list-passes | FileCheck %s --check-prefix=LIST
// RUN: not xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --mark-loads=numbr=2 %s 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --mark-loads=number=-1 %s 2>&1 | FileCheck %s --check-prefix=FAIL
// RUN: not xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --mark-loads=number=0 %s 2>&1 | FileCheck %s --check-prefix=RAISES
// RUN: echo 'import xegpu_py' > %t.py && echo 'xegpu_py.register_pas("x")' >> %t.py
// RUN: not xegpu-opt --load-pass-plugin=%t.py %s 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: echo 'def f(:' > %t.py
// RUN: not xegpu-opt --load-pass-plugin=%t.py %s 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: echo 'import no_such_package' > %t.py
// RUN: not xegpu-opt --load-pass-plugin=%S/Inputs/mark_loads.py --load-pass-plugin=%t.py %s 2>&1 | FileCheck %s --check-prefix=IMPORT
// RUN: not xegpu-opt --load-pass-plugin=%t.none %s 2>&1 | FileCheck %s --check-prefix=NONE

// MARK: xegpu.load_nd {{.*}}mark = 64 : i64
// OPTIONS: xegpu.load_nd {{.*}}test.other = 2 : i64
// PIPELINE: xegpu.load_nd {{.*}}mark = 4 : i64
// HELP: --mark-loads
// HELP: Write an attribute on each load.
// HELP: number=int (default 1)
// LIST: {{^}}mark-loads{{$}}
// OPTION: xegpu-opt: error: pass 'mark-loads' has no option 'numbr'; its options are name-of-mark, number
// FAIL: load-pass-plugin.mlir:39:8: error: 'xegpu.load_nd' op cannot be marked
// RAISES-NOT: Traceback
// RAISES: {{^}}{{.*}}mark_loads.py:27:21: error: ZeroDivisionError: integer division or modulo by zero
// RAISES-NEXT: {{.*}}ir.IntegerType
// NAME-NOT: Traceback
// NAME: {{^}}{{.*}}.py:2:1: error: AttributeError: {{.*}}register_pas
// NAME-NEXT: {{^ *}}xegpu_py.register_pas("x")
// SYNTAX: {{^}}{{.*}}.py:1:7: error: invalid syntax
// SYNTAX-NEXT: def f(:
// IMPORT: {{^}}{{.*}}.py:1:1: error: ModuleNotFoundError: No module named 'no_such_package'
// NONE: {{^}}{{.*}}.none: error: cannot open pass plugin '{{.*}}.none': No such file or directory
func.func @f(%t: !xegpu.tensor_desc<8x16xf16>, %p: memref<8x16xf16>) -> vector<8x16xf16> {
  %1 = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return %1 : vector<8x16xf16>
}
