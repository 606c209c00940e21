"""Tunes, looks up, exports and runs with a wheel that is installed in a folder, and fails if the package is another one or if
there is a compiler: use_wheel.py MODEL.onnx FOLDER"""
import os
import shutil
import sys

import hone
import numpy

WORKLOAD = "matmul m=64 n=64 k=64"

assert hone.__file__.startswith(sys.argv[2]), f"hone is {hone.__file__}"
for program in ("cc", "gcc", "ld", "clang", "hone-server"):
    found = shutil.which(program)
    assert found is None or found.startswith(sys.argv[2]), f"{found} is on the PATH, {os.environ['PATH']}"
kernel = hone.tune(WORKLOAD, trials=4)
A = numpy.random.default_rng(0).standard_normal((64, 64)).astype("float32")
assert numpy.allclose(kernel(A, A), A @ A, rtol=1e-4, atol=1e-4)
print("tuned:", kernel)
for _ in range(2):
    if kernel.best.confirmed:
        break
    kernel = hone.tune(WORKLOAD, trials=4)
if kernel.best.confirmed:
    print("known:", hone.best(WORKLOAD))
    assert numpy.allclose(hone.load(WORKLOAD)(A, A), A @ A, rtol=1e-4, atol=1e-4)
    files = hone.export(WORKLOAD, "kernel")
    assert {"matmul.so", "matmul.o", "matmul.h"} <= {one.name for one in files}
    print("exported:", len(files), "files")
else:
    print("not looked up and exported: other work on this machine disturbed every confirmation")
network = hone.load(sys.argv[1])
image = numpy.ones(network.inputs[0].shape, "float32")
scores = network(image)
assert scores.shape == network.outputs[0].shape and numpy.isfinite(scores).all()
print("run:", network)
