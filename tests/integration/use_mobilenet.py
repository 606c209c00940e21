"""Runs an exported network, which is named mobilenet, and writes its output: use_mobilenet.py FOLDER INPUT OUTPUT MODEL.

Also compares it with ONNX Runtime, if that is installed.
"""

import sys

import numpy

folder, source, target, model = sys.argv[1:]
sys.path.insert(0, folder)
import mobilenet  # noqa: E402

network = mobilenet.Network(threads=2)
image = numpy.fromfile(source, "float32").reshape(network.inputs[0].shape)
scores, = network(image)
scores.tofile(target)
try:
    import onnxruntime
except ImportError:
    sys.exit()
expected, = onnxruntime.InferenceSession(model).run(None, {network.inputs[0].name: image})
assert numpy.max(numpy.abs(scores - expected)) <= 1e-4 * numpy.max(numpy.abs(expected)), (scores, expected)
