// Messages of XeVM are executed as written: surfaces and shapes of issues of intel-xpu-backend-for-triton, which cost its
// authors wrong results, are errors that name the rule and what each GPU does.

gpu.module @kernels {
  // #8154: rows of 13 numbers of 32 bits. A B580 returned garbage, Ponte Vecchio tolerates it.
  // RUN: not xegpu-run %s --kernel pitch_52 --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=PITCH-52
  // PITCH-52: error: 'lsc_load_block2d' accesses a surface whose pitch is below 64 bytes: base 0x100000, width 52 bytes, height 7 rows, pitch 52 bytes
  // PITCH-52: note: rule block2d-pitch-least: 
  // PITCH-52-SAME: the pitch of a 2D block message is at least 64 bytes; bmg and lnl return undefined data; pvc and pvcxt accept it;
  // PITCH-52: note: rule block2d-pitch-multiple: 
  // PITCH-52: note: rule block2d-width-least: 
  // RUN: xegpu-run %s --kernel pitch_52 --target pvcxt --block 16 zeros:i8:4096 zeros:i8:4096
  // RUN: xegpu-run %s --kernel pitch_52 --target pvc --block 16 zeros:i8:4096 zeros:i8:4096
  llvm.func @pitch_52(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(52 : i32) : i32
    %h = llvm.mlir.constant(7 : i32) : i32
    %pitch = llvm.mlir.constant(52 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 32 : i32, tile_width = 16 : i32, tile_height = 2 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<2xi32>
    llvm.store %v, %o : vector<2xi32>, !llvm.ptr<1>
    llvm.return
  }

  // #7334: a stride of 2^30 numbers of 16 bits, which was cut to 32 bits.
  // RUN: not xegpu-run %s --kernel stride_2_30 --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=STRIDE-2-30
  // STRIDE-2-30: error: 'lsc_load_block2d' accesses a surface whose pitch is above 16777215 bytes: {{.*}} pitch 2147483648 bytes
  // STRIDE-2-30: note: rule block2d-pitch-most: 
  llvm.func @stride_2_30(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(64 : i32) : i32
    %h = llvm.mlir.constant(8 : i32) : i32
    %pitch = llvm.mlir.constant(-2147483648 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi16>
    llvm.store %v, %o : vector<8xi16>, !llvm.ptr<1>
    llvm.return
  }

  // #7022: a stride of 12582912 numbers of 32 bits.
  // RUN: not xegpu-run %s --kernel stride_12582912 --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=STRIDE-12582912
  // STRIDE-12582912: error: 'lsc_load_block2d' accesses a surface whose pitch is above 16777215 bytes: {{.*}} pitch 50331648 bytes
  // STRIDE-12582912: note: rule block2d-pitch-most: 
  // RUN: not xegpu-run %s --kernel stride_12582912 --target pvcxt --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=STRIDE-PVC
  // STRIDE-PVC: error: 'lsc_load_block2d' accesses a surface whose pitch is above 16777216 bytes: {{.*}} pitch 50331648 bytes
  // STRIDE-PVC: note: rule block2d-pitch-most: 
  llvm.func @stride_12582912(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(64 : i32) : i32
    %h = llvm.mlir.constant(8 : i32) : i32
    %pitch = llvm.mlir.constant(50331648 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 32 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi32>
    llvm.store %v, %o : vector<8xi32>, !llvm.ptr<1>
    llvm.return
  }

  // #7223: a row of 64 bytes for all rows, at an address 16 bytes behind an aligned one.
  // RUN: not xegpu-run %s --kernel broadcast_load --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=BROADCAST-LOAD
  // BROADCAST-LOAD: error: 'lsc_load_block2d' accesses a surface whose pitch is below the width: {{.*}} width 80 bytes, height 1 rows, pitch 64 bytes
  // BROADCAST-LOAD: note: rule block2d-pitch-width: 
  // RUN: not xegpu-run %s --kernel broadcast_load --target cri --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=BROADCAST-CRI
  // BROADCAST-CRI: error: 'lsc_load_block2d' accesses a surface whose pitch is below the width
  // BROADCAST-CRI: note: rule block2d-pitch-width: 
  llvm.func @broadcast_load(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(80 : i32) : i32
    %h = llvm.mlir.constant(1 : i32) : i32
    %pitch = llvm.mlir.constant(64 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 16 : i32, tile_width = 32 : i32, tile_height = 1 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<2xi16>
    llvm.store %v, %o : vector<2xi16>, !llvm.ptr<1>
    llvm.return
  }

  // #7463: rows of 64 numbers of 16 bits from the twentieth on, whose width grows by 40 bytes.
  // RUN: not xegpu-run %s --kernel broadcast_store --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=BROADCAST-STORE
  // BROADCAST-STORE: error: 'lsc_store_block2d' accesses a surface whose pitch is below the width: {{.*}} width 168 bytes, height 1 rows, pitch 128 bytes
  // BROADCAST-STORE: note: rule block2d-pitch-width: 
  llvm.func @broadcast_store(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(168 : i32) : i32
    %h = llvm.mlir.constant(1 : i32) : i32
    %pitch = llvm.mlir.constant(128 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = llvm.mlir.constant(dense<1> : vector<1xi16>) : vector<1xi16>
    xevm.blockstore2d %a, %w, %h, %pitch, %x, %z, %v <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 1 : i32}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32, vector<1xi16>)
    llvm.return
  }

  // #7698: 16 columns of 16 bits; tolerated by Ponte Vecchio, as 52 bytes are.
  // RUN: not xegpu-run %s --kernel narrow --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=NARROW
  // NARROW: error: 'lsc_load_block2d' accesses a surface whose width is below 64 bytes: {{.*}} width 32 bytes
  // NARROW: note: rule block2d-width-least: 
  // RUN: xegpu-run %s --kernel narrow --target pvcxt --block 16 zeros:i8:4096 zeros:i8:4096
  llvm.func @narrow(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(32 : i32) : i32
    %h = llvm.mlir.constant(1 : i32) : i32
    %pitch = llvm.mlir.constant(128 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 1 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<1xi16>
    llvm.store %v, %o : vector<1xi16>, !llvm.ptr<1>
    llvm.return
  }

  // #3373: a base that is aligned to 16 bytes. Xe3P takes it.
  // RUN: not xegpu-run %s --kernel base_16 --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=BASE-16
  // BASE-16: error: 'lsc_load_block2d' accesses a surface whose base is not a multiple of 64: base 0x100010,
  // BASE-16: note: rule block2d-base: 
  // RUN: not xegpu-run %s --kernel base_16 --target pvcxt --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=BASE-PVC
  // BASE-PVC: error: 'lsc_load_block2d' accesses a surface whose base is not a multiple of 64
  // BASE-PVC: note: rule block2d-base: 
  // RUN: xegpu-run %s --kernel base_16 --target cri --block 16 zeros:i8:4096 zeros:i8:4096
  llvm.func @base_16(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(64 : i32) : i32
    %h = llvm.mlir.constant(8 : i32) : i32
    %pitch = llvm.mlir.constant(64 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %p = llvm.getelementptr %a[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %v = xevm.blockload2d %p, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi16>
    llvm.store %v, %o : vector<8xi16>, !llvm.ptr<1>
    llvm.return
  }

  // #1152: a block of 64 rows, which Ponte Vecchio loads as zeros.
  // RUN: not xegpu-run %s --kernel rows_64 --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=ROWS-64
  // ROWS-64: error: 'xegpu.load_nd' op a 2D block load has 1 to 32 rows, not 64
  // ROWS-64: note: rule block2d-rows: 
  // RUN: not xegpu-run %s --kernel rows_64 --target pvcxt --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=ROWS-PVC
  // ROWS-PVC: error: 'xegpu.load_nd' op a 2D block load has 1 to 32 rows, not 64
  // ROWS-PVC: note: rule block2d-rows: {{.*}} pvcxt and pvc return undefined data (zeros);
  llvm.func @rows_64(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(64 : i32) : i32
    %h = llvm.mlir.constant(64 : i32) : i32
    %pitch = llvm.mlir.constant(64 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 64 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<64xi16>
    llvm.store %v, %o : vector<64xi16>, !llvm.ptr<1>
    llvm.return
  }

  // #7990: a column that grows by 3 numbers of 16 bits. A B580 returned wrong data.
  // RUN: not xegpu-run %s --kernel odd_column --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=ODD-COLUMN
  // ODD-COLUMN: error: 'lsc_load_block2d' accesses a surface whose block begins in a column that is not a multiple of 4 bytes: {{.*}}, column 3
  // ODD-COLUMN: note: rule block2d-x-multiple: 
  // ODD-COLUMN-SAME: bmg and lnl return undefined data
  llvm.func @odd_column(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(128 : i32) : i32
    %h = llvm.mlir.constant(8 : i32) : i32
    %pitch = llvm.mlir.constant(128 : i32) : i32
    %x = llvm.mlir.constant(3 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi16>
    llvm.store %v, %o : vector<8xi16>, !llvm.ptr<1>
    llvm.return
  }

  // #8071: more rows than 24 bits count.
  // RUN: not xegpu-run %s --kernel rows_2_24 --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=ROWS-2-24
  // ROWS-2-24: error: 'lsc_load_block2d' accesses a surface whose height is above 16777216 rows: {{.*}} height 16777217 rows
  // ROWS-2-24: note: rule block2d-height-most: 
  llvm.func @rows_2_24(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(64 : i32) : i32
    %h = llvm.mlir.constant(16777217 : i32) : i32
    %pitch = llvm.mlir.constant(64 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = xevm.blockload2d %a, %w, %h, %pitch, %x, %z <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi16>
    llvm.store %v, %o : vector<8xi16>, !llvm.ptr<1>
    llvm.return
  }

  // A store of a column, whose rows have less than 4 bytes, is no scatter.
  // RUN: not xegpu-run %s --kernel column --target bmg --block 16 zeros:i8:4096 zeros:i8:4096 2>&1 | FileCheck %s --check-prefix=COLUMN
  // COLUMN: error: 'xegpu.store_nd' op a 2D block store
  // COLUMN: note: rule block2d-
  llvm.func @column(%a: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {gpu.kernel} {
    %w = llvm.mlir.constant(64 : i32) : i32
    %h = llvm.mlir.constant(16 : i32) : i32
    %pitch = llvm.mlir.constant(64 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %v = llvm.mlir.constant(1 : i16) : i16
    xevm.blockstore2d %a, %w, %h, %pitch, %x, %z, %v <{elem_size_in_bits = 16 : i32, tile_width = 1 : i32, tile_height = 16 : i32}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32, i16)
    llvm.return
  }
}
