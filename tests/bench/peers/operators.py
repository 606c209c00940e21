"""The operators of the comparison, in the names of TVM's list of workloads and as Hone's operators."""

# The first table of results/metaschedule.md, with 128 trials.
OPERATORS = {
    "GMM:0": "batch_matmul b=1 m=128 n=128 k=128",
    "GMM:2": "batch_matmul b=1 m=512 n=512 k=512",
    "GMM:3": "batch_matmul b=1 m=1024 n=1024 k=1024",
    "C2D:0": "conv2d n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3",
    "C2D:1": "conv2d n=1 h=56 w=56 ci=64 co=64 k=1 s=1 p=0",
    "C2D:2": "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
    "C2D:3": "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
    "DEP:0": "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1",
    "GRP:2": "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1 groups=4",
    "C1D:2": "conv1d n=1 l=64 ci=256 co=256 k=5 s=1 p=2",
    "SFM:2": "softmax m=1024 n=1024",
    "NRM:2": "norm b=1 m=1024 n=1024",
    "TBG:1": "transpose_batch_matmul b=1 s=128 h=16 d=64",
}

# With these, there are three shapes of each family.
MORE_OPERATORS = {
    "C1D:0": "conv1d n=1 l=256 ci=64 co=128 k=3 s=2 p=1",
    "C1D:3": "conv1d n=1 l=32 ci=512 co=512 k=3 s=1 p=1",
    "C3D:1": "conv3d n=1 d=16 h=56 w=56 ci=64 co=64 k=1 s=1 p=0",
    "C3D:2": "conv3d n=1 d=16 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
    "C3D:3": "conv3d n=1 d=16 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
    "DIL:0": "conv2d n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3 dil=2",
    "DIL:2": "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1 dil=2",
    "DIL:3": "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1 dil=2",
    "GRP:0": "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1 groups=4",
    "GRP:3": "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1 groups=4",
    "DEP:1": "depthwise_conv2d n=1 h=112 w=112 c=64 k=3 s=2 p=1",
    "DEP:3": "depthwise_conv2d n=1 h=7 w=7 c=1024 k=3 s=1 p=1",
    "T2D:0": "conv2d_transpose n=1 h=4 w=4 ci=512 co=256 k=4 s=2 p=1",
    "T2D:1": "conv2d_transpose n=1 h=8 w=8 ci=256 co=128 k=4 s=2 p=1",
    "T2D:2": "conv2d_transpose n=1 h=16 w=16 ci=128 co=64 k=4 s=2 p=1",
    "CAP:0": "capsule_conv2d n=1 h=16 w=16 ci=32 co=32 k=3 s=2 p=1",
    "CAP:1": "capsule_conv2d n=1 h=8 w=8 ci=32 co=32 k=3 s=1 p=1",
    "CAP:2": "capsule_conv2d n=1 h=16 w=16 ci=8 co=16 k=3 s=2 p=1",
    "NRM:1": "norm b=1 m=512 n=512",
    "NRM:3": "norm b=1 m=4096 n=1024",
    "SFM:1": "softmax m=512 n=512",
    "SFM:3": "softmax m=2048 n=2048",
    "CBR:1": "conv2d_bn_relu n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1",
    "CBR:2": "conv2d_bn_relu n=1 h=28 w=28 ci=128 co=256 k=1 s=2 p=0",
    "CBR:3": "conv2d_bn_relu n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
    "TBG:0": "transpose_batch_matmul b=1 s=128 h=12 d=64",
    "TBG:3": "transpose_batch_matmul b=1 s=128 h=12 d=128",
    "C2D_WIN_NHWC:0": "winograd_conv2d n=1 h=14 w=14 ci=128 co=128",
}

# These are memory-bound; the others are compute-bound.
MEMORY_BOUND = ("DEP", "SFM", "NRM", "TBG")


def operator_of(spec):
    return {**OPERATORS, **MORE_OPERATORS}[spec]


def is_memory_bound(spec):
    return spec.split(":")[0] in MEMORY_BOUND
