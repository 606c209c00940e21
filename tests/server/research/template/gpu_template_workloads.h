#ifndef HONE_TESTS_SERVER_RESEARCH_TEMPLATE_GPU_TEMPLATE_WORKLOADS_H_
#define HONE_TESTS_SERVER_RESEARCH_TEMPLATE_GPU_TEMPLATE_WORKLOADS_H_

#include "tests/server/tuner/space/workloads.h"

namespace hone::space {

// Workloads with templates for GPUs, for MakeWorkload: odd and prime sizes, and sizes of one.
inline constexpr const char* kSmallGpuTemplates[] = {
    "matmul m=1 n=1 k=1",
    "matmul m=17 n=13 k=7",
    "matmul m=32 n=64 k=32",
    "dense m=12 n=37 k=8",
    "dense_relu m=36 n=48 k=10",
    kTransposedWeights,
    kTwoStagesAfterSum,
    "quantized_matmul m=16 n=24 k=20",
    "batch_matmul b=3 m=10 n=36 k=11",
    "transpose_batch_matmul b=2 s=10 h=3 d=16",
    "conv2d n=2 h=5 w=9 ci=3 co=37 k=3 s=1 p=1",
    "conv2d n=1 h=9 w=9 ci=4 co=32 k=3 s=2 p=1",
    "conv2d n=1 h=8 w=8 ci=8 co=16 k=1 s=1 p=0",
    "conv2d n=1 h=8 w=8 ci=6 co=24 k=3 s=1 p=0",
    "conv2d_bn_relu n=1 h=7 w=7 ci=5 co=18 k=3 s=1 p=1",
    "conv2d_nchw n=1 h=8 w=9 ci=6 co=10 k=3 s=1 p=1",
    "conv2d_nchw n=2 h=9 w=12 ci=3 co=17 k=3 s=2 p=1",
};

}  // namespace hone::space

#endif  // HONE_TESTS_SERVER_RESEARCH_TEMPLATE_GPU_TEMPLATE_WORKLOADS_H_
