typedef struct { float4 weights; int bias; char tag[3]; short step; } Layer;
typedef struct { float x, y; int hits; } Point;
kernel void apply(Layer layer, global const Point *in, global Point *out) {
    int i = get_global_id(0);
    Point p = in[i];
    p.x = p.x * layer.weights.x + layer.weights.y;
    p.y = p.y * layer.weights.z + layer.weights.w;
    p.hits += layer.bias + layer.tag[1] * layer.step;
    out[i] = p;
}
// RUN apply full:f32:8:1.5 rand:f32:96:seed=1 zeros:f32:96 global=32
