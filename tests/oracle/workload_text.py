"""Reads workloads in their text form (common/ir/workload_parser.h) into plain tuples.

An index is ("axis", name), ("number", n), or (operator, left, right) with the operators + - * / %.
A computed index is ("at", Node). A guard is a tuple of comparisons (operator, left, right) of
indices with the operators < <= ==, all of which hold.
An expression is a Node with a dtype. Literals become constants; integers are exact.
"""
import re
from dataclasses import dataclass, field

from dtypes import DTYPES, is_float, loaded

_TOKEN = re.compile(r"(?P<number>\d[\w.]*(?:(?<=e)[+-]\d+)?)|(?P<name>[A-Za-z_][\w.]*)"
                    r"|(?P<symbol><=|==|<<|>>|[\[\](),:=<+\-*/%])")
_REDUCERS = ("sum", "prod", "min", "max", "argmax", "argmin", "online_softmax")
_UNARY = ("abs", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "normal_cdf", "not",
          "round", "floor", "ceil", "trunc")
_PRECEDENCE = {"or": 1, "and": 2, "==": 3, "<": 4, "<=": 4, "<<": 5, ">>": 5, "+": 6, "-": 6,
               "*": 7, "/": 7}
_CONDITIONS = ("or", "and", "==", "<", "<=", "not")


@dataclass
class Tensor:
    name: str
    dtype: str
    shape: tuple
    bound: int = 0  # of an input: its elements are at least 0 and less than this, unless it is 0


@dataclass
class Node:
    op: str  # "const", "load", "index", "cast", "select", "where", an operator or a function
    dtype: str
    operands: tuple = ()
    value: object = None  # for a constant: int or float
    tensor: str = ""  # for a load
    indices: tuple = ()  # for a load or an index
    guards: tuple = ()  # of a guarded value, whose operands are the value and the one elsewhere


@dataclass
class Stage:
    names: list
    spatial: list  # (axis, extent)
    output: bool
    reducer: str = ""
    reduce: list = field(default_factory=list)
    guards: list = field(default_factory=list)
    values: list = field(default_factory=list)


@dataclass
class Workload:
    name: str
    inputs: list
    stages: list

    def outputs(self):
        return [name for stage in self.stages if stage.output for name in stage.names]


class _Literal:
    """A number without a dtype."""

    def __init__(self, value):
        self.value = value


def parse(text):
    """Ignores the text after a line "trace 1". Raises ValueError if the text is not a workload."""
    text = re.split(r"^trace \d+$", text, flags=re.M)[0]
    text = re.sub(r"#[^\n]*", "", text)
    text = re.sub(r"\n[ \t]+", " ", text)
    lines = [line for line in text.splitlines() if line.strip()]
    name = re.fullmatch(r"\s*workload\s+([\w.]+)\s*", lines[0])
    if not name:
        raise ValueError(f"expected 'workload NAME', found {lines[0]!r}")
    return _Reader(name[1]).read(lines[1:])


class _Reader:
    def __init__(self, name):
        self.workload = Workload(name, [], [])
        self.tensors = {}

    def read(self, lines):
        for line in lines:
            self._tokenize(line)
            if re.match(r"\s*input\s+\w", line):
                self._input()
            else:
                self._stage()
            if self.at != len(self.tokens):
                raise ValueError(f"unexpected {self._peek()!r} in {line!r}")
        return self.workload

    # -- tokens ---------------------------------------------------------------------------------

    def _tokenize(self, line):
        self.line, self.tokens, self.at = line, [], 0
        place = 0
        while place < len(line):
            if line[place].isspace():
                place += 1
                continue
            match = _TOKEN.match(line, place)
            if not match:
                raise ValueError(f"unexpected {line[place]!r} in {line!r}")
            self.tokens.append(match[0])
            place = match.end()

    def _peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def _next(self):
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def _accept(self, token):
        if self._peek() != token:
            return False
        self.at += 1
        return True

    def _expect(self, token):
        if not self._accept(token):
            raise ValueError(f"expected {token!r}, found {self._peek()!r} in {self.line!r}")

    def _list(self, read, end):
        items = []
        if self._accept(end):
            return items
        items.append(read())
        while self._accept(","):
            items.append(read())
        self._expect(end)
        return items

    # -- statements -----------------------------------------------------------------------------

    def _input(self):
        self._expect("input")
        name = self._next()
        self._expect(":")
        dtype = self._next()
        self._expect("[")
        shape = tuple(self._list(lambda: int(self._next()), "]"))
        bound = int(self._next()) if self._accept("<") else 0
        self._accept("constant")
        self.tensors[name] = Tensor(name, dtype, shape, bound)
        self.workload.inputs.append(self.tensors[name])

    def _axis(self):
        name = self._next()
        self._expect(":")
        return name, int(self._next())

    def _stage(self):
        output = self._peek() == "output" and self._peek(1) != "[" and self._accept("output")
        tuple_of_names = self._accept("(")
        names = self._list(self._next, ")") if tuple_of_names else [self._next()]
        self._expect("[")
        stage = Stage(names, self._list(self._axis, "]"), output)
        self._expect("=")
        if self._peek() in _REDUCERS and self._peek(1) == "(" and self._peek(3) == ":":
            stage.reducer = self._next()
            self._expect("(")
            stage.reduce.append(self._axis())
            while self._accept(","):
                stage.reduce.append(self._axis())
            if self._accept("where"):
                stage.guards = self._guards()
            self._expect(")")
        if len(names) > 1:
            self._expect("(")
        for c in range(len(names)):
            if c > 0:
                self._expect(",")
            first = stage.values[0].dtype if stage.values else "f32"
            wanted = first if stage.reducer == "online_softmax" else "f32"
            stage.values.append(self._typed(self._expression(0), wanted))
        if len(names) > 1:
            self._expect(")")
        shape = tuple(extent for _, extent in stage.spatial)
        for name, value in zip(names, stage.values):
            self.tensors[name] = Tensor(name, value.dtype, shape)
        self.workload.stages.append(stage)

    def _guards(self):
        guards = [self._guard()]
        while self._accept(","):
            guards.append(self._guard())
        return guards

    def _guard(self):
        sides, operators = [self._index_sum()], []
        while self._peek() in ("<", "<=", "=="):
            operators.append(self._next())
            sides.append(self._index_sum())
        if not operators:
            raise ValueError(f"expected a comparison, found {self._peek()!r} in {self.line!r}")
        return tuple(zip(operators, sides, sides[1:]))

    # -- indices --------------------------------------------------------------------------------

    def _index_sum(self):
        if self._accept("-"):
            left = ("-", ("number", 0), self._index_term())
        else:
            left = self._index_term()
        while self._peek() in ("+", "-"):
            left = (self._next(), left, self._index_term())
        return left

    def _index_term(self):
        left = self._index_factor()
        while self._peek() in ("*", "/", "%"):
            left = (self._next(), left, self._index_factor())
        return left

    def _index_factor(self):
        if self._accept("("):
            inner = self._index_sum()
            self._expect(")")
            return inner
        token = self._next()
        return ("number", int(token)) if token[:1].isdigit() else ("axis", token)

    def _index_of_element(self):
        if self._peek() == "at" and self._peek(1) == "(":
            self.at += 2
            value = self._typed(self._expression(0), "i64")
            self._expect(")")
            return "at", value
        return self._index_sum()

    # -- expressions ----------------------------------------------------------------------------

    def _typed(self, value, dtype):
        if not isinstance(value, _Literal):
            return value
        if not is_float(dtype) and value.value != int(value.value):
            raise ValueError(f"{value.value} is not a value of {dtype}")
        number = float(value.value) if is_float(dtype) else int(value.value)
        return Node("const", dtype, value=number)

    def _unify(self, a, b):
        dtype = next((x.dtype for x in (a, b) if not isinstance(x, _Literal)), "f32")
        return self._typed(a, dtype), self._typed(b, dtype)

    def _expression(self, least):
        left = self._primary()
        while _PRECEDENCE.get(self._peek(), -1) >= least:
            op = self._next()
            left, right = self._unify(left, self._expression(_PRECEDENCE[op] + 1))
            left = Node(op, "bool" if op in _CONDITIONS else left.dtype, (left, right))
        return left

    def _primary(self):
        if self._accept("("):
            inner = self._expression(0)
            if self._accept("where"):
                inner = self._guarded(inner)
            self._expect(")")
            return inner
        if self._accept("-"):
            inner = self._primary()
            if isinstance(inner, _Literal):
                return _Literal(-inner.value)
            return Node("neg", inner.dtype, (inner,))
        token = self._next()
        if token[:1].isdigit():
            return _Literal(int(token) if token.isdigit() else float(token))
        if token in ("inf", "nan") and self._peek() != "[":
            return _Literal(float(token))
        if self._accept("["):
            tensor = self.tensors[token]
            indices = tuple(self._list(self._index_of_element, "]"))
            return Node("load", loaded(tensor.dtype), tensor=token, indices=indices)
        self._expect("(")
        return self._call(token)

    def _guarded(self, value):
        guards = tuple(self._guards())
        self._expect("else")
        value, otherwise = self._unify(value, self._expression(0))
        return Node("where", value.dtype, (value, otherwise), guards=guards)

    def _call(self, name):
        if name == "index":
            index = self._index_sum()
            self._expect(")")
            return Node("index", "i64", indices=(index,))
        operands = self._list(lambda: self._expression(0), ")")
        if name in DTYPES:
            return Node("cast", name, (self._typed(operands[0], name),))
        if name == "select":
            then, otherwise = self._unify(operands[1], operands[2])
            return Node("select", then.dtype, (operands[0], then, otherwise))
        if name in ("min", "max", "pow"):
            a, b = self._unify(*operands)
            return Node(name, a.dtype, (a, b))
        if name not in _UNARY:
            raise ValueError(f"unknown function {name!r}")
        operand = self._typed(operands[0], "f32")
        return Node(name, "bool" if name == "not" else operand.dtype, (operand,))
