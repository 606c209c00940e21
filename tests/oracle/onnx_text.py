"""Draws workloads in text form that are one ONNX node: padding, concatenation, slices, gathers and
choices. ONNX Runtime computes them too, see onnx_oracle.run_case()."""

_DTYPES = ("f32", "f32", "f64", "i32", "i64")  # ONNX Runtime has all of these nodes for them
_EXTENTS = (1, 2, 3, 5, 8, 13, 17, 33)


def draw(rng):
    """The text of a workload and its node: {"op", "attributes", "constants"}. The constants are the
    node's inputs after those of the workload."""
    return rng.choice((_pad, _pad, _concat, _concat, _slice, _slice, _gather, _gather, _where))(rng)


def _node(op, constants=(), **attributes):
    return {"op": op, "constants": list(constants), "attributes": attributes}


def _shape(rng, rank=None):
    rank = rank or rng.choice((1, 2, 2, 3))
    return [rng.choice([e for e in _EXTENTS if e <= (0, 33, 33, 13)[rank]]) for _ in range(rank)]


def _extents(shape):
    return f"[{', '.join(map(str, shape))}]"


def _element(name, indices):
    return f"{name}[{', '.join(indices)}]"


def _text(inputs, shape, value):
    """`inputs`: pairs of a name and a type. The axes are a0, a1, ..."""
    lines = ["workload node", *(f"input {name}: {kind}" for name, kind in inputs)]
    axes = ", ".join(f"a{d}: {extent}" for d, extent in enumerate(shape))
    return "\n".join([*lines, f"output Y[{axes}] = {value}"]) + "\n"


def _moved(d, offset):
    return f"a{d} - {offset}" if offset >= 0 else f"a{d} + {-offset}"


def _pad(rng):
    dtype, shape = rng.choice(_DTYPES), _shape(rng)
    mode = rng.choice(("constant", "edge", "reflect", "wrap"))
    # Reflected and wrapped padding is smaller than the dimension. Negative padding crops.
    least = -1 if mode == "constant" else 0
    ends = []
    for extent in shape:
        most = min(4, extent - 1) if mode in ("reflect", "wrap") else 4
        begin, end = (rng.randint(least, most) for _ in range(2))
        ends.append((begin, end) if extent + begin + end > 0 else (0, 0))
    result = [extent + sum(pads) for extent, pads in zip(shape, ends)]
    indices = [_moved(d, begin) for d, (begin, _) in enumerate(ends)]
    constants = [["i64", [begin for begin, _ in ends] + [end for _, end in ends]]]
    if mode == "constant":
        guards = ", ".join(f"0 <= {index} < {extent}" for index, extent in zip(indices, shape))
        number = rng.randint(-3, 3)
        value = f"({_element('X', indices)} where {guards} else {dtype}({number}))"
        constants.append([dtype, number])
    elif mode == "wrap":
        value = _element("X", [f"({_moved(d, begin - extent)}) % {extent}"
                               for d, ((begin, _), extent) in enumerate(zip(ends, shape))])
    else:
        value = _continued(mode == "reflect", shape, ends, [])
    return (_text([("X", dtype + _extents(shape))], result, value),
            _node("Pad", constants, mode=mode))


def _continued(reflected, shape, ends, indices):
    """An element of X at the given first indices, padded in the other dimensions."""
    d = len(indices)
    if d == len(shape):
        return _element("X", indices)
    (begin, end), last = ends[d], shape[d] - 1
    inner = lambda index: _continued(reflected, shape, ends, indices + [index])
    value = inner(_moved(d, begin))
    if end:
        after = inner(f"{2 * last + begin} - a{d}" if reflected else str(last))
        value = f"({value} where a{d} < {begin + shape[d]} else {after})"
    if begin:
        before = inner(f"{begin} - a{d}" if reflected else "0")
        value = f"({value} where {begin} <= a{d} else {before})"
    return value


def _concat(rng):
    dtype, shape, count = rng.choice(_DTYPES), _shape(rng), rng.choice((2, 2, 3))
    axis = rng.randrange(len(shape))
    inputs, value, begin = [], "", 0
    ends = []
    for name in "ABC"[:count]:
        own = [rng.choice(_EXTENTS) if d == axis else extent for d, extent in enumerate(shape)]
        inputs.append((name, dtype + _extents(own)))
        indices = [_moved(d, begin) if d == axis else f"a{d}" for d in range(len(shape))]
        begin += own[axis]
        ends.append((begin, _element(name, indices)))
    value = ends[-1][1]
    for end, element in reversed(ends[:-1]):
        value = f"({element} where a{axis} < {end} else {value})"
    shape[axis] = begin
    return _text(inputs, shape, value), _node("Concat", axis=axis - rng.choice((0, len(shape))))


def _slice(rng):
    dtype, shape = rng.choice(_DTYPES), _shape(rng)
    result, indices, bounds = [], [], []
    for d, extent in enumerate(shape):
        taken = []
        while not taken:
            step = rng.choice((1, 1, 2, 3, -1, -1, -2, -3))
            start, end = (rng.randint(-extent - 2, extent + 2) for _ in range(2))
            taken = range(extent)[start:end:step]
        result.append(len(taken))
        bounds.append((start, end, d, step))
        indices.append(f"{taken.start} + {step} * a{d}" if step > 0
                       else f"{taken.start} - {-step} * a{d}")
    constants = [["i64", list(column)] for column in zip(*bounds)]
    return (_text([("X", dtype + _extents(shape))], result, _element("X", indices)),
            _node("Slice", constants))


def _gather(rng):
    dtype, shape, places = rng.choice(_DTYPES), _shape(rng), _shape(rng, rng.choice((1, 2)))
    axis, kind = rng.randrange(len(shape)), rng.choice(("i32", "i64"))
    result = shape[:axis] + places + shape[axis + 1:]
    of_places = _element("I", [f"a{axis + d}" for d in range(len(places))])
    indices = [f"a{d if d < axis else d + len(places) - 1}" for d in range(len(shape))]
    indices[axis] = f"at({of_places})"
    inputs = [("X", dtype + _extents(shape)), ("I", f"{kind}{_extents(places)} < {shape[axis]}")]
    return _text(inputs, result, _element("X", indices)), _node("Gather", axis=axis)


def _where(rng):
    dtype, shape = rng.choice(_DTYPES), _shape(rng)
    inputs, elements = [], []
    for name, kind in (("C", "bool"), ("A", dtype), ("B", dtype)):
        own = [extent if rng.random() < 0.8 else 1 for extent in shape]
        inputs.append((name, kind + _extents(own)))
        elements.append(_element(name, ["0" if extent == 1 else f"a{d}"
                                        for d, extent in enumerate(own)]))
    # A dimension of one element in all inputs has one in the result.
    result = [extent if any(f"a{d}" in element for element in elements) else 1
              for d, extent in enumerate(shape)]
    return _text(inputs, result, f"select({', '.join(elements)})"), _node("Where")
