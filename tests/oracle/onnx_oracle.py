"""The second oracle: ONNX Runtime, for operators that ONNX also has, in f32 (and u8 x i8), and for
the drawn nodes of onnx_text.py.

Optional: if the packages are not installed, AVAILABLE is false and run() returns None.
"""
import numpy as np

import dtypes
from operators import parse_words

try:
    import onnx
    import onnxruntime
    from onnx import helper

    AVAILABLE = True
    onnxruntime.set_default_logger_severity(3)
except ImportError:
    AVAILABLE = False

# It confirms definitions, not roundings.
_SHARE = 1e-5  # of the largest element
_GELU_ROUNDINGS = 4.0

_OPSET, _IR_VERSION = 20, 10


def _session_options():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options


def run_node(op, arrays, outputs=1, **attributes):
    """Runs a single node."""
    names = [f"i{n}" for n in range(len(arrays))]
    results = [f"o{n}" for n in range(outputs)]
    inputs = [helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, arrays)]
    graph = helper.make_graph([helper.make_node(op, names, results, **attributes)], "case", inputs,
                              [onnx.ValueInfoProto(name=name) for name in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR_VERSION
    session = onnxruntime.InferenceSession(model.SerializeToString(), _session_options())
    return session.run(None, dict(zip(names, arrays)))


def _each(arguments, key, dimensions, default=None):
    if len(dimensions) == 1:
        return [arguments.get(key, default)]
    return [arguments.get(key + d, arguments.get(key, default)) for d in dimensions]


def _window(arguments, dimensions):
    pads = _each(arguments, "p", dimensions, 0)
    return {"kernel_shape": _each(arguments, "k", dimensions),
            "strides": _each(arguments, "s", dimensions, 1), "pads": pads + pads}


def _first(array):
    """Moves the channels from last to first."""
    return np.ascontiguousarray(np.moveaxis(array, -1, 1))


def _last(array):
    return np.moveaxis(array, 1, -1)


def _conv(op, dimensions):
    def run(arguments, x, weight, *rest):
        weight = np.ascontiguousarray(np.moveaxis(weight, (-1, -2), (0, 1)))
        options = {**_window(arguments, dimensions), "group": arguments.get("groups", 1),
                   "dilations": [arguments.get("dil", 1)] * len(dimensions)}
        return [_last(run_node(op, [_first(x), weight], **options)[0])]

    return run


def _conv_nchw(arguments, x, weight):
    return run_node("Conv", [x, weight], **_window(arguments, "hw"),
                    group=arguments.get("groups", 1), dilations=[arguments.get("dil", 1)] * 2)


def _depthwise(arguments, x, weight):
    weight = np.ascontiguousarray(np.moveaxis(weight, -1, 0)[:, None])
    return [_last(run_node("Conv", [_first(x), weight], **_window(arguments, "hw"),
                           group=arguments["c"], dilations=[arguments.get("dil", 1)] * 2)[0])]


def _conv_transpose(arguments, x, weight):
    weight = np.ascontiguousarray(weight.transpose(2, 3, 0, 1))
    return [_last(run_node("ConvTranspose", [_first(x), weight], **_window(arguments, "hw"))[0])]


def _pool(op, **more):
    def run(arguments, x):
        options = dict(more)
        if op == "AveragePool":
            options["count_include_pad"] = arguments.get("pad_counts", 1)
        return [_last(run_node(op, [_first(x)], **_window(arguments, "hw"), **options)[0])]

    return run


def _reduce(op):
    def run(arguments, x):
        return run_node(op, [x, np.array([arguments.get("axis", 1)])], keepdims=0)

    return run


def _argmax(arguments, x):
    axis = arguments.get("axis", 1)
    best = run_node("ReduceMax", [x, np.array([axis])], keepdims=0)[0]
    return [best, run_node("ArgMax", [x], axis=axis, keepdims=0)[0].astype(np.int32)]


def _simple(op, **attributes):
    return lambda arguments, *arrays: run_node(op, list(arrays), **attributes)


def _transpose_batch_matmul(arguments, a, b):
    a = np.ascontiguousarray(a.transpose(0, 2, 1, 3))
    b = np.ascontiguousarray(b.transpose(0, 2, 3, 1))
    return run_node("MatMul", [a, b])


_NODES = {
    "matmul": _simple("MatMul"),
    "batch_matmul": _simple("MatMul"),
    "transpose_batch_matmul": _transpose_batch_matmul,
    "dense": _simple("Gemm"),
    "quantized_matmul": _simple("MatMulInteger"),
    "quantized_dense": _simple("MatMulInteger"),
    "conv1d": _conv("Conv", "l"),
    "conv2d": _conv("Conv", "hw"),
    "conv3d": _conv("Conv", "dhw"),
    "quantized_conv2d": _conv("ConvInteger", "hw"),
    "conv2d_nchw": _conv_nchw,
    "depthwise_conv2d": _depthwise,
    "conv2d_transpose": _conv_transpose,
    "max_pool2d": _pool("MaxPool"),
    "avg_pool2d": _pool("AveragePool"),
    "global_avg_pool": lambda arguments, x: [
        run_node("GlobalAveragePool", [_first(x)])[0][:, :, 0, 0]],
    "softmax": _simple("Softmax", axis=-1),
    "layer_norm": _simple("LayerNormalization", axis=-1, epsilon=1e-5),
    "reduce_sum": _reduce("ReduceSum"),
    "reduce_max": _reduce("ReduceMax"),
    "reduce_mean": _reduce("ReduceMean"),
    "argmax": _argmax,
    "add": _simple("Add"),
    "bias_add": _simple("Add"),
    "multiply": _simple("Mul"),
    "relu": _simple("Relu"),
    "sigmoid": _simple("Sigmoid"),
    "tanh": _simple("Tanh"),
    "gelu": _simple("Gelu"),
    "transpose": _simple("Transpose", perm=[1, 0]),
    "batch_transpose": _simple("Transpose", perm=[0, 2, 1]),
}


def allowance(text, arrays, values):
    """The error allowed in an output that should have these values."""
    name = parse_words(text)[0]
    if name == "sigmoid":
        return _SHARE  # Its error is absolute: it returns 0 for sigmoid(-26), which is 5e-12.
    share = _SHARE * _magnitudes(values).max(initial=0.0)
    if name == "gelu":
        (x,) = arrays
        return share + _GELU_ROUNDINGS * 2.0**-24 * _magnitudes(x)  # Its 1 + erf cancels.
    return share


def _magnitudes(values):
    return np.where(np.isfinite(values), np.abs(values), 0.0)


def run_case(node, arrays):
    """The outputs of a node that only moves elements (onnx_text.py), or None."""
    if not AVAILABLE:
        return None
    constants = [dtypes.to_memory(dtype, value) for dtype, value in node["constants"]]
    if node["op"] == "Where":
        arrays = [arrays[0].astype(bool), *arrays[1:]]
    return run_node(node["op"], [*arrays, *constants], **node["attributes"])


def run(text, arrays, filling):
    """Returns the outputs, or None if ONNX Runtime lacks the operator or is not accurate enough."""
    name, arguments, types = parse_words(text)
    if filling in ("special", "denormal"):
        return None  # The position of NaN changes its results, and it may flush denormals.
    if filling == "offset":
        return None  # Its layer norm loses digits to an offset.
    if name.startswith("quantized") and filling != "whole":
        return None  # Without VNNI, its u8 x i8 products saturate at 16 bits.
    if not AVAILABLE or name not in _NODES or types.get("dtype", "f32") != "f32":
        return None
    if types.get("acc", "f32") != "f32":
        return None
    pads = [value for key, value in arguments.items() if key in ("p", "ph", "pw", "pd")]
    if any(pads) and arguments.get("k") and max(pads) >= min(_each(arguments, "k", "hw")):
        return None  # ONNX Runtime requires padding smaller than the kernel.
    return _NODES[name](arguments, *arrays)
