"""Definitions of the operators in Hone's library, written from its documentation.

The definitions follow the text of `hone operators OP` and the literature, not Hone's formulas: for
example, they need not multiply by a reciprocal or shift before an exponential where Hone does.
Their inputs are Numbers of the type in which the operator computes.
"""
from dataclasses import dataclass
from typing import Callable

import numpy as np

import dtypes
import shapes
from number import Number, contract, normal_cdf
from policy import ELEMENTARY_ROUNDINGS

_FLOATS = ("uniform", "normal", "whole")


@dataclass(frozen=True)
class Operator:
    define: Callable  # (arguments, inputs by name) -> list of outputs
    draw: Callable  # (rng) -> the keys of an instance
    fillings: tuple = _FLOATS
    floats_only: bool = False
    fixed_types: bool = False


def _one(function):
    return lambda arguments, inputs: [function(arguments, inputs)]


def _constant(like, value):
    number = Number.constant(like.dtype, value, like.value.ndim)
    number.each_rounds = like.each_rounds
    return number


def _row(vector, ndim):
    """A vector along the last of ndim dimensions."""
    return vector.reshaped(lambda array: array.reshape((1,) * (ndim - 1) + array.shape[-1:]))


# -- products -----------------------------------------------------------------------------------


def _product(subscripts, a="A", b="B"):
    return _one(lambda arguments, x: contract(subscripts, x[a], x[b]).stored())


def _affine(x, weight, bias):
    product = contract("mk,kn->mn", x, weight).stored()
    return (product + _row(bias, 2)).stored()


def _relu(x):
    return x.maximum(_constant(x, 0))


def _curve(x, value, slope):
    """A function of one number with a small relative error everywhere, see policy.py. `slope`: the
    largest factor by which it magnifies an error of x."""
    with np.errstate(all="ignore"):
        name = dtypes.arithmetic(x.dtype)
        own = (ELEMENTARY_ROUNDINGS + 3) * dtypes.roundoff(name) * np.abs(value)
        error = own + dtypes.DTYPES[name].tiny + slope * x.error
    return Number(x.dtype, value, error, each_rounds=x.each_rounds).stored()


def _gelu(x):
    """x/2 * (1 + erf(x / sqrt 2)): x times the distribution function of the normal distribution."""
    result = _curve(x, x.value * normal_cdf(x.value), 1.2)
    # Where the distribution function is denormal, its error is multiplied by x.
    result.error = result.error + np.abs(x.value) * dtypes.DTYPES[dtypes.arithmetic(x.dtype)].tiny
    return result


def _silu(x):
    with np.errstate(all="ignore"):
        small = np.exp(-np.abs(x.value))
        return _curve(x, np.where(x.value >= 0, x.value, x.value * small) / (1 + small), 1.2)


def _mlp(arguments, x):
    hidden = _gelu(_affine(x["X"], x["W1"], x["Bias1"]))
    return [_affine(hidden, x["W2"], x["Bias2"])]


def _softmax(x, axis=-1):
    top = np.max(x.value, axis=axis, keepdims=True)
    rise = np.max(np.broadcast_to(x.error, x.value.shape), axis=axis, keepdims=True)
    top = Number(x.dtype, top, rise, each_rounds=x.each_rounds)
    powers = (x - top).apply("exp").stored()
    total = powers.sum((axis,)).stored()
    return powers, total.reshaped(lambda array: np.expand_dims(array, axis))


def _attention(arguments, x):
    scores = contract("bhsd,bhtd->bhst", x["Q"], x["K"]).stored()
    root = float(np.sqrt(float(arguments["d"])))
    powers, total = _softmax(scores / _constant(scores, root))
    values = contract("bhst,bhtd->bhsd", powers, x["V"]).stored()
    # Dividing after the second product gives the same in real arithmetic.
    return [(values / total).stored()]


def _lstm_cell(arguments, x):
    h = arguments["h"]
    gates = contract("bi,ig->bg", x["X"], x["Wx"]).stored()
    gates = (gates + contract("bh,hg->bg", x["H"], x["Wh"]).stored()).stored()
    gates = (gates + _row(x["Bias"], 2)).stored()
    i, f, g, o = (gates[:, k * h:(k + 1) * h] for k in range(4))
    cell = f.apply("sigmoid") * x["C"] + i.apply("sigmoid") * g.apply("tanh")
    cell = cell.stored()
    return [cell, (o.apply("sigmoid") * cell.apply("tanh")).stored()]


# -- convolutions and windows ---------------------------------------------------------------------


def _windows(arguments, dimensions, stride_is_kernel=False):
    """(extent, kernel, stride, padding, dilation) of each dimension, with defaults."""
    found = []
    for dimension in dimensions:
        suffix = "" if len(dimensions) == 1 else dimension
        kernel = arguments.get("k" + suffix, arguments.get("k"))
        found.append((arguments[dimension], kernel,
                      arguments.get("s" + suffix,
                                    arguments.get("s", kernel if stride_is_kernel else 1)),
                      arguments.get("p" + suffix, arguments.get("p", 0)),
                      arguments.get("dil", 1)))
    return found


def _patches(x, windows):
    """X[n, spatial, ...] with output positions instead of the spatial dimensions, and with the taps
    as the last dimensions. Also returns whether each tap lies inside."""
    value, error = x.value, np.broadcast_to(x.error, x.value.shape)
    spatial = x.value.shape[1:1 + len(windows)]
    inside = np.ones((1, *spatial) + (1,) * (x.value.ndim - 1 - len(windows)), bool)
    for axis, (extent, kernel, stride, padding, dilation) in enumerate(windows, start=1):
        count = (extent + 2 * padding - (kernel - 1) * dilation - 1) // stride + 1
        at = (np.arange(count)[:, None] * stride - padding + np.arange(kernel) * dilation)
        valid = (0 <= at) & (at < extent)
        at = np.clip(at, 0, extent - 1)

        def taken(array):
            array = np.take(array, at.reshape(-1), axis=axis)
            array = array.reshape(array.shape[:axis] + at.shape + array.shape[axis + 1:])
            return np.moveaxis(array, axis + 1, -1)

        value, error = taken(value), taken(error)
        shape = [1] * (inside.ndim + 1)
        shape[axis], shape[-1] = at.shape
        inside = taken(inside) & valid.reshape(shape)
    return Number(x.dtype, value, error, each_rounds=x.each_rounds), inside


def _padded_patches(x, windows):
    """The same for an image that is padded with zeros."""
    patches, inside = _patches(x, windows)
    zero = np.zeros((), patches.value.dtype)
    value = np.where(inside, patches.value, zero)
    return Number(x.dtype, value, np.where(inside, patches.error, 0.0), each_rounds=x.each_rounds)


_TAPS = "xyz"


def _convolve(arguments, x, weight, dimensions):
    """Channels last: X[n, spatial, ci], W[taps, ci/groups, co]."""
    rank = len(dimensions)
    windows = _windows(arguments, dimensions)
    patches = _padded_patches(x, windows)
    groups = arguments.get("groups", 1)
    taps, places = _TAPS[:rank], "def"[:rank]
    spec = f"n{places}c{taps},{taps}co->n{places}o"
    inner, outer = x.value.shape[-1] // groups, weight.value.shape[-1] // groups
    parts = []
    for g in range(groups):
        channels = patches.reshaped(
            lambda array: array[(slice(None),) * (rank + 1) + (slice(g * inner, (g + 1) * inner),)])
        parts.append(contract(spec, channels, weight[..., g * outer:(g + 1) * outer]))
    value = np.concatenate([part.value for part in parts], -1)
    error = np.concatenate([np.broadcast_to(part.error, part.value.shape) for part in parts], -1)
    return Number(x.dtype, value, error, each_rounds=x.each_rounds).stored()


def _convolution(dimensions):
    return _one(lambda arguments, x: _convolve(arguments, x["X"], x["W"], dimensions))


def _conv2d_nchw(arguments, x):
    image = x["X"].transpose(0, 2, 3, 1)
    weight = x["W"].transpose(2, 3, 1, 0)
    return [_convolve(arguments, image, weight, "hw").transpose(0, 3, 1, 2)]


def _conv2d_bn_relu(arguments, x):
    y = _convolve(arguments, x["X"], x["W"], "hw")
    y = (y + _row(x["Bias"], 4)) * _row(x["Scale"], 4) + _row(x["Offset"], 4)
    return [_relu(y).stored()]


def _depthwise(arguments, x):
    patches = _padded_patches(x["X"], _windows(arguments, "hw"))
    return [contract("ndecxy,xyc->ndec", patches, x["W"]).stored()]


def _capsule(arguments, x):
    patches = _padded_patches(x["X"], _windows(arguments, "hw"))
    return [contract("ndeikcxy,xykjco->ndeijo", patches, x["W"]).stored()]


def _conv2d_transpose(arguments, x):
    image, weight = x["X"], x["W"]
    n, _, _, _ = image.value.shape
    (h, kh, sh, ph, _), (w, kw, sw, pw, _) = _windows(arguments, "hw")
    co = weight.value.shape[-1]
    shape = (n, (h - 1) * sh + kh, (w - 1) * sw + kw, co)
    if not image.is_float:
        full = [np.zeros(shape, image.value.dtype)]
    else:
        full = [np.zeros(shape) for _ in range(4)]  # value, magnitude, carried, count
    for r in range(kh):
        for s in range(kw):
            window = (slice(None), slice(r, r + (h - 1) * sh + 1, sh),
                      slice(s, s + (w - 1) * sw + 1, sw))
            full[0][window] += np.einsum("nhwc,co->nhwo", image.value, weight.value[r, s])
            if image.is_float:
                full[1][window] += np.einsum("nhwc,co->nhwo", np.abs(image.value),
                                             np.abs(weight.value[r, s]))
                full[3][window] += image.value.shape[-1]
    inner = (slice(None), slice(ph, shape[1] - ph), slice(pw, shape[2] - pw))
    full = [array[inner] for array in full]
    if not image.is_float:
        return [Number(image.dtype, full[0])]
    value, magnitude, carried, count = full
    whole = all((part.value == np.rint(part.value)).all() for part in (image, weight))
    y = image._of_sum(value, carried, magnitude, count, np.bool_(whole))
    if not whole:
        y = image._like(value, y.error + magnitude * dtypes.roundoff(dtypes.arithmetic(y.dtype)))
    return [y.stored()]


# Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, section 4.3: F(4x4, 3x3).
_WINOGRAD_B = np.array([
    [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]], float)
_WINOGRAD_A = np.array([
    [1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], float)
WINOGRAD_G = np.array([
    [1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
    [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]])


def _winograd(arguments, x):
    image, weight = x["X"].value, x["U"].value
    n, h, w, _ = image.shape
    co = weight.shape[-1]
    rows, columns = -(-(h - 2) // 4), -(-(w - 2) // 4)
    padded = np.pad(image, ((0, 0), (0, rows * 4 + 2 - h), (0, columns * 4 + 2 - w), (0, 0)))
    value, bound = np.zeros((2, n, rows * 4, columns * 4, co))
    for r in range(rows):
        for s in range(columns):
            tile = padded[:, 4 * r:4 * r + 6, 4 * s:4 * s + 6]
            place = (slice(None), slice(4 * r, 4 * r + 4), slice(4 * s, 4 * s + 4))
            for out, sign in ((value, lambda m: m), (bound, np.abs)):
                transformed = np.einsum("xi,nijc,yj->nxyc", sign(_WINOGRAD_B), sign(tile),
                                        sign(_WINOGRAD_B))
                product = np.einsum("nxyc,xyco->nxyo", transformed, sign(weight))
                out[place] = np.einsum("xi,nijo,yj->nxyo", sign(_WINOGRAD_A), product,
                                       sign(_WINOGRAD_A))
    number = x["X"]
    u = dtypes.roundoff(number.dtype if number.each_rounds else dtypes.arithmetic(number.dtype))
    # Two transforms of up to six terms along two dimensions each, and the sum over channels.
    error = u * (24 + 4 * np.sqrt(image.shape[-1])) * bound
    y = Number(number.dtype, value, error, each_rounds=number.each_rounds)
    return [y[:, :h - 2, :w - 2].stored()]


def _max_pool(arguments, x):
    patches, inside = _patches(x["X"], _windows(arguments, "hw", stride_is_kernel=True))
    return [patches.extreme((-2, -1), True, inside)]


def _avg_pool(arguments, x):
    patches, inside = _patches(x["X"], _windows(arguments, "hw", stride_is_kernel=True))
    total = patches.sum((-2, -1), inside).stored()
    kernel = inside.shape[-1] * inside.shape[-2]
    count = inside.sum((-2, -1)) if arguments.get("pad_counts", 1) == 0 else np.array(kernel)
    count = np.broadcast_to(count, np.broadcast_shapes(count.shape, (1, 1, 1, 1)))
    return [(total / Number(total.dtype, count.astype(float))).stored()]


def _global_avg_pool(arguments, x):
    total = x["X"].sum((1, 2)).stored()
    return [(total / _constant(total, arguments["h"] * arguments["w"])).stored()]


# -- rows -----------------------------------------------------------------------------------------


def _softmax_rows(arguments, x):
    powers, total = _softmax(x["X"])
    return [(powers / total).stored()]


def _norm(arguments, x):
    return [(x["X"] * x["X"]).sum((1, 2)).stored().apply("sqrt").stored()]


def _mean(x):
    total = x.sum((-1,)).stored().reshaped(lambda array: array[..., None])
    return (total / _constant(total, x.value.shape[-1])).stored()


def _layer_norm(arguments, x):
    # Differences from the first element: a common offset costs no digits, see policy.py.
    distance = x["X"] - x["X"][:, :1]
    deviation = (distance - _mean(distance)).stored()
    variance = _mean(deviation * deviation)
    scale = (variance + _constant(variance, 1e-5)).apply("rsqrt").stored()
    return [(deviation * scale * _row(x["Gamma"], 2) + _row(x["Beta"], 2)).stored()]


def _rms_norm(arguments, x):
    mean = _mean(x["X"] * x["X"])
    scale = (mean + _constant(mean, 1e-5)).apply("rsqrt").stored()
    return [(x["X"] * scale * _row(x["Gamma"], 2)).stored()]


def _reduced_axis(arguments):
    return 0 if arguments.get("axis", 1) == 0 else 1


def _reduce_mean(arguments, x):
    axis = _reduced_axis(arguments)
    total = x["X"].sum((axis,)).stored()
    return [(total / _constant(total, x["X"].value.shape[axis])).stored()]


def _argmax(arguments, x):
    number = x["X"] if _reduced_axis(arguments) == 1 else x["X"].transpose(1, 0)
    best = number.extreme((1,), True)
    if not number.is_float:
        return [best, Number("i32", np.argmax(number.value, 1).astype(np.int32))]
    is_best = number.value == best.value[:, None]
    at = np.where(is_best.any(1), np.argmax(is_best, 1), -1)  # -1 if all are NaN
    return [best, Number("i32", at.astype(np.int32))]


def _elementwise(function):
    return _one(lambda arguments, x: function(x).stored())


_MATMUL = lambda rng: shapes.keys(rng, m=65, n=65, k=65)
_ROWS = lambda rng: shapes.keys(rng, m=65, n=65)
_BATCH = lambda rng: shapes.keys(rng, b=3, m=33, n=33)
_EVERY = ("uniform", "normal", "whole", "special")
_CURVES = ("normal", "wide", "very_wide", "denormal")

OPERATORS = {
    "matmul": Operator(_product("mk,kn->mn"), _MATMUL, (*_FLOATS, "ones")),
    "batch_matmul": Operator(_product("bmk,bkn->bmn"),
                             lambda rng: shapes.keys(rng, b=3, m=33, n=33, k=33)),
    "transpose_batch_matmul": Operator(_product("bihd,bjhd->bhij"),
                                       lambda rng: shapes.keys(rng, b=2, s=33, h=3, d=33)),
    "dense": Operator(_one(lambda arguments, x: _affine(x["X"], x["W"], x["Bias"])), _MATMUL),
    "dense_relu": Operator(
        _one(lambda arguments, x: _relu(contract("mk,kn->mn", x["A"], x["W"])).stored()), _MATMUL),
    "dense_gelu": Operator(
        _one(lambda arguments, x: _gelu(_affine(x["X"], x["W"], x["Bias"]))), _MATMUL,
        floats_only=True),
    "mlp": Operator(_mlp, lambda rng: shapes.keys(rng, m=33, k=33, h=48, n=33), floats_only=True),
    "attention": Operator(_attention, shapes.attention, floats_only=True),
    "lstm_cell": Operator(_lstm_cell, lambda rng: shapes.keys(rng, b=9, i=33, h=33),
                          floats_only=True),
    "conv1d": Operator(_convolution("l"), lambda rng: shapes.convolution(rng, "l", 48)),
    "conv2d": Operator(_convolution("hw"), lambda rng: shapes.convolution(rng, "hw", 17)),
    "conv3d": Operator(_convolution("dhw"),
                       lambda rng: shapes.convolution(rng, "dhw", 7, channels=5)),
    "conv2d_nchw": Operator(_conv2d_nchw, lambda rng: shapes.convolution(rng, "hw", 17)),
    "conv2d_bn_relu": Operator(_conv2d_bn_relu, lambda rng: shapes.convolution(rng, "hw", 13)),
    "depthwise_conv2d": Operator(_depthwise, shapes.depthwise),
    "conv2d_transpose": Operator(_conv2d_transpose, shapes.transposed),
    "capsule_conv2d": Operator(_capsule, shapes.capsule),
    "winograd_conv2d": Operator(_winograd, shapes.winograd, floats_only=True),
    "max_pool2d": Operator(_max_pool, shapes.pooling, _EVERY),
    "avg_pool2d": Operator(_avg_pool, shapes.average, floats_only=True),
    "global_avg_pool": Operator(_global_avg_pool,
                                lambda rng: shapes.keys(rng, n=3, h=13, w=13, c=65),
                                floats_only=True),
    "softmax": Operator(_softmax_rows, _ROWS, ("normal", "wide"), floats_only=True),
    "norm": Operator(_norm, _BATCH, (*_FLOATS, "offset"), floats_only=True),
    "layer_norm": Operator(_layer_norm, _ROWS, ("normal", "offset", "wide"), floats_only=True),
    "rms_norm": Operator(_rms_norm, _ROWS, ("normal", "offset", "wide"), floats_only=True),
    "reduce_sum": Operator(
        _one(lambda arguments, x: x["X"].sum((_reduced_axis(arguments),)).stored()),
        shapes.reduction, (*_FLOATS, "offset", "ones")),
    "reduce_max": Operator(
        _one(lambda arguments, x: x["X"].extreme((_reduced_axis(arguments),), True)),
        shapes.reduction, _EVERY),
    "reduce_mean": Operator(_reduce_mean, shapes.reduction, (*_FLOATS, "offset"),
                            floats_only=True),
    "argmax": Operator(_argmax, shapes.reduction, _EVERY),
    "add": Operator(_elementwise(lambda x: x["A"] + x["B"]), _ROWS),
    "add_relu": Operator(_elementwise(lambda x: _relu(x["A"] + x["B"])), _ROWS),
    "multiply": Operator(_elementwise(lambda x: x["A"] * x["B"]), _ROWS),
    "bias_add": Operator(_elementwise(lambda x: x["X"] + _row(x["Bias"], 2)), _ROWS),
    "relu": Operator(_elementwise(lambda x: _relu(x["X"])), _ROWS, _EVERY),
    "gelu": Operator(_elementwise(lambda x: _gelu(x["X"])), _ROWS, _CURVES, floats_only=True),
    "sigmoid": Operator(_elementwise(lambda x: x["X"].apply("sigmoid")), _ROWS, _CURVES,
                        floats_only=True),
    "silu": Operator(_elementwise(lambda x: _silu(x["X"])), _ROWS, _CURVES,
                     floats_only=True),
    "tanh": Operator(_elementwise(lambda x: x["X"].apply("tanh")), _ROWS, _CURVES,
                     floats_only=True),
    "transpose": Operator(_elementwise(lambda x: x["X"].transpose(1, 0)), _ROWS, _EVERY),
    "batch_transpose": Operator(_elementwise(lambda x: x["X"].transpose(0, 2, 1)), _BATCH),
    "quantized_matmul": Operator(_product("mk,kn->mn"), _MATMUL, fixed_types=True),
    "quantized_dense": Operator(_product("mk,kn->mn"), _MATMUL, fixed_types=True),
    "quantized_conv2d": Operator(_convolution("hw"),
                                 lambda rng: shapes.convolution(rng, "hw", 13), fixed_types=True),
}


def parse_words(text):
    """Splits "matmul m=3 dtype=bf16" into its name, its numbers and its types."""
    name, *words = text.split()
    pairs = dict(word.split("=", 1) for word in words)
    types = {key: pairs.pop(key) for key in ("dtype", "acc") if key in pairs}
    return name, {key: int(value) for key, value in pairs.items()}, types


def define(text, inputs):
    """The outputs of an operator, in order. `inputs`: Numbers by name, with the inputs' dtypes."""
    name, arguments, types = parse_words(text)
    operator = OPERATORS[name]
    acc = "i32" if operator.fixed_types else types.get("acc", types.get("dtype", "f32"))
    converted = {}
    for key, number in inputs.items():
        converted[key] = number.cast(acc)
        converted[key].each_rounds = dtypes.is_short(acc)
    return operator.define(arguments, converted)
