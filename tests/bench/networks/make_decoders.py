"""Writes small language models of Llama's architecture as ONNX files, with seeded random weights.

  make_decoders.py FOLDER [--size tiny|small] [--prompt TOKENS] [--length TOKENS] [FORM...]

A model has RMS norms, rotary embeddings, heads of queries that share keys and values, and SwiGLU. Each form is written twice, with equal
weights: FORM_prompt.onnx reads a prompt, and FORM_token.onnx one token after others. Both return the scores of the next token and the caches
of keys and values, which have a fixed length:

  standard         operators of ONNX, opset 23
  microsoft        operators of ONNX Runtime's domain com.microsoft
  microsoft_4bit   the same with weights of 4 bits in blocks of 32, and of 8 bits in the last layer

Needs onnx and numpy.
"""
import argparse
import dataclasses
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 23
BLOCK = 32
EPSILON = 1e-5


@dataclasses.dataclass
class Size:
    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    words: int

    @property
    def head(self):
        return self.width // self.heads

    @property
    def kv_width(self):
        return self.kv_heads * self.head


SIZES = {
    "tiny": Size(layers=2, width=64, heads=4, kv_heads=2, hidden=128, words=256),
    "small": Size(layers=12, width=768, heads=12, kv_heads=4, hidden=2048, words=32000),  # 110 million weights
}
FORMS = ("standard", "microsoft", "microsoft_4bit")


class Weights:
    """The weights of a model. The matrices are [inputs, outputs]."""

    def __init__(self, size):
        rng = np.random.default_rng(size.width)

        def matrix(inputs, outputs):
            return (rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32)

        def scale():
            return (1 + 0.1 * rng.standard_normal(size.width)).astype(np.float32)

        self.words = rng.standard_normal((size.words, size.width)).astype(np.float32)
        self.layers = [{
            "norm": scale(), "q": matrix(size.width, size.width), "k": matrix(size.width, size.kv_width),
            "v": matrix(size.width, size.kv_width), "o": matrix(size.width, size.width), "norm2": scale(),
            "gate": matrix(size.width, size.hidden), "up": matrix(size.width, size.hidden), "down": matrix(size.hidden, size.width),
        } for _ in range(size.layers)]
        self.norm, self.scores = scale(), matrix(size.width, size.words)


class Decoder:
    """A model under construction. Methods add nodes and return the name of their result."""

    def __init__(self, size, weights, form, tokens, length):
        self.size, self.weights, self.form, self.tokens, self.length = size, weights, form, tokens, length
        self.is_prompt = tokens > 1
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def input(self, name, element, shape):
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def ops(self, kind, inputs, results, domain="", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, results, name=f"{kind}{len(self.nodes)}", domain=domain, **attributes))
        return results

    def op(self, kind, *inputs, result=None, **attributes):
        return self.ops(kind, list(inputs), [result or f"v{len(self.nodes)}"], **attributes)[0]

    def linear(self, x, matrix, bits=4):
        if self.form != "microsoft_4bit":
            return self.op("MatMul", x, self.constant(matrix))
        packed, scales = quantized(matrix, bits)
        return self.op("MatMulNBits", x, self.constant(packed), self.constant(scales), domain="com.microsoft", K=matrix.shape[0],
                       N=matrix.shape[1], bits=bits, block_size=BLOCK, accuracy_level=1)

    def build(self):
        size, weights = self.size, self.weights
        tokens = self.input("tokens", TensorProto.INT64, [1, self.tokens])
        place = self.place()
        x = self.op("Gather", self.constant(weights.words), tokens, axis=0)
        y = None  # what the last block adds to x
        for number, layer in enumerate(weights.layers):
            x, normed = self.norm(x, y, layer["norm"])
            y = self.linear(self.attention(normed, layer, number, place), layer["o"])
            x, normed = self.norm(x, y, layer["norm2"])
            gate = self.linear(normed, layer["gate"])
            gate = self.op("Mul", gate, self.op("Sigmoid", gate))
            y = self.linear(self.op("Mul", gate, self.linear(normed, layer["up"])), layer["down"])
        _, normed = self.norm(x, y, weights.norm)
        if self.is_prompt:
            normed = self.op("Slice", normed, self.ints(self.tokens - 1), self.ints(self.tokens), self.ints(1))
        scores = self.linear(normed, weights.scores, bits=8)
        self.op("Identity", scores, result=self.output("scores", [1, 1, size.words]))
        graph = helper.make_graph(self.nodes, self.form, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def place(self):
        """The inputs with the number of tokens before, which is 0 for a prompt."""
        if self.form == "standard":
            return None if self.is_prompt else self.input("place", TensorProto.INT64, [1])
        return self.input("last", TensorProto.INT32, [1]), self.input("total", TensorProto.INT32, [1])

    def norm(self, x, y, scale):
        """Returns x + y and its norm."""
        scale = self.constant(scale)
        if self.form == "standard":
            x = x if y is None else self.op("Add", x, y)
            return x, self.op("RMSNormalization", x, scale, axis=-1, epsilon=EPSILON)
        if y is None:
            return x, self.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=EPSILON)
        normed, total = f"v{len(self.nodes)}", f"sum{len(self.nodes)}"
        self.ops("SkipSimplifiedLayerNormalization", [x, y, scale], [normed, "", "", total], domain="com.microsoft", epsilon=EPSILON)
        return total, normed

    def attention(self, x, layer, number, place):
        size = self.size
        q, k, v = (self.linear(x, layer[name]) for name in "qkv")
        angles = np.arange(self.length)[:, None] / 10000 ** (np.arange(size.head // 2) * 2 / size.head)
        cos, sin = (self.constant(function(angles).astype(np.float32)) for function in (np.cos, np.sin))
        cache = [1, size.kv_heads, self.length, size.head]
        new = [self.output(f"new_{kind}{number}", cache) for kind in "kv"]
        if self.form != "standard" or not self.is_prompt:
            past = [self.input(f"past_{kind}{number}", TensorProto.FLOAT, cache) for kind in "kv"]
        if self.form != "standard":
            result = f"v{len(self.nodes)}"
            self.ops("GroupQueryAttention", [q, k, v, *past, *place, cos, sin], [result, *new], domain="com.microsoft",
                     num_heads=size.heads, kv_num_heads=size.kv_heads, do_rotary=1)
            return result

        def split(y, heads):
            y = self.op("Reshape", y, self.ints(1, self.tokens, heads, size.head))
            return self.op("Transpose", y, perm=[0, 2, 1, 3])

        q, k, v = split(q, size.heads), split(k, size.kv_heads), split(v, size.kv_heads)
        places = self.ints(*range(self.tokens)) if self.is_prompt else place
        places = self.op("Reshape", places, self.ints(1, self.tokens))
        q, k = (self.op("RotaryEmbedding", y, cos, sin, places) for y in (q, k))
        if self.is_prompt:
            zeros = self.constant(np.zeros((1, size.kv_heads, self.length - self.tokens, size.head), np.float32))
            for y, name in zip((k, v), new):
                self.op("Concat", y, zeros, axis=2, result=name)
            y = self.op("Attention", q, k, v, is_causal=1)
        else:
            slots = np.arange(self.length)
            here = self.op("Equal", self.constant(slots.reshape(1, 1, self.length, 1)), place)
            for y, old, name in zip((k, v), past, new):
                self.op("Where", here, y, old, result=name)
            y = self.op("Attention", q, *new, self.op("LessOrEqual", self.constant(slots.reshape(1, self.length)), place))
        y = self.op("Transpose", y, perm=[0, 2, 1, 3])
        return self.op("Reshape", y, self.ints(1, self.tokens, size.width))


def quantized(matrix, bits):
    """The weights as ONNX Runtime packs them: blocks of each column, the first of two elements in the low bits; and the scales."""
    inputs, outputs = matrix.shape
    half = 1 << (bits - 1)
    blocks = matrix.T.reshape(outputs, inputs // BLOCK, BLOCK)
    scales = (np.abs(blocks).max(axis=2) / (half - 1)).astype(np.float32)
    whole = np.clip(np.rint(blocks / scales[:, :, None]) + half, 0, 2 * half - 1).astype(np.uint8)
    if bits == 4:
        whole = whole[:, :, 0::2] | whole[:, :, 1::2] << 4
    return whole, scales.reshape(-1)


def write(folder, size, forms, prompt, length):
    """Writes the models, and returns the paths of both files by form."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = Weights(size)
    paths = {}
    for form in forms:
        paths[form] = []
        for name, tokens in (("prompt", prompt), ("token", 1)):
            path = folder / f"{form}_{name}.onnx"
            onnx.save(Decoder(size, weights, form, tokens, length).build(), path)
            paths[form].append(path)
    return paths


def main():
    parser = argparse.ArgumentParser(description="Writes language models of Llama's architecture with random weights.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("forms", nargs="*", metavar="FORM", help=", ".join(FORMS))
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--prompt", type=int, default=8, help="tokens of a prompt, at least 2")
    parser.add_argument("--length", type=int, default=32, help="positions of the caches")
    arguments = parser.parse_args()
    if not 2 <= arguments.prompt < arguments.length:
        parser.error("a prompt has at least 2 tokens, and fewer than the caches have positions")
    for form in arguments.forms:
        if form not in FORMS:
            parser.error(f"no form is named {form}; choose from {', '.join(FORMS)}")
    for paths in write(arguments.folder, SIZES[arguments.size], arguments.forms or FORMS, arguments.prompt, arguments.length).values():
        print(*paths, sep="\n")


if __name__ == "__main__":
    main()
