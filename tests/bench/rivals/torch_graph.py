"""ONNX models as functions of PyTorch, for torch.compile: float networks of static shape."""
import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional


def ints(tensor):
    return [int(each) for each in tensor.flatten().tolist()]


def padded(x, attributes, fill=0.0):
    """The input with the padding that PyTorch cannot express, and the padding that it can."""
    rank = x.dim() - 2
    if attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        extents = attributes["kernel_shape"]
        strides = attributes.get("strides", [1] * rank)
        total = [max((-(-size // s) - 1) * s + k - size, 0) for size, k, s in zip(x.shape[2:], extents, strides)]
        lower = attributes["auto_pad"] == b"SAME_LOWER"
        begins = [(all_ + lower) // 2 for all_ in total]
        ends = [all_ - begin for all_, begin in zip(total, begins)]
    else:
        pads = attributes.get("pads", [0] * 2 * rank)
        begins, ends = pads[:rank], pads[rank:]
    if begins == ends:
        return x, begins
    sides = [side for begin, end in reversed(list(zip(begins, ends))) for side in (begin, end)]
    return functional.pad(x, sides, value=fill), [0] * rank


def conv(attributes, x, weights, bias=None):
    attributes = {"kernel_shape": list(weights.shape[2:]), **attributes}
    x, padding = padded(x, attributes)
    return functional.conv2d(x, weights, bias, attributes.get("strides", 1), padding, attributes.get("dilations", 1),
                             attributes.get("group", 1))


def max_pool(attributes, x):
    x, padding = padded(x, attributes, float("-inf"))
    return functional.max_pool2d(x, attributes["kernel_shape"], attributes.get("strides", 1), padding)


def average_pool(attributes, x):
    x, padding = padded(x, attributes)
    return functional.avg_pool2d(x, attributes["kernel_shape"], attributes.get("strides", 1), padding,
                                 count_include_pad=bool(attributes.get("count_include_pad", 0)))


def gemm(attributes, a, b, c=None):
    a = a.T if attributes.get("transA") else a
    b = b.T if attributes.get("transB") else b
    product = attributes.get("alpha", 1.0) * (a @ b) if attributes.get("alpha", 1.0) != 1 else a @ b
    return product if c is None else product + (c if attributes.get("beta", 1.0) == 1 else attributes["beta"] * c)


def reshape(attributes, x, shape):
    del attributes
    return x.reshape([x.shape[d] if extent == 0 else extent for d, extent in enumerate(shape)])


def layer_norm(attributes, x, scale, shift=None):
    return functional.layer_norm(x, scale.shape, scale, shift, attributes.get("epsilon", 1e-5))


OPERATORS = {
    "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y, "Div": lambda a, x, y: x / y,
    "Sum": lambda a, *xs: sum(xs[1:], xs[0]), "Relu": lambda a, x: torch.relu(x), "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Erf": lambda a, x: torch.erf(x), "Tanh": lambda a, x: torch.tanh(x), "MatMul": lambda a, x, y: x @ y, "Gemm": gemm, "Conv": conv,
    "Clip": lambda a, x, low=None, high=None: torch.clamp(x, low, high), "MaxPool": max_pool, "AveragePool": average_pool,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True), "Softmax": lambda a, x: torch.softmax(x, a.get("axis", -1)),
    "Flatten": lambda a, x: torch.flatten(x, a.get("axis", 1)) if a.get("axis", 1) else x.reshape(1, -1), "Reshape": reshape,
    "Transpose": lambda a, x: x.permute(a["perm"]), "Concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "Gather": lambda a, x, index: functional.embedding(index, x) if a.get("axis", 0) == 0 else torch.index_select(x, a["axis"], index),
    "LayerNormalization": layer_norm, "Dropout": lambda a, x, *rest: x, "Identity": lambda a, x: x,
    "BatchNormalization": lambda a, x, scale, shift, mean, variance: functional.batch_norm(x, mean, variance, scale, shift, False, 0.0,
                                                                                            a.get("epsilon", 1e-5)),
    "Constant": lambda a: torch.from_numpy(numpy_helper.to_array(a["value"]).copy()),
    "ConstantOfShape": lambda a, shape: torch.from_numpy(np.full(shape, numpy_helper.to_array(a["value"]).flat[0])),
}
# Inputs that PyTorch takes as numbers.
NUMBERS = {"Reshape": [1], "Clip": [1, 2], "ConstantOfShape": [0]}


def module_of(path):
    """KeyError: the model has an operator that is not in the table. The module takes the inputs of the graph in their order."""
    graph = onnx.load(path).graph
    root, traced, values, constants = torch.nn.Module(), torch.fx.Graph(), {}, {}
    for tensor in graph.initializer:
        constants[tensor.name] = torch.from_numpy(numpy_helper.to_array(tensor).copy())
    for tensor in graph.input:
        if tensor.name not in constants:
            values[tensor.name] = traced.placeholder(f"input_{len(values)}")

    def argument(name):
        if name == "":
            return None
        if name not in values:
            target = f"constant_{len(values)}"
            tensor = constants[name]
            setattr(root, target, torch.nn.Parameter(tensor, requires_grad=False))
            values[name] = traced.get_attr(target)
        return values[name]

    for node in graph.node:
        function = OPERATORS[node.op_type]
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        numbers = NUMBERS.get(node.op_type, [])

        def number(name, op=node.op_type):
            if name == "":
                return None
            found = constants[name]
            return float(found) if op == "Clip" else ints(found)

        if all(name in constants or name == "" for name in node.input):
            given = [number(name) if i in numbers else constants.get(name) for i, name in enumerate(node.input)]
            constants[node.output[0]] = function(attributes, *given)
            continue
        given = [number(name) if i in numbers else argument(name) for i, name in enumerate(node.input)]
        values[node.output[0]] = traced.call_function(function, (attributes, *given))
    traced.output(tuple(argument(tensor.name) for tensor in graph.output))
    return torch.fx.GraphModule(root, traced).eval()
