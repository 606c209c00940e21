"""Random nodes of every operator that ONNX models may contain, with special values as inputs.

A drawer returns a Node. Its inputs are drawn by Fill, which mixes ordinary numbers with zeros of
both signs, infinities, NaN, denormals and the ends of the type.
"""
import numpy as np

from special_fill import (NUMPY, ONNX_TYPES, Fill, Node, broadcast, float_type, ints, made,
                          number_type, some_shape)
from special_layers import LAYERS


def _unary(op, types=float_type, how="each", attributes=None, **options):
    def draw(rng):
        fill = Fill(rng, **options)
        given = attributes(rng) if attributes else {}
        return made(op, fill, [(types(rng), some_shape(rng, extent=9))], attributes=given, how=how)

    return draw


def _trigonometric(op, **options):
    return _unary(op, types=lambda rng: str(rng.choice(["f32", "f16"])), **options)


def _binary(op, types=number_type, how="each", attributes=None, **options):
    def draw(rng):
        fill, dtype = Fill(rng, **options), types(rng)
        shape = some_shape(rng, extent=7)
        one, two = shape, broadcast(rng, shape)
        if rng.random() < 0.5:
            one, two = two, one
        given = attributes(rng, dtype) if attributes else {}
        return made(op, fill, [(dtype, one), (dtype, two)], attributes=given, how=how)

    return draw


def _bool(rng):
    return "bool"


def _any_type(rng):
    return "bool" if rng.random() < 0.1 else number_type(rng)


def _div(rng):
    fill, dtype, shape = Fill(rng), number_type(rng), some_shape(rng, extent=7)
    node = made("Div", fill, [(dtype, shape), (dtype, shape)])
    return _nonzero(node, dtype)


def _mod(rng):
    fill, dtype, shape = Fill(rng), number_type(rng), some_shape(rng, extent=7)
    fmod = 1 if dtype[0] == "f" else int(rng.integers(0, 2))
    node = made("Mod", fill, [(dtype, shape), (dtype, shape)], attributes={"fmod": fmod},
                how="exact")
    if dtype == "f64":  # the remainder of a quotient that is not exact is rounded
        exact = lambda a: np.where(np.isfinite(a), np.clip(np.rint(a), -1e3, 1e3), a)
        node.refill = lambda: [exact(fill.draw(dtype, shape)), exact(fill.draw(dtype, shape))]
        node.inputs = node.refill()
    elif dtype[0] == "f" and rng.random() < 0.4:
        divisor = rng.choice(np.array([0.1, 1, 2, np.pi, 1e-3, 100, np.inf, 0, 1e30],
                                      NUMPY["f32"])).astype(NUMPY[dtype])
        return made("Mod", fill, [(dtype, shape)], {1: np.array(divisor)}, {"fmod": 1},
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
    shape = some_shape(rng)
    fill = Fill(rng)
    draw = lambda: [fill.draw("u8", shape), rng.integers(0, 8, shape).astype(np.uint8)]
    return Node("BitShift", draw(), {}, {"direction": str(rng.choice(["LEFT", "RIGHT"]))},
                how="exact", refill=draw)


def _pow(rng):
    fill, dtype, shape = Fill(rng, low=-4, high=4), float_type(rng), some_shape(rng, extent=7)
    if rng.random() < 0.5:
        exponent = rng.choice(np.array([0, 0.5, 1, 2, 3, -1, -2, -0.5, 0.25, np.inf, -np.inf,
                                        np.nan, 4, 5, 1.5]))
        return made("Pow", fill, [(dtype, shape)], {1: np.array(exponent, NUMPY[dtype])})
    if rng.random() < 0.3:
        draw = lambda: [rng.integers(-5, 6, shape).astype(np.int32),
                        rng.integers(0, 6, shape).astype(np.int32)]
        return Node("Pow", draw(), how="exact", refill=draw)
    return made("Pow", fill, [(dtype, shape), (dtype, broadcast(rng, shape))])


def _variadic(op, types=float_type, how="each", **options):
    def draw(rng):
        fill, dtype, shape = Fill(rng, **options), types(rng), some_shape(rng)
        shapes = [(dtype, shape)] + [(dtype, broadcast(rng, shape))
                                     for _ in range(rng.integers(0, 4))]
        order = rng.permutation(len(shapes))
        return made(op, fill, [shapes[i] for i in order], how=how)

    return draw


def _clip(rng):
    fill, dtype, shape = Fill(rng), float_type(rng), some_shape(rng)
    bounds = np.sort(rng.choice(fill.specials(dtype)[:12], 2))
    if rng.random() < 0.5:
        return made("Clip", fill, [(dtype, shape)],
                    {1: np.array(bounds[0]), 2: np.array(bounds[1])})
    draw = lambda: [fill.draw(dtype, shape), np.array(bounds[0]), np.array(bounds[1])]
    return Node("Clip", draw(), how="exact", refill=draw)


def _where(rng):
    fill, dtype, shape = Fill(rng), number_type(rng), some_shape(rng)
    return made("Where", fill, [("bool", broadcast(rng, shape)), (dtype, shape),
                                (dtype, broadcast(rng, shape))], how="exact")


def _prelu(rng):
    fill, shape = Fill(rng), some_shape(rng)
    dtype = float_type(rng)
    return made("PRelu", fill, [(dtype, shape), (dtype, broadcast(rng, shape))])


# Reductions. Sums of the largest numbers depend on the order of the terms.
def _reduce(op, types=float_type, how="sum", **options):
    def draw(rng):
        dtype, shape = types(rng), some_shape(rng, extent=6)
        fill = Fill(rng, ends=False, **options)
        axes = rng.permutation(len(shape))[:rng.integers(1, len(shape) + 1)]
        attributes = {"keepdims": int(rng.integers(0, 2))}
        return made(op, fill, [(dtype, shape)], {1: ints(*axes)}, attributes, how=how)

    return draw


def _rows(op, types=float_type, how="each", outputs=1, **options):
    def draw(rng):
        dtype, shape = types(rng), some_shape(rng, extent=7)
        fill = Fill(rng, **options)
        attributes = {"axis": int(rng.integers(-len(shape), len(shape)))}
        return made(op, fill, [(dtype, shape)], attributes=attributes, how=how, outputs=outputs)

    return draw


def _arg(op):
    def draw(rng):
        # Where NaN is not the first element, ONNX Runtime ignores it.
        fill = Fill(rng, nan=rng.random() < 0.3)
        dtype, shape = str(rng.choice(["f32", "f64", "i32", "u8", "i8"])), some_shape(rng, extent=7)
        attributes = {"axis": int(rng.integers(-len(shape), len(shape))),
                      "keepdims": int(rng.integers(0, 2)),
                      "select_last_index": int(rng.integers(0, 2))}
        return made(op, fill, [(dtype, shape)], attributes=attributes, how="exact")

    return draw


def _top_k(rng):
    fill, dtype = Fill(rng), str(rng.choice(["f32", "f64", "i32", "i64"]))
    shape = some_shape(rng, extent=9)
    axis = int(rng.integers(0, len(shape)))
    k = int(rng.integers(1, shape[axis] + 1))
    return made("TopK", fill, [(dtype, shape)], {1: ints(k)},
                {"axis": axis, "largest": int(rng.integers(0, 2))}, outputs=2, how="exact")


def _cum_sum(rng):
    dtype, shape = str(rng.choice(["f32", "f64", "i32"])), some_shape(rng)
    fill = Fill(rng, ends=False)
    axis = int(rng.integers(0, len(shape)))
    return made("CumSum", fill, [(dtype, shape)], {1: np.array(axis, np.int64)},
                {"exclusive": int(rng.integers(0, 2)), "reverse": int(rng.integers(0, 2))},
                how="sum")


def _lp_normalization(rng):
    fill, shape = Fill(rng, ends=False), some_shape(rng)
    return made("LpNormalization", fill, [(str(rng.choice(["f32", "f64"])), shape)], attributes={
        "axis": int(rng.integers(0, len(shape))), "p": int(rng.integers(1, 3))})


def _lrn(rng):
    fill = Fill(rng, ends=False)
    shape = (1, int(rng.integers(1, 7)), 2, 3)
    return made("LRN", fill, [("f32", shape)], attributes={"size": int(rng.choice([1, 3, 5])),
                                                           "bias": 1.0, "alpha": 1e-2})


# Operators that move elements.
def _moved(op, arguments):
    def draw(rng):
        dtype, shape = _any_type(rng), some_shape(rng, 1, 3)
        constants, attributes, opset_outputs = arguments(rng, shape)
        return made(op, Fill(rng), [(dtype, shape)], constants, attributes, opset_outputs,
                    how="exact")

    return draw


def _split_arguments(rng, shape):
    axis = int(rng.integers(0, len(shape)))
    first = int(rng.integers(1, shape[axis] + 1))
    if first == shape[axis]:
        return {1: ints(first)}, {"axis": axis}, 1
    return {1: ints(first, shape[axis] - first)}, {"axis": axis}, 2


def _slice(rng):
    dtype, shape = number_type(rng), some_shape(rng, 1, 3)
    axis = int(rng.integers(0, len(shape)))
    step = int(rng.choice([1, 2, -1, -2]))
    start, end = (int(x) for x in rng.integers(-shape[axis] - 3, shape[axis] + 4, 2))
    # A slice of no elements is not a kernel.
    bound = lambda at, low, high: min(max(at + shape[axis] if at < 0 else at, low), high)
    low, high = (0, shape[axis]) if step > 0 else (-1, shape[axis] - 1)
    begin = bound(start, 0, high)
    if (bound(end, low, high) - begin) * step <= 0:
        start, end = (0, shape[axis]) if step > 0 else (shape[axis] - 1, -shape[axis] - 9)
    return made("Slice", Fill(rng), [(dtype, shape)],
                {1: ints(start), 2: ints(end), 3: ints(axis), 4: ints(step)}, how="exact")


def _concat(rng):
    dtype, shape = _any_type(rng), some_shape(rng)
    axis = int(rng.integers(0, len(shape)))
    shapes = []
    for _ in range(rng.integers(1, 5)):
        own = list(shape)
        own[axis] = int(rng.integers(1, 4))
        shapes.append((dtype, tuple(own)))
    return made("Concat", Fill(rng), shapes, attributes={"axis": axis}, how="exact")


def _pad(rng):
    dtype, shape = str(rng.choice(["f32", "i32", "f64"])), some_shape(rng)
    mode = str(rng.choice(["constant", "edge", "reflect"]))
    most = [2 if mode != "reflect" else max(0, n - 1) for n in shape]
    pads = [int(rng.integers(0, m + 1)) for m in most + most]
    constants = {1: ints(*pads)}
    if mode == "constant":
        constants[2] = Fill(rng).draw(dtype, ())
    return made("Pad", Fill(rng), [(dtype, shape)], constants, {"mode": mode}, how="exact")


def _places(rng, extent, shape, dtype=np.int64):
    return rng.integers(-extent, extent, shape).astype(dtype)


def _gather(rng):
    dtype, shape = _any_type(rng), some_shape(rng)
    axis, fill = int(rng.integers(0, len(shape))), Fill(rng)
    draw = lambda: [fill.draw(dtype, shape), _places(rng, shape[axis], (2, 3))]
    return Node("Gather", draw(), {}, {"axis": axis}, how="exact", refill=draw)


def _gather_elements(rng):
    dtype, shape = number_type(rng), some_shape(rng)
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
            return made(op, fill, [("f32", (1, 2, 3, 4))], {1: scales}, {"mode": mode}, how="sum")
        node = made(op, fill, [("f32", (1, 2, 3, 4))], {1: None, 2: scales}, {"mode": mode},
                    how="sum")
        return node

    return draw


def _cast(rng):
    source, target = str(rng.choice(["f32", "f64", "f16", "i32", "i64", "u8", "i8", "bool"])), None
    target = str(rng.choice(["f32", "f64", "f16", "bool"]))
    if source[0] in "iub" and rng.random() < 0.5:
        target = str(rng.choice(["i32", "i64", "u8", "i8"]))
    return made("Cast", Fill(rng), [(source, some_shape(rng))],
                attributes={"to": ONNX_TYPES[target]}, how="exact")


def _cast_to_integers(rng):
    """Within the range of the type; beyond it, ONNX does not define the result."""
    fill = Fill(rng, ends=False, nan=False, infinite=False, low=0, high=100)
    shape = some_shape(rng)
    draw = lambda: [np.abs(fill.draw("f32", shape)), np.zeros(1, np.int32)]
    return Node("CastLike", draw(), how="exact", refill=draw)


def _alpha(*names):
    def draw(rng):
        return {name: float(np.float32(rng.choice([0.01, 0.5, 1.0, 2.0]))) for name in names}

    return draw


DRAWERS = {
    **LAYERS,
    "Abs": _unary("Abs", number_type, "exact"),
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
    "BitShift": _bit_shift,
    "Cast": _cast,
    "CastLike": _cast_to_integers,
    "Ceil": _unary("Ceil", how="exact"),
    "Celu": _unary("Celu", lambda rng: "f32", attributes=_alpha("alpha")),
    "Clip": _clip,
    "Concat": _concat,
    "Cos": _trigonometric("Cos", ends=False, low=-100, high=100),
    "Cosh": _trigonometric("Cosh", low=-90, high=90),
    "CumSum": _cum_sum,
    "DepthToSpace": lambda rng: made("DepthToSpace", Fill(rng), [("f32", (1, 8, 2, 3))],
                                     attributes={"blocksize": 2}, how="exact"),
    "Div": _div,
    "Dropout": _unary("Dropout", how="exact"),
    "Elu": _unary("Elu", attributes=_alpha("alpha")),
    "Equal": _binary("Equal", _any_type, "exact"),
    "Erf": _unary("Erf"),
    "Exp": _unary("Exp", low=-90, high=90),
    "Expand": _moved("Expand", lambda rng, shape: ({1: ints(2, *shape)}, {}, 1)),
    "EyeLike": lambda rng: made("EyeLike", Fill(rng), [("f32", (3, 4))],
                                attributes={"k": int(rng.integers(-2, 3))}, how="exact"),
    "Flatten": _moved("Flatten", lambda rng, shape: (
        {}, {"axis": int(rng.integers(0, len(shape) + 1))}, 1)),
    "Floor": _unary("Floor", how="exact"),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    # Where 1 + erf(x) cancels, both references are less accurate than Hone.
    "Gelu": _unary("Gelu", lambda rng: "f32", how="sum",
                   attributes=lambda rng: {"approximate": str(rng.choice(["none", "tanh"]))}),
    "Greater": _binary("Greater", how="exact"),
    "GreaterOrEqual": _binary("GreaterOrEqual", how="exact"),
    "HardSigmoid": _unary("HardSigmoid", attributes=_alpha("alpha", "beta")),
    "HardSwish": _unary("HardSwish"),
    "Hardmax": _rows("Hardmax", lambda rng: "f32", "exact", nan=False),
    "Identity": _moved("Identity", lambda rng, shape: ({}, {}, 1)),
    "IsInf": _unary("IsInf", lambda rng: "f32", "exact",
                    lambda rng: {"detect_negative": int(rng.integers(0, 2)),
                                 "detect_positive": int(rng.integers(0, 2))}),
    "IsNaN": _unary("IsNaN", lambda rng: str(rng.choice(["f32", "f16", "f64"])), "exact"),
    "LRN": _lrn,
    "LeakyRelu": _unary("LeakyRelu", attributes=_alpha("alpha")),
    "Less": _binary("Less", how="exact"),
    "LessOrEqual": _binary("LessOrEqual", how="exact"),
    "Log": _unary("Log", low=0, high=10),
    "LogSoftmax": _rows("LogSoftmax", how="sum", ends=False),
    "LpNormalization": _lp_normalization,
    "Max": _variadic("Max", number_type, "exact"),
    "Mean": _variadic("Mean", how="sum", ends=False),
    "Min": _variadic("Min", number_type, "exact"),
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
    "Reciprocal": _unary("Reciprocal"),
    "ReduceL1": _reduce("ReduceL1"),
    "ReduceL2": _reduce("ReduceL2"),
    "ReduceLogSum": _reduce("ReduceLogSum", low=0),
    "ReduceLogSumExp": _reduce("ReduceLogSumExp"),
    "ReduceMax": _reduce("ReduceMax", number_type, "exact", nan=False),
    "ReduceMean": _reduce("ReduceMean"),
    "ReduceMin": _reduce("ReduceMin", number_type, "exact", nan=False),
    "ReduceProd": _reduce("ReduceProd", how="each", low=-2, high=2),
    "ReduceSum": _reduce("ReduceSum"),
    "ReduceSumSquare": _reduce("ReduceSumSquare"),
    "Relu": _unary("Relu", number_type, "exact"),
    "Reshape": _moved("Reshape", lambda rng, shape: ({1: ints(-1)}, {}, 1)),
    "Resize": _resize("Resize"),
    "ReverseSequence": _reverse_sequence,
    "Round": _unary("Round", how="exact"),
    "Scatter": _scatter("Scatter"),
    "ScatterElements": _scatter("ScatterElements"),
    "ScatterND": _scatter_nd,
    "Selu": _unary("Selu"),
    "Shrink": _unary("Shrink", attributes=_alpha("lambd", "bias")),
    "Sigmoid": _unary("Sigmoid"),
    "Sign": _unary("Sign", number_type, "exact"),
    "Sin": _trigonometric("Sin", ends=False, low=-100, high=100),
    "Sinh": _trigonometric("Sinh", low=-90, high=90),
    "Slice": _slice,
    "Softmax": _rows("Softmax", how="sum", ends=False),
    "Softplus": _unary("Softplus"),
    "Softsign": _unary("Softsign"),
    "SpaceToDepth": lambda rng: made("SpaceToDepth", Fill(rng), [("f32", (1, 2, 4, 6))],
                                     attributes={"blocksize": 2}, how="exact"),
    "Split": _moved("Split", _split_arguments),
    "Sqrt": _unary("Sqrt", low=0),
    "Squeeze": _moved("Squeeze", lambda rng, shape: ({}, {}, 1)),
    "Sub": _binary("Sub"),
    "Sum": _variadic("Sum", how="sum", ends=False),
    "Tan": _trigonometric("Tan", ends=False, low=-100, high=100),
    "Tanh": _unary("Tanh"),
    "ThresholdedRelu": _unary("ThresholdedRelu", attributes=_alpha("alpha")),
    "Tile": _moved("Tile", lambda rng, shape: ({1: ints(*rng.integers(1, 3, len(shape)))}, {}, 1)),
    "TopK": _top_k,
    "Transpose": _moved("Transpose", lambda rng, shape: (
        {}, {"perm": [int(x) for x in rng.permutation(len(shape))]}, 1)),
    "Trilu": lambda rng: made("Trilu", Fill(rng), [("f32", (3, 4))],
                              {1: np.array(rng.integers(-2, 3), np.int64)},
                              {"upper": int(rng.integers(0, 2))}, how="exact"),
    "Unsqueeze": _moved("Unsqueeze", lambda rng, shape: (
        {1: ints(int(rng.integers(0, len(shape) + 1)))}, {}, 1)),
    "Upsample": _resize("Upsample"),
    "Where": _where,
    "Xor": _binary("Xor", _bool),
}

# Operators that are computed when a model is read, and those that the references have in newer opsets.
WITHOUT_CASES = {"Constant", "ConstantOfShape", "Range", "Shape", "Size", "RMSNormalization", "Attention", "RotaryEmbedding",
                 "SimplifiedLayerNormalization", "Swish", "TensorScatter"}
# Operators that choose nodes or elements when a model is read.
WITHOUT_CASES |= {"BlackmanWindow", "CenterCropPad", "Compress", "ConcatFromSequence", "HammingWindow",
                  "HannWindow", "If", "Loop", "MelWeightMatrix", "NonMaxSuppression", "NonZero",
                  "Optional", "OptionalGetElement", "OptionalHasElement", "Scan", "SequenceAt",
                  "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
                  "SequenceLength", "SequenceMap", "SplitToSequence", "Unique"}
# Operators that the importer replaces by others, which have cases of their own, and determinants.
WITHOUT_CASES |= {"AffineGrid", "Col2Im", "DFT", "DeformConv", "Det", "GridSample", "MaxUnpool", "MeanVarianceNormalization",
                  "NegativeLogLikelihoodLoss", "RoiAlign", "STFT", "SoftmaxCrossEntropyLoss"}
