"""Writes testdata/nodes: nodes of operators that are newer than libonnx-testdata, with random inputs and the outputs of ONNX's
reference implementation, in the form of ONNX's own node tests. Needs the package onnx.

    python3 tests/client/network/onnx/make_nodes.py
"""

import pathlib
import shutil

import numpy
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(__file__).parent / "testdata/nodes"
RANDOM = numpy.random.default_rng(1)


def floats(*shape, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, shape).astype(numpy.float32)


def whole(*numbers):
    return numpy.array(numbers, numpy.int64)


def write(name, op, opset, inputs, **attributes):
    """`inputs`: arrays, or None for an input that is absent. Integers are constants of the model."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    given = [(one, array) for one, array in zip(names, inputs) if one]
    constants = [numpy_helper.from_array(array, one) for one, array in given if array.dtype == numpy.int64]
    fed = {one: array for one, array in given if array.dtype != numpy.int64}
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)], name,
        [helper.make_tensor_value_info(one, onnx.TensorProto.FLOAT, array.shape) for one, array in fed.items()],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    y, = ReferenceEvaluator(model).run(None, fed)
    data = FOLDER / name / "test_data_set_0"
    data.mkdir(parents=True)
    (FOLDER / name / "model.onnx").write_bytes(model.SerializeToString())
    for i, (one, array) in enumerate(fed.items()):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array, one).SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(y.astype(numpy.float32), "y").SerializeToString())


def col2im(name, columns, image, block, **attributes):
    write(f"col2im_{name}", "Col2Im", 18, [columns, whole(*image), whole(*block)], **attributes)


def deform_conv(name, opset, shape, kernel, result, groups=1, offset_groups=1, bias=False, mask=False, **attributes):
    """`shape`: of the image; `result`: the extents of the result."""
    taps = kernel[2] * kernel[3]
    offsets = floats(shape[0], offset_groups * taps * 2, *result, low=-1.5, high=1.5)
    inputs = [floats(*shape), floats(*kernel), offsets, floats(kernel[0]) if bias else None,
              floats(shape[0], offset_groups * taps, *result, low=0) if mask else None]
    while inputs[-1] is None:
        inputs.pop()
    write(f"deform_conv_{name}", "DeformConv", opset, inputs, group=groups, offset_group=offset_groups, **attributes)


shutil.rmtree(FOLDER, ignore_errors=True)
col2im("blocks", floats(1, 6, 4), (4, 6), (2, 3), strides=[2, 3])
col2im("overlaps", floats(2, 12, 20), (5, 6), (2, 2))
col2im("pads", floats(1, 18, 24), (5, 5), (3, 3), pads=[0, 1, 1, 2])
col2im("strides", floats(1, 4, 12), (7, 9), (2, 2), pads=[1, 0, 0, 1], strides=[2, 3])
col2im("dilations", floats(1, 4, 25), (6, 7), (2, 2), dilations=[1, 2])
col2im("volume", floats(1, 16, 12), (3, 4, 3), (2, 2, 2))
deform_conv("plain", 19, (1, 2, 5, 6), (3, 2, 2, 3), (4, 4))
deform_conv("pads", 19, (2, 1, 4, 4), (1, 1, 3, 3), (4, 4), pads=[1, 1, 1, 1], bias=True)
deform_conv("groups", 22, (1, 4, 6, 5), (6, 2, 3, 2), (4, 4), groups=2, offset_groups=2, mask=True)
deform_conv("strides", 22, (2, 4, 7, 9), (4, 4, 2, 2), (4, 3), offset_groups=4, strides=[2, 3], dilations=[1, 2], pads=[1, 0, 0, 1],
            bias=True, mask=True)
