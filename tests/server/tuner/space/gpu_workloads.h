#ifndef HONE_TESTS_SERVER_TUNER_SPACE_GPU_WORKLOADS_H_
#define HONE_TESTS_SERVER_TUNER_SPACE_GPU_WORKLOADS_H_

namespace hone::space {

// Workloads of all families, for MakeWorkload: odd and prime sizes, sizes of one, and sizes smaller
// than a vector.
inline constexpr const char* kSmallGpuWorkloads[] = {
    "matmul m=1 n=1 k=1",
    "matmul m=17 n=13 k=7",
    "matmul m=32 n=64 k=32",
    "matmul m=34 n=40 k=21",
    "matmul m=1 n=40 k=9",
    "matmul m=40 n=1 k=33",
    "matmul m=1 n=64 k=2048",
    "batch_matmul b=3 m=10 n=36 k=11",
    "transpose_batch_matmul b=1 s=10 h=3 d=16",
    "dense_relu m=19 n=70 k=9",
    "dense_relu m=32 n=64 k=16",
    "dense m=16 n=24 k=40",
    "conv2d n=1 h=8 w=8 ci=8 co=16 k=1 s=1 p=0",
    "conv2d n=2 h=5 w=9 ci=3 co=37 k=3 s=1 p=1",
    "conv2d n=1 h=9 w=9 ci=4 co=32 k=3 s=2 p=1",
    "conv2d_bn_relu n=1 h=7 w=7 ci=8 co=16 k=3 s=1 p=1",
    "conv2d n=1 h=7 w=7 ci=8 co=32 k=3 s=1 p=1 groups=4",
    "conv2d_transpose n=1 h=3 w=3 ci=8 co=3 k=4 s=2 p=1",
    "conv1d n=1 l=9 ci=8 co=33 k=5 s=1 p=2",
    "depthwise_conv2d n=2 h=7 w=14 c=40 k=3 s=2 p=1",
    "max_pool2d n=1 h=9 w=8 c=33 k=3 s=2 p=1",
    "avg_pool2d n=1 h=8 w=8 c=64 k=2 s=2 p=0",
    "global_avg_pool n=2 h=4 w=4 c=40",
    "reduce_sum m=1 n=3000",
    "reduce_max m=30 n=70",
    "argmax m=37 n=90",
    "argmax m=40 n=21 axis=0",
    "argmax m=1 n=3000",
    "transpose m=37 n=50",
    "workload transposed_images\n"
    "input X: f32[2, 9, 10, 11]\n"
    "input B: f32[9]\n"
    "output Y[n: 2, h: 10, w: 11, c: 9] = max(X[n, c, h, w] + B[c], 0.0)\n",
    "add m=7 n=90",
    "conv2d_nchw n=1 h=8 w=8 ci=4 co=8 k=3 s=1 p=1",
    "conv3d n=1 d=3 h=5 w=5 ci=4 co=20 k=3 s=1 p=1",
    "winograd_conv2d n=1 h=9 w=10 ci=5 co=20",
    "quantized_matmul m=16 n=32 k=24",
    "quantized_conv2d n=1 h=7 w=7 ci=8 co=16 k=3 s=1 p=1",
    "workload quantized_rows\n"
    "input A: i8[20, 24]\n"
    "input B: i8[32, 24]\n"
    "output C[i: 20, j: 32] = sum(k: 24) i32(A[i, k]) * i32(B[j, k])\n",
    // The contraction's result is also an output.
    "workload two_outputs\n"
    "input A: u8[26, 48]\n"
    "input B: i8[48, 40]\n"
    "output C[i: 26, j: 40] = sum(k: 48) i32(A[i, k]) * i32(B[k, j])\n"
    "output D[i: 26, j: 40] = max(C[i, j], 0)\n",
    "matmul m=16 n=24 k=20 dtype=f16",
    "dense_relu m=16 n=24 k=20 dtype=bf16",
    "batch_transpose b=3 m=12 n=20",
    // Rows of a table that are added up.
    "workload bag\n"
    "input T: f32[50, 40]\n"
    "input N: i32[9, 30] < 50\n"
    "output B[i: 9, j: 40] = sum(k: 30) T[at(N[i, k]), j]\n",
    // A sum over a triangle.
    "workload triangle\n"
    "input L: f32[24, 24]\n"
    "input V: f32[24, 16]\n"
    "output Y[i: 24, j: 16] = sum(k: 24 where k <= i) L[i, k] * V[k, j]\n",
    "workload short\n"
    "input A: f32[5]\n"
    "output C[i: 5] = A[i] * 2.0\n",
    // A producer to inline, and a consumer to fuse.
    "workload chain\n"
    "input A: f32[18, 10]\n"
    "input B: f32[10, 48] constant\n"
    "input bias: f32[48]\n"
    "P[i: 18, k: 10] = A[i, k] + 1.0\n"
    "C[i: 18, j: 48] = sum(k: 10) P[i, k] * B[k, j]\n"
    "E[i: 18, j: 48] = C[i, j] + bias[j]\n"
    "output D[i: 18, j: 48] = max(E[i, j], 0.0)\n",
    "workload padded\n"
    "input A: f32[16, 10]\n"
    "input B: f32[10, 50] constant\n"
    "P[i: 18, k: 10] = (A[i - 1, k] where 0 <= i - 1 < 16 else 0.5)\n"
    "C[i: 18, j: 50] = sum(k: 10) P[i, k] * B[k, j]\n"
    "output D[i: 18, j: 50] = (C[i, j] where i < 9 else 0.0)\n",
    "workload embedding\n"
    "input T: f32[30, 20] constant\n"
    "input I: i32[9] < 30\n"
    "E[i: 9, k: 20] = T[at(I[i]), k] * 2.0\n"
    "output S[i: 9] = sum(k: 20) E[i, k] * T[at(I[i]), k]\n",
    // The stages of softmax and of attention in integer arithmetic.
    "workload rows\n"
    "input X: f32[12, 96]\n"
    "M[i: 12] = max(k: 96) X[i, k]\n"
    "E[i: 12, j: 96] = X[i, j] - M[i]\n"
    "S[i: 12] = sum(k: 96) E[i, k]\n"
    "output Y[i: 12, j: 96] = E[i, j] * S[i]\n",
    "workload uneven_rows\n"
    "input X: f32[3, 5, 37]\n"
    "S[b: 3, i: 5] = sum(k: 37) X[b, i, k]\n"
    "Q[b: 3, i: 5] = sum(k: 37) (X[b, i, k] - S[b, i]) * (X[b, i, k] - S[b, i])\n"
    "output Y[b: 3, i: 5, j: 37] = X[b, i, j] * S[b, i] + Q[b, i]\n",
    "workload matrices\n"
    "input X: f32[2, 6, 48]\n"
    "S[b: 2] = sum(i: 6, j: 48) X[b, i, j] * X[b, i, j]\n"
    "output Y[b: 2] = max(S[b], 1.0)\n",
    "workload normalized\n"
    "input X: f32[12, 50]\n"
    "S[i: 12] = sum(k: 50) X[i, k]\n"
    "(V, I)[i: 12] = argmin(k: 50) (X[i, k] - S[i], i32(index(k)))\n"
    "output Y[i: 12] = V[i] + f32(I[i])\n",
    "workload weighted_rows\n"
    "input Q: f32[2, 19, 20]\n"
    "input K: f32[2, 37, 20]\n"
    "input V: f32[2, 37, 24]\n"
    "Scores[b: 2, i: 19, j: 37] = sum(d: 20) Q[b, i, d] * K[b, j, d]\n"
    "Max[b: 2, i: 19] = max(j: 37) Scores[b, i, j]\n"
    "E[b: 2, i: 19, j: 37] = Scores[b, i, j] - Max[b, i]\n"
    "Sum[b: 2, i: 19] = sum(j: 37) E[b, i, j]\n"
    "Values[b: 2, i: 19, d: 24] = sum(j: 37) E[b, i, j] * V[b, j, d]\n"
    "output Y[b: 2, i: 19, d: 24] = Values[b, i, d] + Sum[b, i]\n",
    "workload column_sums\n"
    "input A: f32[50, 70]\n"
    "S[j: 70] = sum(i: 50) A[i, j]\n"
    "output C[j: 70] = max(S[j], 0.0)\n",
};

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_TUNER_SPACE_GPU_WORKLOADS_H_
