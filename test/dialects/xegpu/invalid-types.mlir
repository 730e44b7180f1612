// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{the shape of a tensor descriptor must be static}}
func.func private @f(!xegpu.tensor_desc<?x16xf16>)

// -----

// expected-error @below {{a tensor descriptor must have positive dimensions, but got none}}
func.func private @f(!xegpu.tensor_desc<f16>)

// -----

// expected-error @below {{a tensor descriptor must have positive dimensions, but got 0x16}}
func.func private @f(!xegpu.tensor_desc<0x16xf16>)

// -----

// expected-error @below {{a tensor descriptor must have integer or floating-point elements, but got 'index'}}
func.func private @f(!xegpu.tensor_desc<8x16xindex>)

// -----

// expected-error @below {{array_length must be positive, but got 0}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, array_length = 0>)

// -----

// expected-error @below {{array_length requires a 2D descriptor}}
func.func private @f(!xegpu.tensor_desc<16xf16, #xegpu.tdesc_attr<array_length = 2, boundary_check = false>>)

// -----

// expected-error @below {{a 1D tensor descriptor has no boundary check: boundary_check must be false}}
func.func private @f(!xegpu.tensor_desc<16xf16, boundary_check = true>)

// -----

// expected-error @below {{the outer dimension of wi_layout and wi_data must be 1 for a 1D tensor descriptor}}
func.func private @f(!xegpu.tensor_desc<16xf16, boundary_check = false, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 1]>>)

// -----

// expected-error @below {{the outer dimension of wi_layout and wi_data must be 1 for a 1D tensor descriptor}}
func.func private @f(!xegpu.tensor_desc<16xf16, boundary_check = false, #xegpu.sg_map<wi_layout = [1, 8], wi_data = [2, 1]>>)

// -----

// expected-error @below {{the elements of a fragment with wi_data = [2, 2] of f16 are not contiguous: a fragment is part of a row, or a column of elements that VNNI packs into 32 bits}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [2, 2]>>)

// -----

// expected-error @below {{the elements of a fragment with wi_data = [2, 1] of f32 are not contiguous}}
func.func private @f(!xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>>)

// -----

// expected-error @below {{the elements of a fragment with wi_data = [2, 1] of i8 are not contiguous}}
func.func private @f(!xegpu.tensor_desc<8x16xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>>)

// -----

// A column that VNNI packs.
func.func private @f(!xegpu.tensor_desc<8x16xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [4, 1]>>,
                     !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>>,
                     !xegpu.tensor_desc<8x16xf64, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>)

// -----

// expected-error @below {{8 rows are not divisible by wi_layout x wi_data = 3 x 1}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [3, 8], wi_data = [1, 1]>>)

// -----

// expected-error @below {{16 columns are fewer than wi_layout x wi_data = 16 x 2}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]>>)

// -----

// expected-error @below {{wi_layout must be two positive numbers, but got [1, 16, 1]}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16, 1], wi_data = [1, 1]>>)

// -----

// expected-error @below {{wi_data must be two positive numbers, but got [1, 0]}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 0]>>)

// -----

// expected-error @below {{sg_map requires a 1D or 2D block, but got 4x8x16}}
func.func private @f(!xegpu.tensor_desc<4x8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>)

// -----

// expected-error @below {{a scattered tensor descriptor cannot have an sg_map: scattered access is available in VC mode only}}
func.func private @f(!xegpu.tensor_desc<16xf16, #xegpu.tdesc_attr<#xegpu.scattered, map = <wi_layout = [1, 16], wi_data = [1, 1]>>>)

// -----

// expected-error @below {{a scattered tensor descriptor cannot have an array_length}}
func.func private @f(!xegpu.tensor_desc<16xf16, #xegpu.tdesc_attr<#xegpu.scattered, array_length = 2>>)

// -----

// expected-error @below {{a scattered tensor descriptor must be 1D (lanes) or 2D (lanes, chunk), but got 3D}}
func.func private @f(!xegpu.tensor_desc<16x2x2xf16, #xegpu.scattered>)

// -----

// expected-error @below {{a scattered tensor descriptor must have 1, 2, 4, 8, 16 or 32 lanes, but got 12}}
func.func private @f(!xegpu.tensor_desc<12xf16, #xegpu.scattered>)

// -----

// expected-error @below {{a scattered tensor descriptor must have 1, 2, 4, 8, 16 or 32 lanes, but got 64}}
func.func private @f(!xegpu.tensor_desc<64xf16, #xegpu.scattered>)

// -----

// expected-error @below {{the chunk of a lane must have 1, 2, 3, 4 or 8 elements, but got 5}}
func.func private @f(!xegpu.tensor_desc<16x5xf16, #xegpu.scattered>)

// -----

// expected-error @below {{scattered access requires elements of 8, 16, 32 or 64 bits, but got 'i4'}}
func.func private @f(!xegpu.tensor_desc<16xi4, #xegpu.scattered>)

// -----

// expected-error @below {{chunk_size_per_lane = 4 does not match the shape 16x2}}
func.func private @f(!xegpu.tensor_desc<16x2xf16, #xegpu.scattered, chunk_size_per_lane = 4>)

// -----

// expected-error @below {{expected one of global, slm, but got 'shared'}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, memory_scope = shared>)

// -----

// expected-error @below {{expected a parameter of a tensor descriptor (memory_scope, array_length, boundary_check, scattered, map, message, clipped, sg, sg_map)}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, memry_scope = slm>)

// -----

// expected-error @below {{'array_length' is given twice}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, array_length = 2, array_length = 2>)

// -----

// expected-error @below {{expected true or false, but got '1'}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, boundary_check = 1>)

// -----

// expected-error @below {{expected sg_map or tdesc_attr, but got '#unknown'}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #unknown>)

// -----

// expected-error @below {{#xegpu.sg_map needs wi_data}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16]>>)

// -----

// expected-error @below {{'wi_layout' is given twice}}
func.func private @f(!xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_layout = [1, 16]>>)

// -----

// expected-error @below {{unknown type '!xegpu.tensor_dsc'; did you mean '!xegpu.tensor_desc'?}}
func.func private @f(!xegpu.tensor_dsc<8x16xf16>)

// -----

// expected-error @below {{expected '>', but got ')'}}
func.func private @f(!xegpu.tensor_desc<8x16xf16)

// -----

// expected-error @below {{unknown attribute '#xegpu.sg_mapp'; did you mean '#xegpu.sg_map'?}}
func.func @f() attributes {x = #xegpu.sg_mapp<wi_layout = [1, 16], wi_data = [1, 1]>} { return }

// -----

// expected-error @below {{expected one of simt, vc, but got 'fast'}}
func.func @f() attributes {x = #xegpu.mode<fast>} { return }
