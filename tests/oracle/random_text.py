"""Draws workloads in text form: stages over odd shapes with guards, tuples, casts, constants,
guarded values and computed indices."""
import itertools

import dtypes

_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 33, 37)
_DTYPES = ("f32", "f32", "f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2", "i8", "u8", "i32", "i64",
           "i64")
_MOST_POINTS = 30000
_MOST_CASES = 32  # Hone refuses a stage whose guarded values have more
_INTEGER_CONSTANTS = {
    "i8": (-7, -1, 2, 3, 100),
    "u8": (1, 2, 3, 200),
    "i32": (-7, -2, 2, 3, 1 << 20, (1 << 31) - 1),
    "i64": (-2, 3, 7, (1 << 53) + 1, -(1 << 53) - 1, (1 << 60) + 5, -(1 << 61) - 3),
}
_FUNCTIONS = ("tanh", "sigmoid", "erf", "normal_cdf", "exp", "sqrt", "log", "rsqrt")
_ROUNDINGS = ("round", "floor", "ceil", "trunc")
_FLOAT_CONSTANTS = ("0.5", "2.0", "1.25", "0.1", "(-3.0)", "(-0.7)")


def draw(rng):
    """The text of a workload."""
    return _Writer(rng).write()


class _Writer:
    def __init__(self, rng):
        self.rng = rng
        self.dtype = rng.choice(_DTYPES)
        self.inputs = {}  # name: [dtype, least extents so far]
        self.bounds = {}  # of inputs of indices
        self.known = []  # (index, extent): indices that the guards around keep below the extent
        self.cases = _MOST_CASES  # of the current stage, at least so many are left
        self.nested = 0  # computed indices around
        self.stages = {}  # name: (dtype, shape)
        self.read = set()
        self.lines = []  # (names, text after "output")

    def write(self):
        for n in range(self.rng.randint(1, 3)):
            dtype = self.dtype if n < 2 else self.rng.choice((self.dtype, *_DTYPES, "bool"))
            self.inputs["ABC"[n]] = [dtype, [1] * self.rng.choice((1, 2, 2))]
        if self.rng.random() < 0.4:
            self.inputs["K"] = [self.rng.choice(("i32", "i64")), [1] * self.rng.choice((1, 2))]
            self.bounds["K"] = self.rng.choice((0, 0, 1, 6, 18, 40))
        for n in range(self.rng.randint(1, 4)):
            self._stage(n)
        text = ["workload drawn"]
        for name, (dtype, shape) in self.inputs.items():
            constant = " constant" if self.rng.random() < 0.2 else ""
            bound = f" < {self.bounds[name]}" if self.bounds.get(name) else ""
            text.append(f"input {name}: {dtype}[{', '.join(map(str, shape))}]{bound}{constant}")
        for n, (names, line) in enumerate(self.lines):
            is_output = n + 1 == len(self.lines) or not self.read.intersection(names)
            if is_output or self.rng.random() < 0.2:
                line = "output " + line
            text.append(line)
        return "\n".join(text) + "\n"

    # -- stages -----------------------------------------------------------------------------------

    def _stage(self, n):
        spatial = self._axes("ij"[:self.rng.choice((1, 2, 2))], _MOST_POINTS)
        kind = self.rng.choice(("map", "map", "sum", "sum", "prod", "min", "max", "arg", "online"))
        if kind == "online" and not dtypes.is_float(self.dtype):
            kind = "arg"
        # Reductions of guarded values are refused.
        self.cases = _MOST_CASES if kind == "map" else 1
        if kind == "map":
            self.axes = spatial
            dtype = self.dtype if self.rng.random() < 0.85 else "bool"
            value = self._condition(2) if dtype == "bool" else self._value(dtype, 3)
            self._add([f"T{n}"], [dtype], spatial, value)
            return
        points = 1
        for _, extent in spatial:
            points *= extent
        most = _MOST_POINTS // points
        if kind == "prod":
            most = min(12, most)
        reduce = self._axes("kl"[:self.rng.choice((1, 1, 2))], most)
        self.axes = spatial + reduce
        where = self._guards(spatial, reduce)
        head = f"({', '.join(f'{name}: {extent}' for name, extent in reduce)}{where})"
        if kind == "arg":
            reducer = self.rng.choice(("argmax", "argmin"))
            place = self.rng.choice(("i32", "i64"))
            flat = self._flat_place(reduce)
            index = f"index({flat})" if place == "i64" else f"i32(index({flat}))"
            self._add([f"V{n}", f"P{n}"], [self.dtype, place], spatial,
                      f"{reducer}{head} ({self._value(self.dtype, 1)}, {index})")
        elif kind == "online":
            # It accumulates in its own dtype, so formats that accumulate in f32 are rejected.
            dtype = dtypes.arithmetic(self.dtype)
            self._add([f"M{n}", f"S{n}"], [dtype] * 2, spatial,
                      f"online_softmax{head} ({self._load(dtype)}, 1.0)")
        else:
            value = self._load(self.dtype) if kind == "prod" else self._value(self.dtype, 2)
            self._add([f"T{n}"], [self.dtype], spatial, f"{kind}{head} {value}")

    def _add(self, names, kinds, spatial, value):
        axes = ", ".join(f"{name}: {extent}" for name, extent in spatial)
        left = names[0] if len(names) == 1 else f"({', '.join(names)})"
        self.lines.append((names, f"{left}[{axes}] = {value}"))
        for name, dtype in zip(names, kinds):
            self.stages[name] = (dtype, [extent for _, extent in spatial])

    def _axes(self, names, most):
        axes = []
        for name in names:
            extent = self.rng.choice([e for e in _EXTENTS if e <= max(1, most)])
            most //= extent
            axes.append((name, extent))
        return axes

    def _flat_place(self, reduce):
        if len(reduce) == 1:
            return reduce[0][0]
        return f"{reduce[0][0]} * {reduce[1][1]} + {reduce[1][0]}"

    def _guards(self, spatial, reduce):
        if self.rng.random() < 0.6:
            return ""
        name, extent = self.rng.choice(reduce)
        other, _ = self.rng.choice(spatial)
        if self.rng.random() < 0.2:
            return f" where {name} {self.rng.choice(('<', '<=', '=='))} {other}"
        index = f"{name} {self.rng.choice('+-')} {other} + {self.rng.randint(0, 3)}"
        return f" where 0 <= {index} < {self.rng.choice((extent, 5, extent + 2))}"

    # -- expressions ------------------------------------------------------------------------------

    def _value(self, dtype, depth):
        if self.cases > 1 and self.rng.random() < 0.25:
            return self._guarded(lambda: self._value(dtype, max(0, depth - 1)))
        if depth == 0 or self.rng.random() < 0.2:
            return self._leaf(dtype)
        value = lambda: self._value(dtype, depth - 1)
        kind = self.rng.choice("+-*mMnas/ftp")
        if kind in "+-*":
            return f"({value()} {kind} {value()})"
        if kind in "mM":
            return f"{'min' if kind == 'm' else 'max'}({value()}, {value()})"
        if kind == "n":
            return f"(-{value()})"
        if kind == "a":
            return f"abs({value()})"
        if kind == "s":
            return f"select({self._condition(depth - 1)}, {value()}, {value()})"
        if kind in "tp" and not dtypes.is_float(dtype):
            return f"({value()} {'<<' if kind == 't' else '>>'} {self._count(dtype)})"
        if not dtypes.is_float(dtype):
            return f"({value()} / {self._leaf(dtype)})"
        if kind == "t":
            return f"{self.rng.choice(_ROUNDINGS)}({value()} * {dtype}(4.0))"
        if kind == "p":
            return self._power(dtype, value)
        if kind == "/":
            return f"({value()} / (abs({value()}) + 1.0))"
        function = self.rng.choice(_FUNCTIONS)
        if function in ("sqrt", "log", "rsqrt"):
            return f"{function}(abs({value()}) + 0.5)"
        return f"{function}({'tanh(' + value() + ')' if function == 'exp' else value()})"

    def _count(self, dtype):
        """The count of a shift, which may be out of range."""
        if self.rng.random() < 0.4:
            return self._leaf(dtype)
        return f"{dtype}({self.rng.choice((0, 1, 2, 5, 7, 8, 40, 100))})"

    def _power(self, dtype, value):
        if self.rng.random() < 0.5:
            return f"pow({value()}, {dtype}({self.rng.choice(('2.0', '3.0', '0.0', '1.0'))}))"
        exponent = self.rng.choice(("(0.5)", "((-1.5))", ""))
        exponent = dtype + exponent if exponent else f"tanh({value()})"
        return f"pow(abs({value()}) + 0.5, {exponent})"

    def _guarded(self, value):
        """A guarded value, or only a value if it could have too many cases."""
        drawn = [self._guard_of_value() for _ in range(self.rng.choice((1, 1, 1, 2, 3)))]
        conditions = sum(count for _, count, _, _ in drawn)
        if self.cases // (conditions + 1) < 1:
            return value()
        self.cases //= conditions + 1
        outside = self.known
        self.known = outside + [index for *_, inside, _ in drawn for index in inside]
        there = value()
        # Where only one condition can fail, the opposite of it holds.
        self.known = outside + (drawn[0][3] if conditions == 1 else [])
        read = set(self.read)
        elsewhere = value()
        self.known = outside
        if all(self._always_holds(text) for text, *_ in drawn):
            self.read = read  # Hone drops the other value
        guards = ", ".join(text for text, *_ in drawn)
        return f"({there} where {guards} else {elsewhere})"

    def _always_holds(self, guard):
        names, extents = zip(*self.axes)
        rule = eval(f"lambda {', '.join(names)}: {guard.replace('/', '//')}")
        used = [range(extent) if name in guard else (0,) for name, extent in zip(names, extents)]
        return all(rule(*point) for point in itertools.product(*used))

    def _guard_of_value(self):
        """The guard, the number of its conditions, and the indices known inside and elsewhere."""
        text, count, inside, elsewhere = self._plain_guard_of_value()
        return text, count, self._also_scaled(inside), self._also_scaled(elsewhere)

    def _also_scaled(self, known):
        """Adds indices that follow from those that a guard bounds."""
        scaled = []
        for index, extent in known:
            factor, rest = self.rng.randint(2, 4), self.rng.randint(0, 3)
            scaled.append(self.rng.choice((
                (f"{factor} * ({index}) + {rest}", factor * (extent - 1) + rest + 1),
                (f"({index} + {rest}) / {factor}", (extent - 1 + rest) // factor + 1),
                (f"{extent + rest} - ({index})", extent + rest + 1))))
        return known + scaled

    def _plain_guard_of_value(self):
        (name, extent), (other, reach) = self.rng.choice(self.axes), self.rng.choice(self.axes)
        c = self.rng.randint(0, min(extent, 9))
        kind = self.rng.choice(("cut", "shift", "window", "window", "compare", "equal"))
        if kind == "cut":
            c += 1
            return (f"{name} < {c}", 1, [(name, min(c, extent))],
                    [(f"{name} - {c}", extent - c)] if c < extent else [])
        if kind == "shift":
            # No point holds if c is the extent; then the indices inside may be anything.
            return (f"{c} <= {name}", 1,
                    [(f"{name} - {c}", extent - c) if c < extent else (f"{name} + 1000", 3)],
                    [(name, c)] if c else [])
        if kind == "window":
            index = self.rng.choice((
                f"{name} - {c}", f"{name} - {c}", f"{name} - {c}", f"{extent - 2} - {name}",
                f"2 * {name} - {c}", f"{name} + {other} - {c}", f"3 * {name} - {other}",
                f"{name} / 3 - 1", f"({name} + 2) % 5 - 1", f"({name} * 2 + {other}) / 3 - 1",
                f"{name} - {other} % 3"))
            last = self.rng.randint(1, max(1, extent))
            return f"0 <= {index} < {last}", 2, [(index, last)], []
        if kind == "compare":
            strict = self.rng.random() < 0.5
            inside = [(f"{other} - {name}", reach)]
            return f"{name} {'<' if strict else '<='} {other}", 1, inside, []
        return (f"{name} == {self.rng.choice((other, str(c), f'{other} / 2', f'{other} % 3'))}", 2,
                [], [])

    def _computed_index(self):
        """at(x) for an integer x, often outside of any dimension."""
        self.nested += 1
        dtype = self.rng.choice(("i32", "i64"))
        kind = self.rng.random()
        if "K" in self.inputs and kind < 0.6:
            value = self._load_of("K")
        elif kind < 0.8:
            value = f"index({self._free_index(0)[0]})"
        elif kind < 0.9:
            # Of an input: if rounding decided the index, no value could be checked.
            name = self.rng.choice(list(self.inputs))
            value = f"{dtype}({self._load_of(name)})"
        else:
            value = self._constant(dtype)
        self.nested -= 1
        change = self.rng.choice(("", "", "", " * 2 - 3", " / 2", " + 5", " * 1000003"))
        return f"at({'-' if self.rng.random() < 0.1 else ''}{value}{change})"

    def _leaf(self, dtype):
        chance = self.rng.random()
        if chance < 0.65:
            return self._load(dtype)
        if chance < 0.9:
            return self._constant(dtype)
        return f"{dtype}(index({self.rng.choice(self.axes)[0]}))"

    def _constant(self, dtype):
        if dtypes.is_float(dtype):
            return f"{dtype}({self.rng.choice(_FLOAT_CONSTANTS)})"
        number = self.rng.choice(_INTEGER_CONSTANTS[dtype])
        return f"{dtype}({number})" if number >= 0 else f"{dtype}(({number}))"

    def _condition(self, depth):
        if self.cases > 1 and self.rng.random() < 0.1:
            return self._guarded(lambda: self._condition(max(0, depth - 1)))
        if depth > 0 and self.rng.random() < 0.4:
            a = self._condition(depth - 1)
            if self.rng.random() < 0.3:
                return f"not ({a})"
            return f"({a} {self.rng.choice(('and', 'or'))} {self._condition(depth - 1)})"
        masks = [name for name, (dtype, _) in (*self.inputs.items(), *self.stages.items())
                 if dtype == "bool"]
        if masks and self.rng.random() < 0.4:
            return self._load_of(self.rng.choice(masks))
        operator = self.rng.choice(("<", "<=", "=="))
        return f"({self._load(self.dtype)} {operator} {self._leaf(self.dtype)})"

    def _load(self, dtype):
        """An element of a tensor, with a cast if the tensor has another dtype."""
        known = {name: kind for name, (kind, _) in (*self.inputs.items(), *self.stages.items())}
        same = [name for name, kind in known.items() if kind == dtype]
        name = self.rng.choice(same if same and self.rng.random() < 0.8 else list(known))
        load = self._load_of(name)
        return load if known[name] == dtype else f"{dtype}({load})"

    def _load_of(self, name):
        self.read.add(name)
        if name in self.inputs:
            extents = self.inputs[name][1]
            indices = []
            often = 0.05 if self.nested else 0.3 if "K" in self.inputs else 0.06
            computed = self.rng.randrange(len(extents)) if self.rng.random() < often else -1
            for d in range(len(extents)):
                if d == computed:
                    extents[d] = max(extents[d], self.rng.choice((1, 3, 8, 17, 40)))
                    indices.append(self._computed_index())
                    continue
                index, largest = self._free_index(d)
                extents[d] = max(extents[d], largest + 1)
                indices.append(index)
        else:
            indices = [self._index_within(d, extent)
                       for d, extent in enumerate(self.stages[name][1])]
        return f"{name}[{', '.join(indices)}]"

    def _free_index(self, d):
        """An index of an input. The extent of the input follows from it."""
        if self.known and self.rng.random() < 0.6:
            index, extent = self.rng.choice(self.known)
            return index, extent - 1
        name, extent = self.axes[(d + (self.rng.random() < 0.25)) % len(self.axes)]
        last = extent - 1
        kind = self.rng.random()
        if kind < 0.5:
            return name, last
        other, other_extent = self.rng.choice(self.axes)
        if kind < 0.6 and other != name:
            # Overlapping windows: the stride is odd and smaller than the reach.
            stride, reach = self.rng.choice((1, 3)), min(other_extent, 7) - 1
            if other_extent <= 7:
                return f"{stride} * {name} + {other}", stride * last + reach
        if kind < 0.7:
            return f"{last} - {name}", last
        if kind < 0.8:
            stride, offset = self.rng.choice((2, 3)), self.rng.randint(0, 2)
            return f"{stride} * {name} + {offset}", stride * last + offset
        if kind < 0.9:
            divisor = self.rng.choice((2, 3, 4))
            return f"{name} / {divisor}", last // divisor
        divisor = self.rng.choice((2, 3, 5))
        return f"{name} % {divisor}", min(last, divisor - 1)

    def _index_within(self, d, extent):
        """An index of a stage's tensor, which has a known extent."""
        within = [index for index, known in self.known if known <= extent]
        if within and self.rng.random() < 0.6:
            return self.rng.choice(within)
        name, reach = self.axes[d % len(self.axes)]
        if reach > extent:
            if self.rng.random() < 0.5:
                return f"{name} % {extent}"
            return f"{name} / {-(-reach // extent)}"
        kind = self.rng.random()
        if kind < 0.7:
            return name
        if kind < 0.85:
            return f"{extent - 1} - {name}"
        return f"{name} + {extent - reach}"
