#ifndef HONE_TESTS_COMMON_OPERATOR_EXAMPLES_H_
#define HONE_TESTS_COMMON_OPERATOR_EXAMPLES_H_

namespace hone::op {

// At least one small workload per operator; every dimension has a different extent.
inline constexpr const char* kExamples[] = {
    "add m=3 n=5",
    "add_relu m=3 n=5",
    "argmax m=3 n=5",
    "argmax m=3 n=5 axis=0",
    "attention b=2 h=3 s=4 d=5 t=7",
    "avg_pool2d n=2 h=6 w=7 c=3 k=3 s=2 p=1",
    "avg_pool2d n=2 h=6 w=7 c=3 k=3 s=2 p=1 pad_counts=0 dtype=f64",
    "batch_matmul b=2 m=3 n=4 k=5",
    "batch_transpose b=2 m=3 n=5",
    "bias_add m=3 n=5 dtype=bf16",
    "capsule_conv2d n=2 h=5 w=6 ci=3 co=7 kh=3 kw=2 p=1 cap=4",
    "conv1d n=2 l=9 ci=3 co=5 k=4 s=2 p=1",
    "conv2d n=2 h=5 w=6 ci=4 co=8 kh=3 kw=2 p=1 groups=2 dtype=bf16 acc=f32",
    "conv2d n=2 h=3 w=4 ci=3 co=8 kh=1 kw=2 p=3",
    "conv2d_bn_relu n=2 h=5 w=6 ci=3 co=7 k=3 p=1",
    "conv2d_nchw n=2 h=5 w=6 ci=3 co=7 k=3 p=1 dil=2",
    "conv2d_transpose n=2 h=3 w=4 ci=5 co=6 k=3 s=2 p=1",
    "conv2d_transpose n=1 h=4 w=4 ci=5 co=6 k=4 s=2 p=1",
    "conv2d_transpose n=1 h=5 w=6 ci=3 co=4 k=2 s=2 p=3",
    "conv3d n=2 d=3 h=4 w=5 ci=6 co=7 k=3 p=1",
    "dense m=2 n=3 k=4",
    "dense_gelu m=2 n=3 k=4",
    "dense_relu m=2 n=3 k=4",
    "depthwise_conv2d n=2 h=7 w=8 c=5 kh=3 kw=4 s=2 p=1",
    "depthwise_conv2d n=2 h=3 w=5 c=9 k=2 s=2 p=5",
    "gelu m=3 n=5",
    "global_avg_pool n=2 h=3 w=4 c=5",
    "layer_norm m=3 n=5",
    "lstm_cell b=2 i=3 h=5",
    "matmul m=3 n=4 k=5 dtype=f16 acc=f32",
    "max_pool2d n=2 h=6 w=7 c=3 k=3 s=2 p=1",
    "mlp m=2 k=3 h=5 n=4",
    "multiply m=3 n=5",
    "norm b=2 m=3 n=5",
    "quantized_conv2d n=2 h=5 w=6 ci=4 co=8 k=3 p=1",
    "quantized_conv2d n=1 h=3 w=4 ci=4 co=8 k=1 p=2",
    "quantized_dense m=2 n=3 k=4",
    "quantized_matmul m=2 n=3 k=4",
    "reduce_max m=3 n=5 dtype=i8",
    "reduce_mean m=3 n=5",
    "reduce_sum m=3 n=5 axis=0",
    "relu m=3 n=5",
    "rms_norm m=3 n=5",
    "sigmoid m=3 n=5",
    "silu m=3 n=5",
    "softmax m=3 n=5 dtype=bf16 acc=f32",
    "tanh m=3 n=5",
    "transpose m=3 n=5",
    "transpose_batch_matmul b=2 s=3 h=4 d=5",
    "winograd_conv2d n=2 h=6 w=11 ci=3 co=5",
};

}  // namespace hone::op

#endif  // HONE_TESTS_COMMON_OPERATOR_EXAMPLES_H_
