"""Compares an exported network with sizes, which is named net, with ONNX Runtime: use_sizes.py FOLDER MODEL MOST.

Runs every value from 1 to MOST of the first dimension. Prints "skipped" without NumPy and ONNX Runtime.
"""

import sys

try:
    import numpy
    import onnxruntime
except ImportError:
    print("skipped")
    sys.exit()

folder, model, most = sys.argv[1:]
sys.path.insert(0, folder)
import net  # noqa: E402

network = net.Network(threads=1)
session = onnxruntime.InferenceSession(model)
random = numpy.random.default_rng(1)
for value in range(1, int(most) + 1):
    x = random.random((value, *network.inputs[0].shape[1:]), dtype="float32") - 0.5
    for made, expected in zip(network(x), session.run(None, {network.inputs[0].name: x})):
        assert made.shape == expected.shape, (value, made.shape, expected.shape)
        assert numpy.max(numpy.abs(made - expected)) <= 1e-5 * max(1, numpy.max(numpy.abs(expected))), (value, made, expected)
print("right")
