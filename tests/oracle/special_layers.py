"""Random nodes of layers of networks: products, pooling, norms and recurrent layers."""
import numpy as np

from special_fill import Fill, Node, made, some_shape


def _with_finite(position, node, zero=None):
    """The node without infinities and NaN in the input at this position, and with `zero` for zeros."""
    drawn = node.refill

    def refill():
        arrays = drawn()
        arrays[position] = np.nan_to_num(arrays[position], posinf=1, neginf=-1)
        if zero is not None:
            arrays[position][arrays[position] == 0] = zero
        return arrays

    node.refill, node.inputs = refill, refill()
    return node


# Products.
def _product_fill(rng):
    return Fill(rng, ends=False)


def _mat_mul(rng):
    m, k, n = (int(x) for x in rng.integers(1, 9, 3))
    dtype = str(rng.choice(["f32", "f16", "f64"]))
    return made("MatMul", _product_fill(rng), [(dtype, (m, k)), (dtype, (k, n))], how="sum")


def _gemm(rng):
    m, k, n = (int(x) for x in rng.integers(1, 9, 3))
    dtype = str(rng.choice(["f32", "f16"]))
    ta, tb = (int(x) for x in rng.integers(0, 2, 2))
    shapes = [(dtype, (k, m) if ta else (m, k)), (dtype, (n, k) if tb else (k, n))]
    if rng.random() < 0.6:
        shapes.append((dtype, [(n,), (m, n), (1, n), (m, 1)][rng.integers(0, 4)]))
    attributes = {"transA": ta, "transB": tb, "alpha": float(rng.choice([1, 0.5, -2, 0.125])),
                  "beta": float(rng.choice([1, 0.5, 2]))}
    return made("Gemm", _product_fill(rng), shapes, attributes=attributes, how="sum")


def _einsum(rng):
    equation, shapes = [("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
                        ("ij->ji", [(3, 4)]), ("ij->i", [(4, 3)])][rng.integers(0, 4)]
    return made("Einsum", _product_fill(rng), [("f32", shape) for shape in shapes],
                attributes={"equation": equation}, how="sum")


def _window(rng, dimensions=2):
    kernel = [int(x) for x in rng.integers(1, 4, dimensions)]
    pads = [int(rng.integers(0, k)) for k in kernel] * 2
    return {"kernel_shape": kernel, "strides": [int(x) for x in rng.integers(1, 3, dimensions)],
            "pads": pads}


def _conv(rng):
    groups = int(rng.choice([1, 1, 2]))
    ci, co = groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 4))
    attributes = {**_window(rng), "group": groups}
    shapes = [("f32", (1, ci, 6, 5)), ("f32", (co, ci // groups, *attributes["kernel_shape"]))]
    if rng.random() < 0.5:
        shapes.append(("f32", (co,)))
    node = made("Conv", _product_fill(rng), shapes, attributes=attributes, how="sum")
    # Padding adds nothing, even if the weights are infinite.
    return _with_finite(1, node) if any(attributes["pads"]) else node


def _conv_transpose(rng):
    ci, co = (int(x) for x in rng.integers(1, 4, 2))
    attributes = _window(rng)
    attributes["pads"] = [0] * 4
    shapes = [("f32", (1, ci, 4, 3)), ("f32", (ci, co, *attributes["kernel_shape"]))]
    if rng.random() < 0.5:
        shapes.append(("f32", (co,)))
    return made("ConvTranspose", _product_fill(rng), shapes, attributes=attributes, how="sum")


def _conv_integer(rng):
    attributes = _window(rng)
    fill = Fill(rng)
    draw = lambda: [fill.draw("u8", (1, 3, 5, 5)),
                    fill.draw("u8", (2, 3, *attributes["kernel_shape"])),
                    fill.draw("u8", ()), fill.draw("u8", ())]
    return Node("ConvInteger", draw(), {1: True, 2: True, 3: True}, attributes, how="exact")


def _mat_mul_integer(rng):
    fill = Fill(rng)
    a, b = (str(rng.choice(["u8", "i8"])) for _ in range(2))
    if a == "i8" and b == "u8":
        a = "u8"
    m, k, n = (int(x) for x in rng.integers(1, 9, 3))
    shapes = [(a, (m, k)), (b, (k, n))]
    if rng.random() < 0.5:
        shapes += [(a, ()), (b, ())]
    return made("MatMulInteger", fill, shapes, how="exact")


def _scale(rng, shape=()):
    return rng.uniform(0.01, 0.5, shape).astype(np.float32)


def _q_linear_mat_mul(rng):
    fill = Fill(rng)
    draw = lambda: [fill.draw("u8", (3, 4)), _scale(rng), fill.draw("u8", ()),
                    fill.draw("u8", (4, 5)), _scale(rng), fill.draw("u8", ()),
                    np.array(50, np.float32), fill.draw("u8", ())]
    return Node("QLinearMatMul", draw(), {i: True for i in range(1, 8)}, how="step")


def _q_linear_conv(rng):
    fill, attributes = Fill(rng), _window(rng)
    draw = lambda: [fill.draw("u8", (1, 2, 5, 5)), _scale(rng), fill.draw("u8", ()),
                    fill.draw("u8", (2, 2, *attributes["kernel_shape"])), _scale(rng),
                    fill.draw("u8", ()), np.array(50, np.float32), fill.draw("u8", ())]
    return Node("QLinearConv", draw(), {i: True for i in range(1, 8)}, attributes, how="step")


def _quantize(rng):
    fill, shape = Fill(rng, nan=False, low=-100, high=100), some_shape(rng)
    zero = str(rng.choice(["u8", "i8"]))
    scale = np.array(rng.choice([0.5, 1.0, 2.0, 0.1, 1e-3]), np.float32)
    return made("QuantizeLinear", fill, [("f32", shape)],
                {1: scale, 2: Fill(rng).draw(zero, ())}, how="step")


def _dequantize(rng):
    fill, shape, dtype = Fill(rng), some_shape(rng), str(rng.choice(["u8", "i8", "i32"]))
    constants = {1: np.array(rng.choice([0.5, 1.0, 0.1]), np.float32)}
    if dtype != "i32":
        constants[2] = fill.draw(dtype, ())
    return made("DequantizeLinear", fill, [(dtype, shape)], constants)


def _dynamic_quantize(rng):
    # A scale that is denormal or 0 leaves nothing to compare.
    fill = Fill(rng, nan=False, infinite=False, ends=False, tiny=False)
    return made("DynamicQuantizeLinear", fill, [("f32", some_shape(rng))], outputs=3, how="step")


# Pooling. A maximum ignores NaN, where ONNX leaves it open (policy.py).
def _max_pool(rng):
    fill, dtype = Fill(rng, nan=False), str(rng.choice(["f32", "f64", "u8", "i8"]))
    indices = dtype[0] == "f" and rng.random() < 0.4
    if indices:
        fill.infinite = False  # windows that are all -inf have no index in ONNX Runtime
    return made("MaxPool", fill, [(dtype, (1, 2, 6, 5))], attributes=_window(rng),
                outputs=2 if indices else 1, how="exact")


def _average_pool(rng):
    attributes = {**_window(rng), "count_include_pad": int(rng.integers(0, 2))}
    return made("AveragePool", _product_fill(rng), [("f32", (1, 2, 6, 5))],
                attributes=attributes, how="sum")


def _global_pool(op, **options):
    def draw(rng):
        return made(op, Fill(rng, **options), [("f32", (2, 3, *some_shape(rng, 2, 2)))], how="sum")

    return draw


# Norms.
def _batch_norm(rng):
    fill, c = Fill(rng, ends=False), int(rng.integers(1, 4))
    draw = lambda: [fill.draw("f32", (2, c, 3, 2)), fill.draw("f32", (c,)), fill.draw("f32", (c,)),
                    fill.draw("f32", (c,)), rng.uniform(0.5, 2, c).astype(np.float32)]
    return Node("BatchNormalization", draw(), how="sum", refill=draw)


def _layer_norm(op):
    def draw(rng):
        shape = some_shape(rng, 2, 3)
        fill = Fill(rng, ends=False)
        shapes = [("f32", shape), ("f32", shape[-1:])]
        if op == "LayerNormalization" and rng.random() < 0.5:
            shapes.append(("f32", shape[-1:]))
        return made(op, fill, shapes, attributes={"axis": -1}, how="sum")

    return draw


def _instance_norm(rng):
    c = int(rng.integers(1, 4))
    return made("InstanceNormalization", Fill(rng, ends=False),
                [("f32", (2, c, 3, 4)), ("f32", (c,)), ("f32", (c,))], how="sum")


def _group_norm(rng):
    return made("GroupNormalization", Fill(rng, ends=False),
                [("f32", (2, 4, 3, 2)), ("f32", (4,)), ("f32", (4,))],
                attributes={"num_groups": int(rng.choice([1, 2, 4]))}, how="sum")


# Recurrent layers.
def _recurrent(op, gates):
    def draw(rng):
        steps, batch, inputs, hidden = (int(x) for x in rng.integers(1, 4, 4))
        fill = Fill(rng, ends=False, low=-2, high=2)
        shapes = [("f32", (steps, batch, inputs)), ("f32", (1, gates * hidden, inputs)),
                  ("f32", (1, gates * hidden, hidden)), ("f32", (1, 2 * gates * hidden))]
        attributes = {"hidden_size": hidden}
        if op == "GRU":
            attributes["linear_before_reset"] = int(rng.integers(0, 2))
        # An absent initial state adds nothing, even if its weights are infinite. The references'
        # products of matrices skip weights of zero, so that those hide a NaN of the state.
        return _with_finite(
            2, made(op, fill, shapes, attributes=attributes, outputs=2, how="sum"), zero=0.25)

    return draw


LAYERS = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "ConvTranspose": _conv_transpose,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "Einsum": _einsum,
    "GRU": _recurrent("GRU", 3),
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool("GlobalAveragePool", ends=False),
    "GlobalMaxPool": _global_pool("GlobalMaxPool", nan=False),
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LSTM": _recurrent("LSTM", 4),
    "LayerNormalization": _layer_norm("LayerNormalization"),
    "MatMul": _mat_mul,
    "MatMulInteger": _mat_mul_integer,
    "MaxPool": _max_pool,
    "QLinearConv": _q_linear_conv,
    "QLinearMatMul": _q_linear_mat_mul,
    "QuantizeLinear": _quantize,
    "RNN": _recurrent("RNN", 1),
}
