"""Draws the keys of operators: small numbers, many of them odd or 1."""

_EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 19, 29, 31, 32, 33, 37, 48, 63, 64, 65)


def extent(rng, most=65):
    return rng.choice([e for e in _EXTENTS if e <= most])


def keys(rng, **most):
    """Draws a number for each key, up to the given limit."""
    return {key: extent(rng, limit) for key, limit in most.items()}


def _window(rng, arguments, dimensions, dilation=False, beyond=False):
    """Draws kernel, stride and padding of each dimension, such that the window fits. `beyond`:
    windows may lie entirely in the padding."""
    suffixes = [""] if len(dimensions) == 1 else list(dimensions)
    dil = rng.choice((1, 1, 1, 2, 3)) if dilation else 1
    for dimension, suffix in zip(dimensions, suffixes):
        k = rng.choice((1, 2, 3, 3, 3, 4, 5))
        reach = (k - 1) * dil + 1
        p = rng.choice((0, 0, 0, reach // 2, reach // 2, reach - 1, reach - 1 + beyond))
        s = rng.choice((1, 1, 2, 3))
        arguments[dimension] = max(arguments[dimension], reach - 2 * p)
        arguments.update({"k" + suffix: k, "s" + suffix: s, "p" + suffix: p})
    if dilation:
        arguments["dil"] = dil
    if len(dimensions) > 1:
        arguments["k"] = arguments["k" + suffixes[0]]
    return arguments


def convolution(rng, dimensions, most, channels=24, groups=True):
    arguments = keys(rng, n=2, **{d: most for d in dimensions})
    arguments["ci"] = rng.choice((1, 1, 2, 3, 4, 7, 8, 16, channels))
    arguments["co"] = rng.choice((1, 3, 5, 8, 15, 16, 17, 29, 32, 33))
    if groups and rng.random() < 0.25:
        arguments["groups"] = rng.choice((2, 3))
        for key in ("ci", "co"):
            arguments[key] = arguments["groups"] * rng.choice((1, 2, 3, 4, 8))
    return _window(rng, arguments, dimensions, dilation=True, beyond=True)


def transposed(rng):
    arguments = keys(rng, n=2, h=9, w=9)
    arguments["ci"] = rng.choice((1, 2, 3, 8))
    arguments["co"] = rng.choice((1, 3, 8, 16, 17))
    for dimension in "hw":
        k, s = rng.choice((1, 2, 3, 4, 5)), rng.choice((1, 2, 3))
        p = rng.randrange(k + 1)
        # The padding must not crop the whole output.
        while (arguments[dimension] - 1) * s - 2 * p + k < 1:
            arguments[dimension] += 1
        arguments.update({"k" + dimension: k, "s" + dimension: s, "p" + dimension: p})
    arguments["k"] = arguments["kh"]
    return arguments


def capsule(rng):
    arguments = keys(rng, n=1, h=7, w=7, ci=8, co=8)
    arguments["cap"] = rng.choice((1, 2, 4))
    return _window(rng, arguments, "hw", beyond=True)


def depthwise(rng):
    return _window(rng, keys(rng, n=2, h=17, w=17, c=64), "hw", dilation=True, beyond=True)


def pooling(rng):
    return _window(rng, keys(rng, n=2, h=17, w=17, c=37), "hw")


def average(rng):
    return {**pooling(rng), "pad_counts": rng.randrange(2)}


def winograd(rng):
    arguments = keys(rng, n=2)
    arguments["h"], arguments["w"] = rng.choice((3, 4, 6, 7, 14, 30)), rng.choice((3, 5, 6, 9, 14))
    arguments["ci"] = rng.choice((1, 1, 2, 3, 8))
    arguments["co"] = rng.choice((1, 3, 8, 16, 17))
    return arguments


def attention(rng):
    arguments = keys(rng, b=2, h=3, s=33, d=32)
    if rng.random() < 0.5:
        arguments["t"] = extent(rng, 48)
    return arguments


def reduction(rng):
    return {**keys(rng, m=65, n=65), "axis": rng.randrange(2)}
