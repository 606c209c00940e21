"""Runs an exported network, which is named residual: use_network.py FOLDER INPUT OUTPUT OUTPUT."""

import array
import os
import sys
import threading

folder = sys.argv[1]
sys.path.insert(0, folder)
import residual  # noqa: E402


def read(path):
    with open(path, "rb") as file:
        return file.read()


network = residual.Network(threads=2)
expected = [read(path) for path in sys.argv[3:5]]
x = array.array("f", read(sys.argv[2]))
if residual.numpy is not None:
    x = residual.numpy.array(x, dtype="float32").reshape(network.inputs[0].shape)
assert repr(network.inputs[0]) == "x: f32[4, 8]", network.inputs
assert [tensor.shape for tensor in network.outputs] == [(4, 8), (4, 16)], network.outputs


def check(instance):
    outputs = instance(x)
    assert [output.tobytes() for output in outputs] == expected
    assert outputs[0].shape == (4, 8)


check(network)
siblings = [network.sibling() for _ in range(3)]
failures = []


def check_often(instance):
    try:
        for _ in range(20):
            check(instance)
    except Exception as failure:  # reported by the main thread
        failures.append(failure)


threads = [threading.Thread(target=check_often, args=[sibling]) for sibling in siblings]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures

if residual.numpy is not None:
    assert [output.tobytes() for output in network(x.tolist())] == expected

times = network.profile(x)
assert len(times) == len(network.steps) and all(ns >= 0 for _, _, ns in times), times
for wrong in [[], [x, x], [x[:2]]]:
    try:
        network(*wrong)
    except residual.Error:
        continue
    raise AssertionError("wrong inputs were accepted")

network.verify()
weights = os.path.join(folder, "residual.weights")
with open(weights, "r+b") as file:
    file.truncate(len(read(weights)) - 64)
try:
    residual.Network()
except residual.Error as error:
    assert "is damaged" in str(error), error
else:
    raise AssertionError("a truncated file was opened")
print("right")
