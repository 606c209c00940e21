"""The operators and networks that rivals.py compares, as ONNX models, and their inputs.

An operator is a line in the words of `hone tune`. Half of them are held out, by a hash of the line, as in server/research/lab: nobody may
choose a constant or a rule of Hone by their times.
"""
import hashlib
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "networks"))

OPERATORS = [
    "matmul m=512 n=512 k=512", "matmul m=128 n=768 k=768", "matmul m=1000 n=100 k=300", "matmul m=63 n=1000 k=517",
    "dense m=128 n=3072 k=768", "dense m=1 n=4096 k=1024", "dense m=49 n=333 k=1280",
    "batch_matmul b=12 m=128 n=128 k=64", "batch_matmul b=8 m=197 n=64 k=197",
    "conv2d n=1 h=56 w=56 ci=64 co=64 k=3 s=1 p=1", "conv2d n=1 h=14 w=14 ci=256 co=256 k=1 s=1 p=0",
    "conv2d n=1 h=112 w=112 ci=3 co=64 k=7 s=2 p=3", "conv2d n=1 h=28 w=28 ci=128 co=128 k=3 s=2 p=1",
    "conv2d n=1 h=28 w=28 ci=27 co=45 k=3 s=1 p=1", "conv2d n=1 h=35 w=35 ci=51 co=67 k=1 s=1 p=0",
    "conv2d n=1 h=19 w=19 ci=77 co=101 k=5 s=1 p=2",
    "conv2d n=1 h=14 w=14 ci=240 co=240 k=3 s=1 p=1 groups=10", "conv2d n=1 h=28 w=28 ci=272 co=68 k=1 s=1 p=0 groups=4",
    "conv2d n=1 h=56 w=56 ci=128 co=128 k=3 s=1 p=1 groups=32",
    "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1", "depthwise_conv2d n=1 h=28 w=28 c=144 k=5 s=2 p=2",
    "depthwise_conv2d n=1 h=14 w=14 c=545 k=3 s=1 p=1",
    "softmax m=1024 n=1024", "softmax m=333 n=777", "layer_norm m=128 n=768", "layer_norm m=1000 n=511",
    "attention b=1 h=12 s=128 d=64", "attention b=1 h=4 s=333 d=40",
]
NETWORKS = ["mobilenet_v2", "resnet18", "efficientnet_b0", "shufflenet", "gpt_small"]
QUANTIZED = ["resnet18_int8", "mobilenet_v2_int8", "gpt_small_int8"]
SMALL = ["matmul m=64 n=48 k=32", "conv2d n=1 h=8 w=8 ci=8 co=16 k=3 s=1 p=1", "softmax m=16 n=64", "mobilenet_tiny"]


def is_operator(case):
    return "=" in case


def words_of(case):
    operator, *keys = case.split()
    return operator, {key: int(value) for key, value in (word.split("=") for word in keys)}


def is_held_out(case):
    return int(hashlib.sha256(case.encode()).hexdigest()[-1], 16) % 2 == 1


def file_name(case):
    """A C identifier, because it is also the name of Hone's export."""
    return "".join(letter if letter.isalnum() else "_" for letter in case)


def convolution(case):
    """n, h, w, ci, co, k, s, p and groups."""
    operator, keys = words_of(case)
    if operator == "depthwise_conv2d":
        keys = {**keys, "ci": keys["c"], "co": keys["c"], "groups": keys["c"]}
    return {"groups": 1, **keys}


def flops(case):
    """Of a sum of products; 0 for other operators."""
    operator, keys = words_of(case)
    if operator.endswith("conv2d"):
        keys = convolution(case)
        extent = [(keys[side] + 2 * keys["p"] - keys["k"]) // keys["s"] + 1 for side in "hw"]
        return 2 * keys["n"] * extent[0] * extent[1] * keys["co"] * keys["ci"] // keys["groups"] * keys["k"] ** 2
    if operator in ("matmul", "dense", "batch_matmul"):
        return 2 * keys.get("b", 1) * keys["m"] * keys["n"] * keys["k"]
    if operator == "attention":
        return 4 * keys["b"] * keys["h"] * keys["s"] ** 2 * keys["d"]
    return 0


def build_operator(case, channels_first):
    """An ONNX model. Images are [n, h, w, c], as between the layers of a network, or [n, c, h, w]: ONNX Runtime computes only the latter."""
    import make_models
    net = make_models.Network(file_name(case))
    operator, keys = words_of(case)
    float_type = make_models.TensorProto.FLOAT

    def tensor(name, *shape):
        return net.input(name, float_type, list(shape))

    if operator.endswith("conv2d"):
        at = convolution(case)
        shape = [at["n"], at["h"], at["w"], at["ci"]]
        x = tensor("X", *([shape[i] for i in (0, 3, 1, 2)] if channels_first else shape))
        if not channels_first:
            x = net.op("Transpose", x, perm=[0, 3, 1, 2])
        weights = net.floats(at["co"], at["ci"] // at["groups"], at["k"], at["k"])
        y = net.op("Conv", x, weights, kernel_shape=[at["k"]] * 2, strides=[at["s"]] * 2, pads=[at["p"]] * 4, group=at["groups"])
        if not channels_first:
            y = net.op("Transpose", y, perm=[0, 2, 3, 1])
    elif operator == "softmax":
        y = net.op("Softmax", tensor("X", keys["m"], keys["n"]), axis=-1)
    elif operator == "layer_norm":
        y = net.norm(tensor("X", keys["m"], keys["n"]), keys["n"])
    elif operator == "attention":
        shape = keys["b"], keys["h"], keys["s"], keys["d"]
        q, k, v = (tensor(name, *shape) for name in "QKV")
        scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
        y = net.op("MatMul", net.op("Softmax", net.op("Mul", scores, net.scalar(1 / math.sqrt(keys["d"]))), axis=-1), v)
    elif operator == "dense":
        y = net.op("MatMul", tensor("A", keys["m"], keys["k"]), net.floats(keys["k"], keys["n"]))
    else:
        batch = [keys["b"]] if operator == "batch_matmul" else []
        y = net.op("MatMul", tensor("A", *batch, keys["m"], keys["k"]), tensor("B", *batch, keys["k"], keys["n"]))
    return net.model(y)


class Folder:
    """Where everything of a comparison is."""

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()

    def model(self, case, channels_first=False):
        first = channels_first and is_operator(case) and "conv2d" in case
        return self.path / "models" / f"{file_name(case)}{'.channels_first' if first else ''}.onnx"

    def export(self, case):
        return self.path / "hone" / file_name(case)

    def expected(self, case):
        return self.path / "expected" / f"{file_name(case)}.npz"

    def inputs(self, case):
        """Seeded arrays by name, in the layout of model(case)."""
        import onnx
        from turns import some_inputs
        graph = onnx.load(self.model(case), load_external_data=False).graph
        constants = {tensor.name for tensor in graph.initializer}
        return some_inputs([(tensor.name, [dimension.dim_value or 1 for dimension in tensor.type.tensor_type.shape.dim],
                             onnx.helper.tensor_dtype_to_np_dtype(tensor.type.tensor_type.elem_type).name)
                            for tensor in graph.input if tensor.name not in constants])

    def results(self):
        return self.path / "results.jsonl"
