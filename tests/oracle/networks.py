"""Networks that are tuned for a few seconds, exported and run, against ONNX Runtime.

The models are small and have seeded random weights: a RegNet, a ShuffleNet, a detector whose boxes are selected at the end, a model of
Llama's architecture, and an LSTM of 150 steps. Exits with 77 if ONNX Runtime is not installed.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import decoders  # exits if a package is missing
import make_decoders
import make_models
import numpy as np
import onnx

_SECONDS = 4  # of tuning, for each network
_STEPS, _WIDTH, _HIDDEN = 150, 16, 24
_MOST = 2e-4  # the largest difference, as a part of the largest element


def regnet(net):
    """Blocks with convolutions in groups and squeeze-and-excitation."""
    x, channels = net.relu(net.conv(net.image(32, 32), 3, 16, 3, 2)), 16
    for wide, stride in ((24, 2), (24, 1), (48, 2)):
        y = net.relu(net.conv(x, channels, wide, 1))
        y = net.relu(net.conv(y, wide, wide, 3, stride, groups=wide // 8))
        gate = net.relu(net.conv(net.op("GlobalAveragePool", y), wide, wide // 4, 1))
        y = net.op("Mul", y, net.op("Sigmoid", net.conv(gate, wide // 4, wide, 1)))
        skipped = x if stride == 1 else net.conv(x, channels, wide, 1, stride)
        x, channels = net.relu(net.op("Add", skipped, net.conv(y, wide, wide, 1))), wide
    return net.classify(x, channels, 10)


def shufflenet(net):
    """Halves of the channels, one of which goes through a depthwise convolution, and a shuffle."""
    x, channels = net.relu(net.conv(net.image(32, 32), 3, 32, 3, 2)), 32
    half = channels // 2
    for _ in range(2):
        left = net.op("Slice", x, net.ints(0), net.ints(half), net.ints(1))
        right = net.op("Slice", x, net.ints(half), net.ints(channels), net.ints(1))
        right = net.relu(net.conv(right, half, half, 1))
        right = net.relu(net.conv(net.conv(right, half, half, 3, groups=half), half, half, 1))
        x = make_models.shuffle(net, net.op("Concat", left, right, axis=1), channels, 2, 16)
    return net.classify(x, channels, 10)


def detector(net):
    """Scores and boxes at each place of an image, and the boxes that remain."""
    x = net.relu(net.conv(net.image(32, 32), 3, 16, 3, 2))
    x = net.relu(net.conv(x, 16, 24, 3, 2))
    scores = net.op("Sigmoid", net.op("Reshape", net.conv(x, 24, 3, 1), net.ints(1, 3, 64)))
    boxes = net.op("Transpose", net.op("Reshape", net.conv(x, 24, 4, 1), net.ints(1, 4, 64)), perm=[0, 2, 1])
    boxes = net.op("Mul", net.op("Sigmoid", boxes), net.scalar(32))
    places = net.op("NonMaxSuppression", boxes, scores, net.ints(5), net.constant(np.float32([0.6])),
                    net.constant(np.float32([0.4])), center_point_box=1)
    column = net.op("Squeeze", net.op("Gather", places, net.ints(2), axis=1), net.ints(1))
    return net.op("Gather", net.op("Squeeze", boxes, net.ints(0)), column, axis=0)


def lstm(net):
    x = net.input("sequence", onnx.TensorProto.FLOAT, [_STEPS, 1, _WIDTH])
    return net.op("LSTM", x, net.floats(1, 4 * _HIDDEN, _WIDTH, deviation=0.3), net.floats(1, 4 * _HIDDEN, _HIDDEN, deviation=0.3),
                  net.floats(1, 8 * _HIDDEN), hidden_size=_HIDDEN)


def write_models(folder):
    """The paths of the models, whose ends all run on the device but that of the detector."""
    paths = []
    for build in (regnet, shufflenet, detector, lstm):
        net = make_models.Network(build.__name__)
        paths.append(folder / f"{net.name}.onnx")
        onnx.save(net.model(build(net)), paths[-1])
    return paths + [make_decoders.write(folder / "llama", make_decoders.SIZES["tiny"], ["standard"], 8, 16)["standard"][0]]


def inputs_of(path):
    rng = np.random.default_rng(3)
    feed = {}
    for value in onnx.load(path).graph.input:
        tensor = value.type.tensor_type
        shape = [dimension.dim_value for dimension in tensor.shape.dim]
        is_float = tensor.elem_type == onnx.TensorProto.FLOAT
        feed[value.name] = rng.standard_normal(shape).astype(np.float32) if is_float else rng.integers(0, 8, shape)
    return feed


def run_by_command(hone, path, folder, environment, feed, options):
    """The outputs of hone run."""
    words = [hone, "run", path, *options]
    for name, array in feed.items():
        np.save(folder / f"{path.stem}-{name}.npy", array)
        words += ["--in", folder / f"{path.stem}-{name}.npy"]
    outputs = [folder / f"{path.stem}-{value.name}-out.npy" for value in onnx.load(path).graph.output]
    for output in outputs:
        words += ["--out", output]
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    return [np.load(output) for output in outputs]


def run_without_runtime(folder, feed):
    """The outputs of an exported network whose end the package onnx runs, since ONNX Runtime cannot be imported."""
    onnx.checker.check_model(str(folder / f"{folder.name}.tail.onnx"), full_check=True)
    np.savez(folder / "feed.npz", **feed)
    program = (f"import sys, numpy, {folder.name}; sys.modules['onnxruntime'] = None; feed = numpy.load('feed.npz'); "
               f"network = {folder.name}.Network(); outputs = network(*(feed[each.name] for each in network.inputs)); "
               "numpy.savez('outputs.npz', *outputs)")
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    with np.load(folder / "outputs.npz") as outputs:
        return [outputs[name] for name in outputs.files]


def difference(expected, own):
    """The largest difference as a part of the largest element; infinite if the shapes differ."""
    if expected.shape != own.shape:
        return np.inf
    if expected.size == 0:
        return 0.0
    return float(np.abs(expected - own).max() / max(1e-6, np.abs(expected).max()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hone", required=True)
    hone = parser.parse_args().hone
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = decoders.private_folders(folder)
        for path in write_models(folder):
            feed = inputs_of(path)
            expected = decoders.session(path)(feed)
            tuned = subprocess.run([hone, "tune", path, "--time", f"{_SECONDS}s"], env=environment, check=False, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if tuned.returncode not in (0, 1):
                sys.exit(f"networks: hone tune {path} fails: {tuned.stderr}")
            # On a very busy machine, nothing may be measured in so little time.
            options = () if tuned.returncode == 0 else ("--draft",)
            own = {"exported": decoders.exported(hone, path, folder, environment, options)(feed)}
            if path.stem == "detector":
                own["run"] = run_by_command(hone, path, folder, environment, feed, options)
                own["exported, with the reference of onnx"] = run_without_runtime(folder / path.stem, feed)
            for way, outputs in own.items():
                worst = max(difference(one, other) for one, other in zip(expected, outputs, strict=True))
                print(f"networks: {path.stem}, {way}: {[one.shape for one in expected]}, differs by {worst:.1e}")
                failed |= not worst <= _MOST
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
