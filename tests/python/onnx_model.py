"""Small ONNX models, written without the package onnx: the fields of its protocol messages."""

import numpy


def _varint(number):
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def _field(number, value):
    """A number, or bytes or a text with its length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name, shape):
    """A f32 tensor whose dimensions are extents, names, or None."""
    dims = b"".join(_field(1, b"" if one is None else _field(2 if isinstance(one, str) else 1, one)) for one in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, 1) + _field(2, dims)))


def _weights(name, array):
    return b"".join(_field(1, extent) for extent in array.shape) + _field(2, 1) + _field(8, name) + _field(9, array.tobytes())


def _node(op, inputs, output):
    return b"".join(_field(1, one) for one in inputs) + _field(2, output) + _field(3, output) + _field(4, op)


def perceptron(path, inputs=(("x", ("N", 16)),), output=("N", 8)):
    """y = relu(x W + b), where x is the sum of the inputs. Returns the same in NumPy."""
    random = numpy.random.default_rng(5)
    weight = random.standard_normal((16, 8)).astype("float32")
    bias = random.standard_normal(8).astype("float32")
    names = [name for name, _ in inputs]
    nodes = [_node("Add", names[:2], "sum")] if len(names) > 1 else []
    nodes += [_node("MatMul", ["sum" if nodes else names[0], "W"], "p"), _node("Add", ["p", "b"], "q"), _node("Relu", ["q"], "y")]
    graph = b"".join(_field(1, one) for one in nodes) + _field(2, "g")
    graph += _field(5, _weights("W", weight)) + _field(5, _weights("b", bias))
    graph += b"".join(_field(11, _value(name, shape)) for name, shape in inputs) + _field(12, _value("y", output))
    path.write_bytes(_field(1, 8) + _field(7, graph) + _field(8, _field(2, 17)))
    return lambda x: numpy.maximum(x @ weight + bias, 0)
