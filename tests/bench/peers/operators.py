"""The names of the table's operators in TVM and in Hone."""

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

# These are memory-bound; the others are compute-bound.
MEMORY_BOUND = ("DEP:0", "SFM:2", "NRM:2", "TBG:1")
