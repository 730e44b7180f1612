// canonicalize
// refuses its own result

func.func @f(%a: vector<8x2xf32>, %z: vector<8x8xf32>) -> vector<4x8xf32> {
  %0 = vector.insert_strided_slice %a, %z {offsets = [0, 0], strides = [1, 1]} : vector<8x2xf32> into vector<8x8xf32>
  %1 = vector.extract_strided_slice %0 {offsets = [0], sizes = [4], strides = [1]} : vector<8x8xf32> to vector<4x8xf32>
  return %1 : vector<4x8xf32>
}
