// canonicalize
// has: return %arg0

func.func @f(%a: vector<4xf32>, %b: vector<2xf32>, %z: vector<8xf32>) -> vector<4xf32> {
  %0 = vector.insert_strided_slice %a, %z {offsets = [0], strides = [1]} : vector<4xf32> into vector<8xf32>
  %1 = vector.insert_strided_slice %b, %0 {offsets = [2], strides = [1]} : vector<2xf32> into vector<8xf32>
  %2 = vector.extract_strided_slice %1 {offsets = [0], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  return %2 : vector<4xf32>
}
