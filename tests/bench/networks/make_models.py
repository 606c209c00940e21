"""Writes networks as ONNX files, with the usual architectures and seeded random weights. Times do not depend on the weights.

  make_models.py FOLDER [NAME...]     without names: all networks; "grouped": single convolutions in groups

Batch normalizations are folded into the convolutions, as exporters of networks for inference do. Needs onnx and numpy, and onnxruntime
for the quantized networks: NETWORK_int8 has u8 activations and i8 weights with a scale per channel, and NETWORK_int8_symmetric i8
activations without zero points. Their ranges are those of seeded random inputs.
"""
import argparse
import math
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Network:
    """A network under construction. Every method adds nodes and returns the name of their result."""

    def __init__(self, name):
        self.name = name
        self.rng = np.random.default_rng(len(name))
        self.nodes, self.constants, self.inputs = [], [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, *shape, deviation=0.1):
        return self.constant((self.rng.standard_normal(shape) * deviation).astype(np.float32))

    def scalar(self, value):
        return self.constant(np.float32(value))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def input(self, name, element, shape):
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def image(self, height, width):
        return self.input("image", TensorProto.FLOAT, [1, 3, height, width])

    def tokens(self, length):
        return self.input("tokens", TensorProto.INT64, [1, length])

    def op(self, kind, *inputs, **attributes):
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], name=f"{kind}{len(self.nodes)}", **attributes))
        return result

    def conv(self, x, inputs, outputs, kernel, stride=1, groups=1):
        deviation = math.sqrt(2 / (inputs // groups * kernel * kernel))
        weights = self.floats(outputs, inputs // groups, kernel, kernel, deviation=deviation)
        return self.op("Conv", x, weights, self.floats(outputs), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                       pads=[kernel // 2] * 4, group=groups)

    def classify(self, x, channels, classes=1000):
        """The mean over the image, and a dense layer."""
        x = self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)
        return self.dense(x, channels, classes)

    def dense(self, x, inputs, outputs):
        weights = self.floats(outputs, inputs, deviation=math.sqrt(1 / inputs))
        return self.op("Gemm", x, weights, self.floats(outputs), transB=1)

    def linear(self, x, inputs, outputs):
        """A dense layer for tensors of any rank."""
        x = self.op("MatMul", x, self.floats(inputs, outputs, deviation=math.sqrt(1 / inputs)))
        return self.op("Add", x, self.floats(outputs))

    def norm(self, x, width):
        scale = self.constant((1 + 0.1 * self.rng.standard_normal(width)).astype(np.float32))
        return self.op("LayerNormalization", x, scale, self.floats(width), axis=-1, epsilon=1e-5)

    def relu(self, x):
        return self.op("Relu", x)

    def relu6(self, x):
        return self.op("Clip", x, self.scalar(0), self.scalar(6))

    def swish(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.scalar(math.sqrt(2))))
        x = self.op("Mul", x, self.op("Add", erf, self.scalar(1)))
        return self.op("Mul", x, self.scalar(0.5))

    def attention(self, x, length, width, heads, mask=None):
        size = width // heads
        shape = self.ints(1, length, heads, size)

        def split(permutation):
            parts = self.op("Reshape", self.linear(x, width, width), shape)
            return self.op("Transpose", parts, perm=permutation)

        q, k, v = split([0, 2, 1, 3]), split([0, 2, 3, 1]), split([0, 2, 1, 3])
        scores = self.op("Div", self.op("MatMul", q, k), self.scalar(math.sqrt(size)))
        if mask is not None:
            scores = self.op("Add", scores, mask)
        joined = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", joined, self.ints(1, length, width)), width, width)

    def model(self, output):
        result = helper.make_empty_tensor_value_info(output)
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [result], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model)
        return model


def max_pool(net, x, kernel, stride, pad=0):
    return net.op("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)


def inverted_residual(net, x, inputs, outputs, expand, stride, kernel, activation, squeeze=0):
    """The block of MobileNet-v2 and, with squeeze-and-excitation, of EfficientNet."""
    y, wide = x, inputs * expand
    if expand != 1:
        y = activation(net.conv(y, inputs, wide, 1))
    y = activation(net.conv(y, wide, wide, kernel, stride, groups=wide))
    if squeeze:
        gate = net.op("GlobalAveragePool", y)
        gate = net.swish(net.conv(gate, wide, squeeze, 1))
        y = net.op("Mul", y, net.op("Sigmoid", net.conv(gate, squeeze, wide, 1)))
    y = net.conv(y, wide, outputs, 1)
    return net.op("Add", x, y) if stride == 1 and inputs == outputs else y


def mobilenet(net, size, stages, stem, head, classes=1000):
    x, channels = net.relu6(net.conv(net.image(size, size), 3, stem, 3, 2)), stem
    for expand, outputs, repeat, stride in stages:
        for i in range(repeat):
            x = inverted_residual(net, x, channels, outputs, expand, stride if i == 0 else 1, 3, net.relu6)
            channels = outputs
    return net.classify(net.relu6(net.conv(x, channels, head, 1)), head, classes)


def mobilenet_v2(net):
    return mobilenet(net, 224, [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                (6, 320, 1, 1)], 32, 1280)


def mobilenet_tiny(net):
    return mobilenet(net, 32, [(1, 8, 1, 1), (4, 16, 2, 2)], 16, 48, classes=10)


def efficientnet_b0(net):
    x, channels = net.swish(net.conv(net.image(224, 224), 3, 32, 3, 2)), 32
    for expand, outputs, repeat, stride, kernel in [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
                                                    (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]:
        for i in range(repeat):
            x = inverted_residual(net, x, channels, outputs, expand, stride if i == 0 else 1, kernel, net.swish,
                                  squeeze=max(1, channels // 4))
            channels = outputs
    return net.classify(net.swish(net.conv(x, channels, 1280, 1)), 1280)


def resnet18(net):
    x = net.relu(net.conv(net.image(224, 224), 3, 64, 7, 2))
    x, channels = max_pool(net, x, 3, 2, 1), 64
    for outputs in (64, 128, 256, 512):
        for i in range(2):
            stride = 2 if i == 0 and outputs > 64 else 1
            y = net.relu(net.conv(x, channels, outputs, 3, stride))
            y = net.conv(y, outputs, outputs, 3)
            if stride != 1:
                x = net.conv(x, channels, outputs, 1, stride)
            x, channels = net.relu(net.op("Add", y, x)), outputs
    return net.classify(x, 512)


def shuffle(net, x, channels, groups, size):
    parts = net.op("Reshape", x, net.ints(1, groups, channels // groups, size, size))
    return net.op("Reshape", net.op("Transpose", parts, perm=[0, 2, 1, 3, 4]), net.ints(1, channels, size, size))


def shufflenet(net, groups=4):
    """ShuffleNet with groups: 68, 136 and 272 channels between the grouped convolutions, 17, 34 and 68 in a group."""
    x, channels, size = net.relu(net.conv(net.image(224, 224), 3, 24, 3, 2)), 24, 56
    x = max_pool(net, x, 3, 2, 1)
    for outputs, repeat in ((272, 4), (544, 8), (1088, 4)):
        for i in range(repeat):
            stride, narrow = 2 if i == 0 else 1, outputs // 4
            y = net.relu(net.conv(x, channels, narrow, 1, groups=1 if channels == 24 else groups))
            y = net.conv(shuffle(net, y, narrow, groups, size), narrow, narrow, 3, stride, groups=narrow)
            if stride == 2:
                y = net.conv(y, narrow, outputs - channels, 1, groups=groups)
                x = net.op("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, count_include_pad=1)
                x, size = net.relu(net.op("Concat", x, y, axis=1)), size // 2
            else:
                x = net.relu(net.op("Add", x, net.conv(y, narrow, outputs, 1, groups=groups)))
            channels = outputs
    return net.classify(x, 1088)


# Single convolutions in groups: size of the image, channels, kernel, stride, groups.
GROUPED = [
    (28, 272, 68, 1, 1, 4), (28, 68, 272, 1, 1, 4), (14, 544, 136, 1, 1, 4), (14, 136, 544, 1, 1, 4),
    (7, 1088, 272, 1, 1, 4), (7, 272, 1088, 1, 1, 4), (28, 240, 120, 1, 1, 3), (14, 1000, 1000, 1, 1, 8),
    (56, 64, 64, 3, 1, 8), (28, 128, 128, 3, 1, 8), (14, 240, 240, 3, 1, 10), (14, 336, 336, 3, 2, 14), (56, 128, 128, 3, 1, 32),
    (14, 512, 512, 3, 1, 32), (28, 68, 68, 3, 1, 68), (14, 272, 272, 3, 1, 272), (14, 272, 272, 3, 2, 272),
    (7, 544, 544, 3, 1, 544),
]


def grouped_convolution(size, inputs, outputs, kernel, stride, groups):
    def build(net):
        image = net.input("image", TensorProto.FLOAT, [1, inputs, size, size])
        return net.relu(net.conv(image, inputs, outputs, kernel, stride, groups=groups))

    build.__name__ = f"conv_{size}_{inputs}_{outputs}_k{kernel}_s{stride}_g{groups}"
    return build


def alexnet(net):
    x = net.relu(net.conv(net.image(224, 224), 3, 64, 11, 4))
    x = net.relu(net.conv(max_pool(net, x, 3, 2), 64, 192, 5))
    x = net.relu(net.conv(max_pool(net, x, 3, 2), 192, 384, 3))
    x = net.relu(net.conv(x, 384, 256, 3))
    x = max_pool(net, net.relu(net.conv(x, 256, 256, 3)), 3, 2)
    x = net.op("Flatten", x, axis=1)
    x = net.relu(net.dense(x, 256 * 6 * 6, 4096))
    return net.dense(net.relu(net.dense(x, 4096, 4096)), 4096, 1000)


def googlenet(net):
    """Inception v1 without its normalizations of local responses."""
    x = max_pool(net, net.relu(net.conv(net.image(224, 224), 3, 64, 7, 2)), 3, 2, 1)
    x = net.relu(net.conv(net.relu(net.conv(x, 64, 64, 1)), 64, 192, 3))
    x, channels = max_pool(net, x, 3, 2, 1), 192
    # Channels of the branches: 1×1; 1×1 and 3×3; 1×1 and 5×5; the pooled image's 1×1. (): a pooling between blocks.
    for widths in [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (), (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
                   (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), (),
                   (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)]:
        if not widths:
            x = max_pool(net, x, 3, 2, 1)
            continue
        one, narrow3, wide3, narrow5, wide5, pooled = widths
        branches = [
            net.relu(net.conv(x, channels, one, 1)),
            net.relu(net.conv(net.relu(net.conv(x, channels, narrow3, 1)), narrow3, wide3, 3)),
            net.relu(net.conv(net.relu(net.conv(x, channels, narrow5, 1)), narrow5, wide5, 5)),
            net.relu(net.conv(max_pool(net, x, 3, 1, 1), channels, pooled, 1)),
        ]
        x, channels = net.op("Concat", *branches, axis=1), one + wide3 + wide5 + pooled
    return net.classify(x, channels)


def regnet(net):
    """RegNetX with 400 million multiply-adds: groups of 16 channels."""
    x, channels = net.relu(net.conv(net.image(224, 224), 3, 32, 3, 2)), 32
    for outputs, repeat in ((32, 1), (64, 2), (160, 7), (400, 12)):
        for i in range(repeat):
            stride = 2 if i == 0 else 1
            y = net.relu(net.conv(x, channels, outputs, 1))
            y = net.relu(net.conv(y, outputs, outputs, 3, stride, groups=outputs // 16))
            y = net.conv(y, outputs, outputs, 1)
            shortcut = net.conv(x, channels, outputs, 1, stride) if i == 0 else x
            x, channels = net.relu(net.op("Add", y, shortcut)), outputs
    return net.classify(x, 400)


def densenet121(net):
    """Each layer reads the images of all layers before it in its block, normalized anew."""
    def normalized(x, channels):
        mean = net.constant(0.1 * net.rng.standard_normal(channels).astype(np.float32))
        scale, variance = (net.constant(net.rng.uniform(0.5, 1.5, channels).astype(np.float32)) for _ in range(2))
        return net.relu(net.op("BatchNormalization", x, scale, net.floats(channels), mean, variance))

    x, channels = max_pool(net, net.relu(net.conv(net.image(224, 224), 3, 64, 7, 2)), 3, 2, 1), 64
    for repeat in (6, 12, 24, 16):
        if channels > 64:
            x, channels = net.conv(normalized(x, channels), channels, channels // 2, 1), channels // 2
            x = net.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
        for _ in range(repeat):
            y = net.relu(net.conv(normalized(x, channels), channels, 128, 1))
            x, channels = net.op("Concat", x, net.conv(y, 128, 32, 3), axis=1), channels + 32
    return net.classify(normalized(x, channels), channels)


def convnext_tiny(net):
    def normalized(x, width):
        return net.op("Transpose", net.norm(net.op("Transpose", x, perm=[0, 2, 3, 1]), width), perm=[0, 3, 1, 2])

    def patches(x, inputs, outputs, size):
        weights = net.floats(outputs, inputs, size, size, deviation=math.sqrt(1 / (inputs * size * size)))
        return net.op("Conv", x, weights, net.floats(outputs), kernel_shape=[size] * 2, strides=[size] * 2)

    x = normalized(patches(net.image(224, 224), 3, 96, 4), 96)
    for outputs, repeat in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if outputs > 96:
            x = patches(normalized(x, outputs // 2), outputs // 2, outputs, 2)
        for _ in range(repeat):
            y = net.op("Transpose", net.conv(x, outputs, outputs, 7, groups=outputs), perm=[0, 2, 3, 1])
            y = net.gelu(net.linear(net.norm(y, outputs), outputs, 4 * outputs))
            y = net.op("Mul", net.linear(y, 4 * outputs, outputs), net.floats(outputs))
            x = net.op("Add", x, net.op("Transpose", y, perm=[0, 3, 1, 2]))
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    return net.dense(net.norm(x, 768), 768, 1000)


def vit_small(net):
    """196 patches of 16×16 pixels and one more place, from which the image is classified."""
    width, length = 384, 197
    weights = net.floats(width, 3, 16, 16, deviation=math.sqrt(1 / 768))
    x = net.op("Conv", net.image(224, 224), weights, net.floats(width), kernel_shape=[16, 16], strides=[16, 16])
    x = net.op("Transpose", net.op("Reshape", x, net.ints(1, width, length - 1)), perm=[0, 2, 1])
    x = net.op("Add", net.op("Concat", net.floats(1, 1, width), x, axis=1), net.floats(1, length, width))
    for _ in range(12):
        x = net.op("Add", x, net.attention(net.norm(x, width), length, width, 6))
        y = net.linear(net.gelu(net.linear(net.norm(x, width), width, 4 * width)), 4 * width, width)
        x = net.op("Add", x, y)
    x = net.op("Gather", net.norm(x, width), net.constant(np.int64(0)), axis=1)
    return net.dense(x, width, 1000)


def vgg16(net):
    x, channels = net.image(224, 224), 3
    for outputs, repeat in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(repeat):
            x, channels = net.relu(net.conv(x, channels, outputs, 3)), outputs
        x = max_pool(net, x, 2, 2)
    x = net.op("Flatten", x, axis=1)
    x = net.relu(net.dense(x, 512 * 7 * 7, 4096))
    return net.dense(net.relu(net.dense(x, 4096, 4096)), 4096, 1000)


def bert_base(net):
    return transformer(net, length=128, width=768, heads=12, layers=12, words=30522, causal=False)


def gpt_small(net):
    return transformer(net, length=64, width=256, heads=4, layers=4, words=8192, causal=True)


def transformer(net, length, width, heads, layers, words, causal):
    """BERT normalizes after each block. GPT normalizes before, masks the scores, and ends with the scores of all words."""
    x = net.op("Gather", net.floats(words, width), net.tokens(length), axis=0)
    x = net.op("Add", x, net.floats(1, length, width))
    mask = net.constant(np.triu(np.full((length, length), -1e9, np.float32), 1)) if causal else None

    def feed_forward(y):
        return net.linear(net.gelu(net.linear(y, width, 4 * width)), 4 * width, width)

    if not causal:
        x = net.norm(x, width)
    for _ in range(layers):
        if causal:
            x = net.op("Add", x, net.attention(net.norm(x, width), length, width, heads, mask))
            x = net.op("Add", x, feed_forward(net.norm(x, width)))
        else:
            x = net.norm(net.op("Add", x, net.attention(x, length, width, heads)), width)
            x = net.norm(net.op("Add", x, feed_forward(x)), width)
    return net.linear(net.norm(x, width), width, words) if causal else x


NETWORKS = [mobilenet_v2, mobilenet_tiny, efficientnet_b0, resnet18, shufflenet, alexnet, googlenet, regnet, densenet121, convnext_tiny, vit_small,
            vgg16, bert_base, gpt_small]
LAYERS = [grouped_convolution(*shape) for shape in GROUPED]
SUFFIXES = {"_int8": False, "_int8_symmetric": True}
QUANTIZED = ["resnet18_int8", "resnet18_int8_symmetric", "mobilenet_v2_int8", "gpt_small_int8"]


def random_inputs(model, count):
    """Integers are small, because they are indices of words."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        feed = {}
        for tensor in model.graph.input:
            shape = [dimension.dim_value for dimension in tensor.type.tensor_type.shape.dim]
            if tensor.type.tensor_type.elem_type == TensorProto.INT64:
                feed[tensor.name] = rng.integers(0, 1000, shape, dtype=np.int64)
            else:
                feed[tensor.name] = rng.standard_normal(shape).astype(np.float32)
        yield feed


def save_quantized(model, path, symmetric):
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.feeds = random_inputs(model, 4)

        def get_next(self):
            return next(self.feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        floats = pathlib.Path(folder) / "floats.onnx"
        onnx.save(model, floats)
        quantization.quantize_static(
            floats, path, Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
            activation_type=quantization.QuantType.QInt8 if symmetric else quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8, extra_options={"ActivationSymmetric": symmetric})


def main():
    builders = {build.__name__: build for build in NETWORKS + LAYERS}
    networks = [build.__name__ for build in NETWORKS] + QUANTIZED
    parser = argparse.ArgumentParser(description="Writes networks with random weights as ONNX files.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="of %s, also with a suffix %s; grouped" % (", ".join(networks), " or ".join(SUFFIXES)))
    arguments = parser.parse_args()
    names = arguments.names or networks
    if "grouped" in names:
        names = [name for name in names if name != "grouped"] + [build.__name__ for build in LAYERS]
    wanted = []
    for name in names:
        suffix = next((end for end in SUFFIXES if name.endswith(end)), "")
        wanted.append((name, name.removesuffix(suffix), suffix))
        if wanted[-1][1] not in builders:
            parser.error(f"no network is named {name}; choose from {', '.join(networks)}, grouped")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, network, suffix in wanted:
        net = Network(network)
        model = net.model(builders[network](net))
        path = arguments.folder / f"{name}.onnx"
        if suffix:
            save_quantized(model, path, SUFFIXES[suffix])
        else:
            onnx.save(model, path)
        print(path)


if __name__ == "__main__":
    main()
