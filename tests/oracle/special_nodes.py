"""Random nodes of every operator that ONNX models may contain, with special values as inputs.

A drawer returns a Node. Its inputs are drawn by Fill, which mixes ordinary numbers with zeros of
both signs, infinities, NaN, denormals and the ends of the type.
"""
import numpy as np

from special_fill import NUMPY, ONNX_TYPES, Fill, Node


def _shape(rng, least=1, most=3, extent=5):
    return tuple(int(n) for n in rng.integers(1, extent + 1, rng.integers(least, most + 1)))


def _broadcast(rng, shape):
    """A shape that broadcasts to this one."""
    own = [1 if rng.random() < 0.25 else n for n in shape]
    return tuple(own[rng.integers(0, len(own)):]) if rng.random() < 0.3 else tuple(own)


def _ints(*numbers):
    return np.array(numbers, np.int64)


def _float_type(rng):
    return str(rng.choice(["f32", "f32", "f32", "f16", "f64"]))


def _number_type(rng):
    return str(rng.choice(["f32", "f32", "f16", "f64", "i32", "i64", "i8", "u8"]))


def _made(op, fill, shapes, constants=None, attributes=None, outputs=1, how="each"):
    """A node with drawn inputs `shapes`, pairs (dtype, shape), and `constants` by position."""
    def draw():
        arrays = [fill.draw(dtype, shape) for dtype, shape in shapes]
        for position, array in sorted((constants or {}).items()):
            arrays.insert(position, array)
        return arrays

    return Node(op, draw(), {p: True for p in constants or {}}, attributes or {}, outputs, how,
                refill=draw)


def _unary(op, types=_float_type, how="each", attributes=None, **options):
    def draw(rng):
        fill = Fill(rng, **options)
        given = attributes(rng) if attributes else {}
        return _made(op, fill, [(types(rng), _shape(rng, extent=9))], attributes=given, how=how)

    return draw


def _trigonometric(op, **options):
    return _unary(op, types=lambda rng: str(rng.choice(["f32", "f16"])), **options)


def _binary(op, types=_number_type, how="each", attributes=None, **options):
    def draw(rng):
        fill, dtype = Fill(rng, **options), types(rng)
        shape = _shape(rng, extent=7)
        one, two = shape, _broadcast(rng, shape)
        if rng.random() < 0.5:
            one, two = two, one
        given = attributes(rng, dtype) if attributes else {}
        return _made(op, fill, [(dtype, one), (dtype, two)], attributes=given, how=how)

    return draw


def _bool(rng):
    return "bool"


def _any_type(rng):
    return "bool" if rng.random() < 0.1 else _number_type(rng)


def _div(rng):
    fill, dtype, shape = Fill(rng), _number_type(rng), _shape(rng, extent=7)
    node = _made("Div", fill, [(dtype, shape), (dtype, shape)])
    return _nonzero(node, dtype)


def _mod(rng):
    fill, dtype, shape = Fill(rng), _number_type(rng), _shape(rng, extent=7)
    fmod = 1 if dtype[0] == "f" else int(rng.integers(0, 2))
    node = _made("Mod", fill, [(dtype, shape), (dtype, shape)], attributes={"fmod": fmod},
                 how="exact")
    if dtype == "f64":  # the remainder of a quotient that is not exact is rounded
        exact = lambda a: np.where(np.isfinite(a), np.clip(np.rint(a), -1e3, 1e3), a)
        node.refill = lambda: [exact(fill.draw(dtype, shape)), exact(fill.draw(dtype, shape))]
        node.inputs = node.refill()
    elif dtype[0] == "f" and rng.random() < 0.4:
        divisor = rng.choice(np.array([0.1, 1, 2, np.pi, 1e-3, 100, np.inf, 0, 1e30],
                                      NUMPY["f32"])).astype(NUMPY[dtype])
        return _made("Mod", fill, [(dtype, shape)], {1: np.array(divisor)}, {"fmod": 1},
                     how="exact")
    return _nonzero(node, dtype)


def _nonzero(node, dtype):
    """ONNX Runtime ends with a signal where an integer is divided by 0, and the least one by -1."""
    if dtype[0] == "f":
        return node
    drawn = node.refill

    def refill():
        a, b = drawn()
        b = np.where((b == 0) | (b == -1) if dtype != "u8" else b == 0, 3, b).astype(b.dtype)
        return [a, b]

    node.refill, node.inputs = refill, refill()
    return node


def _bit_shift(rng):
    shape = _shape(rng)
    fill = Fill(rng)
    draw = lambda: [fill.draw("u8", shape), rng.integers(0, 8, shape).astype(np.uint8)]
    return Node("BitShift", draw(), {}, {"direction": str(rng.choice(["LEFT", "RIGHT"]))},
                how="exact", refill=draw)


def _pow(rng):
    fill, dtype, shape = Fill(rng, low=-4, high=4), _float_type(rng), _shape(rng, extent=7)
    if rng.random() < 0.5:
        exponent = rng.choice(np.array([0, 0.5, 1, 2, 3, -1, -2, -0.5, 0.25, np.inf, -np.inf,
                                        np.nan, 4, 5, 1.5]))
        return _made("Pow", fill, [(dtype, shape)], {1: np.array(exponent, NUMPY[dtype])})
    if rng.random() < 0.3:
        draw = lambda: [rng.integers(-5, 6, shape).astype(np.int32),
                        rng.integers(0, 6, shape).astype(np.int32)]
        return Node("Pow", draw(), how="exact", refill=draw)
    return _made("Pow", fill, [(dtype, shape), (dtype, _broadcast(rng, shape))])


def _variadic(op, types=_float_type, how="each", **options):
    def draw(rng):
        fill, dtype, shape = Fill(rng, **options), types(rng), _shape(rng)
        shapes = [(dtype, shape)] + [(dtype, _broadcast(rng, shape))
                                     for _ in range(rng.integers(0, 4))]
        order = rng.permutation(len(shapes))
        return _made(op, fill, [shapes[i] for i in order], how=how)

    return draw


def _clip(rng):
    fill, dtype, shape = Fill(rng), _float_type(rng), _shape(rng)
    bounds = np.sort(rng.choice(fill.specials(dtype)[:12], 2))
    if rng.random() < 0.5:
        return _made("Clip", fill, [(dtype, shape)],
                     {1: np.array(bounds[0]), 2: np.array(bounds[1])})
    draw = lambda: [fill.draw(dtype, shape), np.array(bounds[0]), np.array(bounds[1])]
    return Node("Clip", draw(), how="exact", refill=draw)


def _where(rng):
    fill, dtype, shape = Fill(rng), _number_type(rng), _shape(rng)
    return _made("Where", fill, [("bool", _broadcast(rng, shape)), (dtype, shape),
                                 (dtype, _broadcast(rng, shape))], how="exact")


def _prelu(rng):
    fill, shape = Fill(rng), _shape(rng)
    dtype = _float_type(rng)
    return _made("PRelu", fill, [(dtype, shape), (dtype, _broadcast(rng, shape))])


# Reductions. Sums of the largest numbers depend on the order of the terms.
def _reduce(op, types=_float_type, how="sum", **options):
    def draw(rng):
        dtype, shape = types(rng), _shape(rng, extent=6)
        fill = Fill(rng, ends=False, **options)
        axes = rng.permutation(len(shape))[:rng.integers(1, len(shape) + 1)]
        attributes = {"keepdims": int(rng.integers(0, 2))}
        return _made(op, fill, [(dtype, shape)], {1: _ints(*axes)}, attributes, how=how)

    return draw


def _rows(op, types=_float_type, how="each", outputs=1, **options):
    def draw(rng):
        dtype, shape = types(rng), _shape(rng, extent=7)
        fill = Fill(rng, **options)
        attributes = {"axis": int(rng.integers(-len(shape), len(shape)))}
        return _made(op, fill, [(dtype, shape)], attributes=attributes, how=how, outputs=outputs)

    return draw


def _arg(op):
    def draw(rng):
        # Where NaN is not the first element, ONNX Runtime ignores it.
        fill = Fill(rng, nan=rng.random() < 0.3)
        dtype, shape = str(rng.choice(["f32", "f64", "i32", "u8", "i8"])), _shape(rng, extent=7)
        attributes = {"axis": int(rng.integers(-len(shape), len(shape))),
                      "keepdims": int(rng.integers(0, 2)),
                      "select_last_index": int(rng.integers(0, 2))}
        return _made(op, fill, [(dtype, shape)], attributes=attributes, how="exact")

    return draw


def _top_k(rng):
    fill, dtype = Fill(rng), str(rng.choice(["f32", "f64", "i32", "i64"]))
    shape = _shape(rng, extent=9)
    axis = int(rng.integers(0, len(shape)))
    k = int(rng.integers(1, shape[axis] + 1))
    return _made("TopK", fill, [(dtype, shape)], {1: _ints(k)},
                 {"axis": axis, "largest": int(rng.integers(0, 2))}, outputs=2, how="exact")


def _cum_sum(rng):
    dtype, shape = str(rng.choice(["f32", "f64", "i32"])), _shape(rng)
    fill = Fill(rng, ends=False)
    axis = int(rng.integers(0, len(shape)))
    return _made("CumSum", fill, [(dtype, shape)], {1: np.array(axis, np.int64)},
                 {"exclusive": int(rng.integers(0, 2)), "reverse": int(rng.integers(0, 2))},
                 how="sum")


def _lp_normalization(rng):
    fill, shape = Fill(rng, ends=False), _shape(rng)
    return _made("LpNormalization", fill, [(str(rng.choice(["f32", "f64"])), shape)], attributes={
        "axis": int(rng.integers(0, len(shape))), "p": int(rng.integers(1, 3))})


def _lrn(rng):
    fill = Fill(rng, ends=False)
    shape = (1, int(rng.integers(1, 7)), 2, 3)
    return _made("LRN", fill, [("f32", shape)], attributes={"size": int(rng.choice([1, 3, 5])),
                                                            "bias": 1.0, "alpha": 1e-2})


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
    return _made("MatMul", _product_fill(rng), [(dtype, (m, k)), (dtype, (k, n))], how="sum")


def _gemm(rng):
    m, k, n = (int(x) for x in rng.integers(1, 9, 3))
    dtype = str(rng.choice(["f32", "f16"]))
    ta, tb = (int(x) for x in rng.integers(0, 2, 2))
    shapes = [(dtype, (k, m) if ta else (m, k)), (dtype, (n, k) if tb else (k, n))]
    if rng.random() < 0.6:
        shapes.append((dtype, [(n,), (m, n), (1, n), (m, 1)][rng.integers(0, 4)]))
    attributes = {"transA": ta, "transB": tb, "alpha": float(rng.choice([1, 0.5, -2, 0.125])),
                  "beta": float(rng.choice([1, 0.5, 2]))}
    return _made("Gemm", _product_fill(rng), shapes, attributes=attributes, how="sum")


def _einsum(rng):
    equation, shapes = [("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
                        ("ij->ji", [(3, 4)]), ("ij->i", [(4, 3)])][rng.integers(0, 4)]
    return _made("Einsum", _product_fill(rng), [("f32", shape) for shape in shapes],
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
    node = _made("Conv", _product_fill(rng), shapes, attributes=attributes, how="sum")
    # Padding adds nothing, even if the weights are infinite.
    return _with_finite(1, node) if any(attributes["pads"]) else node


def _conv_transpose(rng):
    ci, co = (int(x) for x in rng.integers(1, 4, 2))
    attributes = _window(rng)
    attributes["pads"] = [0] * 4
    shapes = [("f32", (1, ci, 4, 3)), ("f32", (ci, co, *attributes["kernel_shape"]))]
    if rng.random() < 0.5:
        shapes.append(("f32", (co,)))
    return _made("ConvTranspose", _product_fill(rng), shapes, attributes=attributes, how="sum")


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
    return _made("MatMulInteger", fill, shapes, how="exact")


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
    fill, shape = Fill(rng, nan=False, low=-100, high=100), _shape(rng)
    zero = str(rng.choice(["u8", "i8"]))
    scale = np.array(rng.choice([0.5, 1.0, 2.0, 0.1, 1e-3]), np.float32)
    return _made("QuantizeLinear", fill, [("f32", shape)],
                 {1: scale, 2: Fill(rng).draw(zero, ())}, how="step")


def _dequantize(rng):
    fill, shape, dtype = Fill(rng), _shape(rng), str(rng.choice(["u8", "i8", "i32"]))
    constants = {1: np.array(rng.choice([0.5, 1.0, 0.1]), np.float32)}
    if dtype != "i32":
        constants[2] = fill.draw(dtype, ())
    return _made("DequantizeLinear", fill, [(dtype, shape)], constants)


def _dynamic_quantize(rng):
    # A scale that is denormal or 0 leaves nothing to compare.
    fill = Fill(rng, nan=False, infinite=False, ends=False, tiny=False)
    return _made("DynamicQuantizeLinear", fill, [("f32", _shape(rng))], outputs=3, how="step")


# Pooling. A maximum ignores NaN, where ONNX leaves it open (policy.py).
def _max_pool(rng):
    fill, dtype = Fill(rng, nan=False), str(rng.choice(["f32", "f64", "u8", "i8"]))
    indices = dtype[0] == "f" and rng.random() < 0.4
    if indices:
        fill.infinite = False  # windows that are all -inf have no index in ONNX Runtime
    return _made("MaxPool", fill, [(dtype, (1, 2, 6, 5))], attributes=_window(rng),
                 outputs=2 if indices else 1, how="exact")


def _average_pool(rng):
    attributes = {**_window(rng), "count_include_pad": int(rng.integers(0, 2))}
    return _made("AveragePool", _product_fill(rng), [("f32", (1, 2, 6, 5))],
                 attributes=attributes, how="sum")


def _global_pool(op, **options):
    def draw(rng):
        return _made(op, Fill(rng, **options), [("f32", (2, 3, *_shape(rng, 2, 2)))], how="sum")

    return draw


# Norms.
def _batch_norm(rng):
    fill, c = Fill(rng, ends=False), int(rng.integers(1, 4))
    draw = lambda: [fill.draw("f32", (2, c, 3, 2)), fill.draw("f32", (c,)), fill.draw("f32", (c,)),
                    fill.draw("f32", (c,)), rng.uniform(0.5, 2, c).astype(np.float32)]
    return Node("BatchNormalization", draw(), how="sum", refill=draw)


def _layer_norm(op):
    def draw(rng):
        shape = _shape(rng, 2, 3)
        fill = Fill(rng, ends=False)
        shapes = [("f32", shape), ("f32", shape[-1:])]
        if op == "LayerNormalization" and rng.random() < 0.5:
            shapes.append(("f32", shape[-1:]))
        return _made(op, fill, shapes, attributes={"axis": -1}, how="sum")

    return draw


def _instance_norm(rng):
    c = int(rng.integers(1, 4))
    return _made("InstanceNormalization", Fill(rng, ends=False),
                 [("f32", (2, c, 3, 4)), ("f32", (c,)), ("f32", (c,))], how="sum")


def _group_norm(rng):
    return _made("GroupNormalization", Fill(rng, ends=False),
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
            2, _made(op, fill, shapes, attributes=attributes, outputs=2, how="sum"), zero=0.25)

    return draw


# Operators that move elements.
def _moved(op, arguments):
    def draw(rng):
        dtype, shape = _any_type(rng), _shape(rng, 1, 3)
        constants, attributes, opset_outputs = arguments(rng, shape)
        return _made(op, Fill(rng), [(dtype, shape)], constants, attributes, opset_outputs,
                     how="exact")

    return draw


def _split_arguments(rng, shape):
    axis = int(rng.integers(0, len(shape)))
    first = int(rng.integers(1, shape[axis] + 1))
    if first == shape[axis]:
        return {1: _ints(first)}, {"axis": axis}, 1
    return {1: _ints(first, shape[axis] - first)}, {"axis": axis}, 2


def _slice(rng):
    dtype, shape = _number_type(rng), _shape(rng, 1, 3)
    axis = int(rng.integers(0, len(shape)))
    step = int(rng.choice([1, 2, -1, -2]))
    start, end = (int(x) for x in rng.integers(-shape[axis] - 3, shape[axis] + 4, 2))
    # A slice of no elements is not a kernel.
    bound = lambda at, low, high: min(max(at + shape[axis] if at < 0 else at, low), high)
    low, high = (0, shape[axis]) if step > 0 else (-1, shape[axis] - 1)
    begin = bound(start, 0, high)
    if (bound(end, low, high) - begin) * step <= 0:
        start, end = (0, shape[axis]) if step > 0 else (shape[axis] - 1, -shape[axis] - 9)
    return _made("Slice", Fill(rng), [(dtype, shape)],
                 {1: _ints(start), 2: _ints(end), 3: _ints(axis), 4: _ints(step)}, how="exact")


def _concat(rng):
    dtype, shape = _any_type(rng), _shape(rng)
    axis = int(rng.integers(0, len(shape)))
    shapes = []
    for _ in range(rng.integers(1, 5)):
        own = list(shape)
        own[axis] = int(rng.integers(1, 4))
        shapes.append((dtype, tuple(own)))
    return _made("Concat", Fill(rng), shapes, attributes={"axis": axis}, how="exact")


def _pad(rng):
    dtype, shape = str(rng.choice(["f32", "i32", "f64"])), _shape(rng)
    mode = str(rng.choice(["constant", "edge", "reflect"]))
    most = [2 if mode != "reflect" else max(0, n - 1) for n in shape]
    pads = [int(rng.integers(0, m + 1)) for m in most + most]
    constants = {1: _ints(*pads)}
    if mode == "constant":
        constants[2] = Fill(rng).draw(dtype, ())
    return _made("Pad", Fill(rng), [(dtype, shape)], constants, {"mode": mode}, how="exact")


def _places(rng, extent, shape, dtype=np.int64):
    return rng.integers(-extent, extent, shape).astype(dtype)


def _gather(rng):
    dtype, shape = _any_type(rng), _shape(rng)
    axis, fill = int(rng.integers(0, len(shape))), Fill(rng)
    draw = lambda: [fill.draw(dtype, shape), _places(rng, shape[axis], (2, 3))]
    return Node("Gather", draw(), {}, {"axis": axis}, how="exact", refill=draw)


def _gather_elements(rng):
    dtype, shape = _number_type(rng), _shape(rng)
    axis, fill = int(rng.integers(0, len(shape))), Fill(rng)
    draw = lambda: [fill.draw(dtype, shape), _places(rng, shape[axis], shape)]
    return Node("GatherElements", draw(), {}, {"axis": axis}, how="exact", refill=draw)


def _gather_nd(rng):
    fill = Fill(rng)
    draw = lambda: [fill.draw("f32", (3, 4, 2)),
                    np.stack([_places(rng, 3, (5,)), _places(rng, 4, (5,))], -1)]
    return Node("GatherND", draw(), how="exact", refill=draw)


def _scatter(op):
    def draw(rng):
        dtype, fill = str(rng.choice(["f32", "i32", "f64"])), Fill(rng, ends=False)
        reduction = str(rng.choice(["none", "add", "mul", "max", "min"]))
        if op == "Scatter":
            reduction = "none"
        if reduction in ("max", "min"):
            fill.nan = False  # as for other maxima
        def arrays():
            rows = np.stack([rng.permutation(5)[:3] for _ in range(4)]).astype(np.int64)
            return [fill.draw(dtype, (4, 5)), rows, fill.draw(dtype, (4, 3))]
        attributes = {"axis": 1}
        if op != "Scatter":
            attributes["reduction"] = reduction
        return Node(op, arrays(), {}, attributes, how="sum", refill=arrays)

    return draw


def _scatter_nd(rng):
    fill = Fill(rng, ends=False)
    reduction = str(rng.choice(["none", "add", "mul"]))
    def arrays():
        return [fill.draw("f32", (5, 3)), rng.permutation(5)[:3].reshape(3, 1).astype(np.int64),
                fill.draw("f32", (3, 3))]
    return Node("ScatterND", arrays(), {}, {"reduction": reduction}, how="sum", refill=arrays)


def _one_hot(rng):
    depth = int(rng.integers(1, 6))
    fill = Fill(rng)
    draw = lambda: [rng.integers(-depth - 2, depth + 2, (3, 2)).astype(np.int64),
                    np.array(depth, np.int64), fill.draw("f32", (2,))]
    return Node("OneHot", draw(), {1: True}, {"axis": int(rng.integers(-1, 2))}, how="exact",
                refill=draw)


def _reverse_sequence(rng):
    fill = Fill(rng)
    draw = lambda: [fill.draw("f32", (4, 3, 2)), rng.integers(1, 5, (3,)).astype(np.int64)]
    return Node("ReverseSequence", draw(), {}, {"time_axis": 0, "batch_axis": 1}, how="exact",
                refill=draw)


def _resize(op):
    def draw(rng):
        # Interpolation multiplies neighbours by 0, which of infinity is NaN.
        mode = "nearest" if op == "Upsample" else str(rng.choice(["nearest", "linear"]))
        fill = Fill(rng, infinite=mode == "nearest", nan=mode == "nearest", ends=False)
        scales = np.array([1, 1, 2, 2], np.float32)
        if op == "Upsample":
            return _made(op, fill, [("f32", (1, 2, 3, 4))], {1: scales}, {"mode": mode}, how="sum")
        node = _made(op, fill, [("f32", (1, 2, 3, 4))], {1: None, 2: scales}, {"mode": mode},
                     how="sum")
        return node

    return draw


def _cast(rng):
    source, target = str(rng.choice(["f32", "f64", "f16", "i32", "i64", "u8", "i8", "bool"])), None
    target = str(rng.choice(["f32", "f64", "f16", "bool"]))
    if source[0] in "iub" and rng.random() < 0.5:
        target = str(rng.choice(["i32", "i64", "u8", "i8"]))
    return _made("Cast", Fill(rng), [(source, _shape(rng))], attributes={"to": ONNX_TYPES[target]},
                 how="exact")


def _cast_to_integers(rng):
    """Within the range of the type; beyond it, ONNX does not define the result."""
    fill = Fill(rng, ends=False, nan=False, infinite=False, low=0, high=100)
    shape = _shape(rng)
    draw = lambda: [np.abs(fill.draw("f32", shape)), np.zeros(1, np.int32)]
    return Node("CastLike", draw(), how="exact", refill=draw)


def _alpha(*names):
    def draw(rng):
        return {name: float(np.float32(rng.choice([0.01, 0.5, 1.0, 2.0]))) for name in names}

    return draw


DRAWERS = {
    "Abs": _unary("Abs", _number_type, "exact"),
    "Acos": _trigonometric("Acos", low=-1, high=1),
    "Acosh": _trigonometric("Acosh", low=-3, high=50),
    "Add": _binary("Add"),
    "And": _binary("And", _bool),
    "ArgMax": _arg("ArgMax"),
    "ArgMin": _arg("ArgMin"),
    "Asin": _trigonometric("Asin", low=-1, high=1),
    "Asinh": _trigonometric("Asinh"),
    "Atan": _trigonometric("Atan"),
    "Atanh": _trigonometric("Atanh", low=-1, high=1),
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "BitShift": _bit_shift,
    "Cast": _cast,
    "CastLike": _cast_to_integers,
    "Ceil": _unary("Ceil", how="exact"),
    "Celu": _unary("Celu", lambda rng: "f32", attributes=_alpha("alpha")),
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "ConvTranspose": _conv_transpose,
    "Cos": _trigonometric("Cos", ends=False, low=-100, high=100),
    "Cosh": _trigonometric("Cosh", low=-90, high=90),
    "CumSum": _cum_sum,
    "DepthToSpace": lambda rng: _made("DepthToSpace", Fill(rng), [("f32", (1, 8, 2, 3))],
                                      attributes={"blocksize": 2}, how="exact"),
    "DequantizeLinear": _dequantize,
    "Div": _div,
    "Dropout": _unary("Dropout", how="exact"),
    "DynamicQuantizeLinear": _dynamic_quantize,
    "Einsum": _einsum,
    "Elu": _unary("Elu", attributes=_alpha("alpha")),
    "Equal": _binary("Equal", _any_type, "exact"),
    "Erf": _unary("Erf"),
    "Exp": _unary("Exp", low=-90, high=90),
    "Expand": _moved("Expand", lambda rng, shape: ({1: _ints(2, *shape)}, {}, 1)),
    "EyeLike": lambda rng: _made("EyeLike", Fill(rng), [("f32", (3, 4))],
                                 attributes={"k": int(rng.integers(-2, 3))}, how="exact"),
    "Flatten": _moved("Flatten", lambda rng, shape: (
        {}, {"axis": int(rng.integers(0, len(shape) + 1))}, 1)),
    "Floor": _unary("Floor", how="exact"),
    "GRU": _recurrent("GRU", 3),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    # Where 1 + erf(x) cancels, both references are less accurate than Hone.
    "Gelu": _unary("Gelu", lambda rng: "f32", how="sum",
                   attributes=lambda rng: {"approximate": str(rng.choice(["none", "tanh"]))}),
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool("GlobalAveragePool", ends=False),
    "GlobalMaxPool": _global_pool("GlobalMaxPool", nan=False),
    "Greater": _binary("Greater", how="exact"),
    "GreaterOrEqual": _binary("GreaterOrEqual", how="exact"),
    "GroupNormalization": _group_norm,
    "HardSigmoid": _unary("HardSigmoid", attributes=_alpha("alpha", "beta")),
    "HardSwish": _unary("HardSwish"),
    "Hardmax": _rows("Hardmax", lambda rng: "f32", "exact", nan=False),
    "Identity": _moved("Identity", lambda rng, shape: ({}, {}, 1)),
    "InstanceNormalization": _instance_norm,
    "IsInf": _unary("IsInf", lambda rng: "f32", "exact",
                    lambda rng: {"detect_negative": int(rng.integers(0, 2)),
                                 "detect_positive": int(rng.integers(0, 2))}),
    "IsNaN": _unary("IsNaN", lambda rng: str(rng.choice(["f32", "f16", "f64"])), "exact"),
    "LRN": _lrn,
    "LSTM": _recurrent("LSTM", 4),
    "LayerNormalization": _layer_norm("LayerNormalization"),
    "LeakyRelu": _unary("LeakyRelu", attributes=_alpha("alpha")),
    "Less": _binary("Less", how="exact"),
    "LessOrEqual": _binary("LessOrEqual", how="exact"),
    "Log": _unary("Log", low=0, high=10),
    "LogSoftmax": _rows("LogSoftmax", how="sum", ends=False),
    "LpNormalization": _lp_normalization,
    "MatMul": _mat_mul,
    "MatMulInteger": _mat_mul_integer,
    "Max": _variadic("Max", _number_type, "exact"),
    "MaxPool": _max_pool,
    "Mean": _variadic("Mean", how="sum", ends=False),
    "Min": _variadic("Min", _number_type, "exact"),
    "Mish": _unary("Mish"),
    "Mod": _mod,
    "Mul": _binary("Mul"),
    "Neg": _unary("Neg", lambda rng: str(rng.choice(["f32", "f16", "f64", "i32", "i8", "i64"])),
                  "exact"),
    "Not": _unary("Not", _bool, "exact"),
    "OneHot": _one_hot,
    "Or": _binary("Or", _bool),
    "PRelu": _prelu,
    "Pad": _pad,
    "Pow": _pow,
    "QLinearConv": _q_linear_conv,
    "QLinearMatMul": _q_linear_mat_mul,
    "QuantizeLinear": _quantize,
    "RNN": _recurrent("RNN", 1),
    "Reciprocal": _unary("Reciprocal"),
    "ReduceL1": _reduce("ReduceL1"),
    "ReduceL2": _reduce("ReduceL2"),
    "ReduceLogSum": _reduce("ReduceLogSum", low=0),
    "ReduceLogSumExp": _reduce("ReduceLogSumExp"),
    "ReduceMax": _reduce("ReduceMax", _number_type, "exact", nan=False),
    "ReduceMean": _reduce("ReduceMean"),
    "ReduceMin": _reduce("ReduceMin", _number_type, "exact", nan=False),
    "ReduceProd": _reduce("ReduceProd", how="each", low=-2, high=2),
    "ReduceSum": _reduce("ReduceSum"),
    "ReduceSumSquare": _reduce("ReduceSumSquare"),
    "Relu": _unary("Relu", _number_type, "exact"),
    "Reshape": _moved("Reshape", lambda rng, shape: ({1: _ints(-1)}, {}, 1)),
    "Resize": _resize("Resize"),
    "ReverseSequence": _reverse_sequence,
    "Round": _unary("Round", how="exact"),
    "Scatter": _scatter("Scatter"),
    "ScatterElements": _scatter("ScatterElements"),
    "ScatterND": _scatter_nd,
    "Selu": _unary("Selu"),
    "Shrink": _unary("Shrink", attributes=_alpha("lambd", "bias")),
    "Sigmoid": _unary("Sigmoid"),
    "Sign": _unary("Sign", _number_type, "exact"),
    "Sin": _trigonometric("Sin", ends=False, low=-100, high=100),
    "Sinh": _trigonometric("Sinh", low=-90, high=90),
    "Slice": _slice,
    "Softmax": _rows("Softmax", how="sum", ends=False),
    "Softplus": _unary("Softplus"),
    "Softsign": _unary("Softsign"),
    "SpaceToDepth": lambda rng: _made("SpaceToDepth", Fill(rng), [("f32", (1, 2, 4, 6))],
                                      attributes={"blocksize": 2}, how="exact"),
    "Split": _moved("Split", _split_arguments),
    "Sqrt": _unary("Sqrt", low=0),
    "Squeeze": _moved("Squeeze", lambda rng, shape: ({}, {}, 1)),
    "Sub": _binary("Sub"),
    "Sum": _variadic("Sum", how="sum", ends=False),
    "Tan": _trigonometric("Tan", ends=False, low=-100, high=100),
    "Tanh": _unary("Tanh"),
    "ThresholdedRelu": _unary("ThresholdedRelu", attributes=_alpha("alpha")),
    "Tile": _moved("Tile", lambda rng, shape: ({1: _ints(*rng.integers(1, 3, len(shape)))}, {}, 1)),
    "TopK": _top_k,
    "Transpose": _moved("Transpose", lambda rng, shape: (
        {}, {"perm": [int(x) for x in rng.permutation(len(shape))]}, 1)),
    "Trilu": lambda rng: _made("Trilu", Fill(rng), [("f32", (3, 4))],
                               {1: np.array(rng.integers(-2, 3), np.int64)},
                               {"upper": int(rng.integers(0, 2))}, how="exact"),
    "Unsqueeze": _moved("Unsqueeze", lambda rng, shape: (
        {1: _ints(int(rng.integers(0, len(shape) + 1)))}, {}, 1)),
    "Upsample": _resize("Upsample"),
    "Where": _where,
    "Xor": _binary("Xor", _bool),
}

# Operators that are computed when a model is read, and one that the references have in opset 23.
WITHOUT_CASES = {"Constant", "ConstantOfShape", "Range", "Shape", "Size", "RMSNormalization"}
