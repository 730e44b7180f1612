// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{a tile must have positive dimensions, but got 0x16}}
func.func private @f(!xetile.tile<0x16xf16>)

// -----

// expected-error @below {{a tile must have one or two dimensions, but got 3}}
func.func private @f(!xetile.tile<2x8x16xf16>)

// -----

// expected-error @below {{the shape of a tile must be static}}
func.func private @f(!xetile.tile<?x16xf16>)

// -----

// expected-error @below {{a tile of one dimension must be scattered}}
func.func private @f(!xetile.tile<64xf32>)

// -----

// expected-error @below {{a tile must have integer or floating-point elements, but got 'index'}}
func.func private @f(!xetile.tile<8x16xindex>)

// -----

// expected-error @below {{a tile must have elements of 8, 16, 32 or 64 bits, but got 'i4'}}
func.func private @f(!xetile.tile<8x16xi4>)

// -----

// expected-error @below {{order must be [1, 0] or [0, 1], but got [0, 0]}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<order = [0, 0]>>)

// -----

// expected-error @below {{order must be [1, 0] or [0, 1], but got [1]}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<order = [1]>>)

// -----

// expected-error @below {{a scattered tile cannot have an order: its indices give the address of each element}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<order = [0, 1], scattered = true>>)

// -----

// expected-error @below {{memory_space must be 0 (global) or 3 (shared local memory), but got 1}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<memory_space = 1>>)

// -----

// expected-error @below {{sg_layout must be one or two positive numbers, but got [0, 4]}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<wg_map = <sg_layout = [0, 4], sg_data = [8, 16]>>>)

// -----

// expected-error @below {{sg_data must be one or two positive numbers, but got [8, 16, 1]}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16, 1]>>>)

// -----

// expected-error @below {{sg_layout = [1, 1] and sg_data = [8] must have the same number of dimensions}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8]>>>)

// -----

// expected-error @below {{a map of 1 dimensions cannot divide a shape of 8x16}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<wg_map = <sg_layout = [4], sg_data = [4]>>>)

// -----

// expected-error @below {{64 rows are not divisible by sg_data = 24}}
func.func private @f(!xetile.tile<64x16xf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [24, 16]>>>)

// -----

// expected-error @below {{6 parts of 16 rows can neither be distributed evenly to sg_layout = 4 subgroups nor be shared evenly by them}}
func.func private @f(!xetile.tile<96x16xf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [16, 16]>>>)

// -----

// expected-error @below {{64 elements are not divisible by sg_data = 24}}
func.func private @f(!xetile.tile<64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4], sg_data = [24]>, scattered = true>>)

// -----

// expected-error @below {{wi_layout must be two positive numbers, but got [1]}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<sg_map = <wi_layout = [1], wi_data = [1, 1]>>>)

// -----

// expected-error @below {{16 columns of a subgroup are not divisible by wi_layout x wi_data = 12 x 1}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<sg_map = <wi_layout = [1, 12], wi_data = [1, 1]>>>)

// -----

// expected-error @below {{8 columns of a subgroup are not divisible by wi_layout x wi_data = 16 x 1}}
func.func private @f(!xetile.tile<32x32xf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 4], sg_data = [8, 8]>, sg_map = <wi_layout = [1, 16], wi_data = [1, 1]>>>)

// -----

// expected-error @below {{a scattered tile cannot have an sg_map}}
func.func private @f(!xetile.tile<16xf32, #xetile.tile_attr<sg_map = <wi_layout = [1, 16], wi_data = [1, 1]>, scattered = true>>)

// -----

// expected-error @below {{expected wg_map, sg_map, order, memory_space, scattered in #xetile.tile_attr}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<layout = [0, 1]>>)

// -----

// expected-error @below {{'memory_space' is given twice}}
func.func private @f(!xetile.tile<8x16xf16, #xetile.tile_attr<memory_space = 3, memory_space = 3>>)

// -----

// expected-error @below {{expected #xetile.tile_attr, but got scattered}}
func.func private @f(!xetile.tile<8x16xf16, scattered>)
