"""Language models against ONNX Runtime: greedy decoding must give the same tokens, and their operators the same results.

tests/bench/networks/make_decoders.py writes the models, and `hone export --draft` compiles them. Another model has the operators one
beside the other. Exits with 77 if ONNX Runtime is not installed.
"""
import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench/networks"))

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    import make_decoders
except ImportError as missing:
    print(f"decoders: skipped: {missing}; they need the packages onnx and onnxruntime")
    sys.exit(77)

_PROMPT, _LENGTH, _TOKENS = 8, 24, 14


def exported(hone, path, folder, environment, options=("--draft",)):
    """A function from inputs by name to the outputs in order."""
    name = path.stem
    subprocess.run([hone, "export", path, *options, "-o", folder / name, "--name", name], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(folder / name))
    network = importlib.import_module(name).Network(threads=2)
    return lambda feed: [np.array(output) for output in network(*(feed[each.name] for each in network.inputs))]


def session(path):
    """The same with ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    opened = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in opened.get_inputs()]
    return lambda feed: opened.run(None, {name: feed[name] for name in names})


def private_folders(folder):
    """The variables of a private server of a test."""
    environment = dict(os.environ)
    for variable in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        environment[variable] = str(folder / variable)
        (folder / variable).mkdir(mode=0o700)
    return environment


def decode(run_prompt, run_token, size, prompt):
    """The tokens that follow a prompt, and the scores of each."""
    caches = [np.zeros((1, size.kv_heads, _LENGTH, size.head), np.float32) for _ in range(2 * size.layers)]
    tokens, chosen, all_scores = prompt, [], []
    run, before = run_prompt, 0
    while len(chosen) < _TOKENS:
        length = before + tokens.shape[1]
        feed = {"tokens": tokens, "place": np.array([before]), "last": np.array([length - 1], np.int32),
                "total": np.array([length], np.int32)}
        for number in range(size.layers):
            feed[f"past_k{number}"], feed[f"past_v{number}"] = caches[2 * number:2 * number + 2]
        scores, *caches = by_layer(run(feed))
        all_scores.append(scores.reshape(-1))
        chosen.append(int(np.argmax(scores)))
        tokens, run, before = np.array([[chosen[-1]]]), run_token, length
    return chosen, np.array(all_scores)


def by_layer(outputs):
    """The scores first, then the caches, whose outputs the models have before."""
    *caches, scores = outputs
    return [scores, *caches]


class Operators:
    """A model with many nodes that read its inputs x and y, [1, 6, 64], and constants."""

    def __init__(self):
        self.rng = np.random.default_rng(9)
        self.nodes, self.constants, self.outputs = [], [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, *shape):
        return self.constant(self.rng.uniform(-1, 1, shape).astype(np.float32))

    def bytes(self, *shape):
        return self.constant(self.rng.integers(0, 256, shape, np.uint8))

    def add(self, op, *inputs, outputs=1, domain="com.microsoft", **attributes):
        names = [f"{op}{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        self.outputs += [name for name in names if name]
        return names

    def model(self):
        row = self.floats(64)
        self.add("Gelu", "x")
        self.add("BiasGelu", "x", row)
        self.add("FastGelu", "x", row)
        self.add("QuickGelu", "x", alpha=1.5)
        self.add("FusedMatMul", "x", self.floats(48, 64), transB=1, alpha=0.5)
        self.add("FusedGemm", self.floats(6, 64), self.floats(64, 48), self.floats(48), activation="LeakyRelu", activation_alpha=0.1)
        self.add("SimplifiedLayerNormalization", "x", row, domain="", epsilon=0.01)
        self.nodes.append(helper.make_node("SkipLayerNormalization", ["x", "y", row, self.floats(64), self.floats(64)],
                                           ["skip", "", "", "sum"], domain="com.microsoft", epsilon=0.01))
        self.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", ["x", "y", row], ["simple"], domain="com.microsoft"))
        self.outputs += ["skip", "sum", "simple"]
        cos, sin = self.floats(9, 8), self.floats(9, 8)
        places = self.constant(np.array([[3, 1, 4, 1, 5, 8]]))
        for interleaved in (0, 1):
            self.add("RotaryEmbedding", "x", places, cos, sin, interleaved=interleaved)
            self.add("RotaryEmbedding", "x", self.constant(np.array([2])), cos, sin, interleaved=interleaved)
            self.add("RotaryEmbedding", "x", cos, sin, places, domain="", num_heads=4, interleaved=interleaved)
        self.add("MultiHeadAttention", "x", "y", "y", self.floats(192), self.constant(np.array([[1, 1, 0, 1, 1, 0]], np.int32)),
                 self.floats(1, 4, 6, 6), outputs=3, num_heads=4)
        self.add("MultiHeadAttention", "x", "y", "x", "", "", "", self.floats(1, 4, 3, 16), self.floats(1, 4, 3, 16), outputs=3,
                 num_heads=4, unidirectional=1)
        last, total = self.constant(np.array([5], np.int32)), self.constant(np.array([6], np.int32))
        caches = self.constant(np.zeros((1, 2, 9, 16), np.float32)), self.constant(np.zeros((1, 2, 9, 16), np.float32))
        halves = self.add("Split", "y", domain="", outputs=2, axis=2, num_outputs=2)
        for window in (-1, 3):
            self.add("GroupQueryAttention", "x", *halves, *caches, last, total, cos, sin, num_heads=4, kv_num_heads=2, do_rotary=1,
                     local_window_size=window, outputs=3)
            self.add("GroupQueryAttention", "x", "", "", "", "", last, total, cos, sin, num_heads=2, kv_num_heads=1, do_rotary=1,
                     rotary_interleaved=1, softcap=2.0, local_window_size=window, outputs=3)
        matrices = {"K": 64, "N": 5, "block_size": 16, "accuracy_level": 1}
        self.add("MatMulNBits", "x", self.bytes(5, 4, 8), self.floats(20), self.bytes(10), bits=4, **matrices)
        self.add("MatMulNBits", "x", self.bytes(5, 4, 8), self.floats(20), bits=4, **matrices)
        self.add("MatMulNBits", "x", self.bytes(5, 4, 16), self.floats(20), self.bytes(20), bits=8, **matrices)
        self.add("MatMulNBits", "x", self.bytes(5, 2, 16), self.floats(10), "", "", self.floats(5), bits=4, K=64, N=5, block_size=32,
                 accuracy_level=1)
        self.add("RMSNormalization", "x", row, domain="")
        self.add("Attention", "x", *halves, domain="", q_num_heads=4, kv_num_heads=2, is_causal=1, softcap=1.5)
        self.add("Attention", "x", "x", "y", self.floats(6, 6), domain="", q_num_heads=4, kv_num_heads=4, scale=0.3)
        self.add("Attention", "x", *halves, self.constant(self.rng.integers(0, 2, (1, 1, 6, 6)) + np.eye(6, dtype=int) > 0),
                 domain="", q_num_heads=4, kv_num_heads=2)
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 6, 64]) for name in "xy"]
        graph = helper.make_graph(self.nodes, "operators", inputs, [onnx.ValueInfoProto(name=name) for name in self.outputs],
                                  self.constants)
        opsets = [helper.make_opsetid("", make_decoders.OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check_operators(hone, folder, environment):
    """The names of outputs that differ."""
    path = folder / "operators.onnx"
    operators = Operators()
    onnx.save(operators.model(), path)
    feed = {name: np.random.default_rng(ord(name)).uniform(-1, 1, (1, 6, 64)).astype(np.float32) for name in "xy"}
    wrong = []
    for name, expected, own in zip(operators.outputs, session(path)(feed), exported(hone, path, folder, environment)(feed)):
        if expected.shape != own.shape or np.abs(expected - own).max() > 2e-5 * max(1, np.abs(expected).max()):
            wrong.append(name)
    print(f"decoders: {len(operators.outputs)} results of operators, {len(wrong)} differ: {' '.join(wrong)}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hone", required=True)
    hone = parser.parse_args().hone
    size = make_decoders.SIZES["tiny"]
    prompt = np.random.default_rng(5).integers(0, size.words, (1, _PROMPT))
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = private_folders(folder)
        failed |= bool(check_operators(hone, folder, environment))
        paths = make_decoders.write(folder / "models", size, make_decoders.FORMS, _PROMPT, _LENGTH)
        for form, files in paths.items():
            expected, scores = decode(*(session(path) for path in files), size, prompt)
            tokens, own_scores = decode(*(exported(hone, path, folder, environment) for path in files), size, prompt)
            difference = np.abs(scores - own_scores).max() / np.abs(scores).max()
            print(f"decoders: {form}: {tokens}, scores differ by {difference:.1e} of the largest one")
            if tokens != expected or difference > 1e-4:
                print(f"decoders: {form}: ONNX Runtime decodes {expected}")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
