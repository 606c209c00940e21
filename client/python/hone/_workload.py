"""Workloads: what is computed, from the words of an operator, from text, or put together in Python."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from typing import Any, Sequence, Union

from . import _programs, errors

Number = Union[int, float]


@dataclass(frozen=True)
class Tensor:
    """An input or output of a kernel."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_output: bool = False
    is_constant: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Workload:
    """A tensor computation, as text in the language of docs/language.md.

    >>> import hone
    >>> print(hone.Workload("relu m=4 n=8"))
    workload relu
    input X: f32[4, 8]
    output Y[i: 4, j: 8] = max(X[i, j], 0.0)
    >>> hone.Workload("matmul m=2 n=3 k=4").tensors[2]
    Tensor(name='C', dtype='f32', shape=(2, 3), is_output=True, is_constant=False)
    """

    def __init__(self, source: Union[str, os.PathLike[str], Workload]) -> None:
        """`source`: "OP key=value…", the text of a workload, or the path of a file with one, NAME.hone."""
        self.text: str = source.text if isinstance(source, Workload) else _text(os.fspath(source))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs, and then the outputs, in the order of a kernel's arguments."""
        return _tensors(self.text)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(one for one in self.tensors if not one.is_output)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(one for one in self.tensors if one.is_output)

    @property
    def name(self) -> str:
        return self.text.split(None, 2)[1]

    def __str__(self) -> str:
        return self.text.rstrip()

    def __repr__(self) -> str:
        return f"Workload({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _text(source: str) -> str:
    source = source.strip()
    if not source:
        raise errors.InvalidArgument('the workload is empty; give "OP key=value…", a text, or a file')
    if source.endswith(".onnx"):
        raise errors.InvalidArgument(f"{source} is a network, not a workload; only tune and load take networks")
    if source.endswith(".hone"):
        try:
            with open(source, encoding="utf-8") as file:
                source = file.read()
        except OSError as error:
            raise errors.InvalidArgument(f"cannot read the workload {source}: {error.strerror}") from None
    return _printed(source)


@functools.lru_cache(maxsize=1024)
def _printed(source: str) -> str:
    if re.match(r"(#.*\n|\s)*workload\s", source):
        text = str(_scheduled(source)["workload"])
    else:
        text = str(_programs.call(["show", "--workload", source])["workload"])
    return text


def _scheduled(text: str) -> dict[str, Any]:
    """The workload with the program of the untiled schedule, which needs no server."""
    try:
        return _programs.call(["schedule", "-"], text.rstrip() + "\ntrace 1\n")
    except errors.InvalidArgument as error:
        message = str(error).replace("standard input", "the workload").replace("<stdin>", "the workload")
        raise errors.InvalidArgument(message) from None


@functools.lru_cache(maxsize=1024)
def _tensors(text: str) -> tuple[Tensor, ...]:
    constants = set(re.findall(r"^input (\S+):.*\bconstant\s*$", text, re.MULTILINE))
    program = str(_scheduled(text)["program"])
    found = re.findall(r"^(input|output) (\S+): (\w+)\[([\d, ]*)\]", program, re.MULTILINE)
    tensors = [
        Tensor(name, dtype, tuple(int(one) for one in extents.split(",")), kind == "output", name in constants)
        for kind, name, dtype, extents in found
    ]
    return tuple(sorted(tensors, key=lambda one: one.is_output))


class Expression:
    """An index or a value of a stage, as text. Python's operators combine them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: Operand) -> Expression:
        return _joined(self, "+", other)

    def __radd__(self, other: Operand) -> Expression:
        return _joined(other, "+", self)

    def __sub__(self, other: Operand) -> Expression:
        return _joined(self, "-", other)

    def __rsub__(self, other: Operand) -> Expression:
        return _joined(other, "-", self)

    def __mul__(self, other: Operand) -> Expression:
        return _joined(self, "*", other)

    def __rmul__(self, other: Operand) -> Expression:
        return _joined(other, "*", self)

    def __truediv__(self, other: Operand) -> Expression:
        return _joined(self, "/", other)

    __floordiv__ = __truediv__  # of indices, / divides and rounds down

    def __rtruediv__(self, other: Operand) -> Expression:
        return _joined(other, "/", self)

    def __mod__(self, other: Operand) -> Expression:
        return _joined(self, "%", other)

    def __lt__(self, other: Operand) -> Expression:
        return _joined(self, "<", other)

    def __le__(self, other: Operand) -> Expression:
        return _joined(self, "<=", other)

    def __gt__(self, other: Operand) -> Expression:
        return _joined(other, "<", self)

    def __ge__(self, other: Operand) -> Expression:
        return _joined(other, "<=", self)

    def __neg__(self) -> Expression:
        return Expression(f"-({self})")


class Axis(Expression):
    """A loop of a stage: its name is an index from 0 to `extent` - 1."""

    def __init__(self, name: str, extent: int) -> None:
        super().__init__(name)
        self.extent = extent


Operand = Union[Expression, int, float]


def _joined(left: Operand, sign: str, right: Operand) -> Expression:
    a, b = (str(one) if isinstance(one, Axis) or not isinstance(one, Expression) else _grouped(one.text)
            for one in (left, right))
    return Expression(f"{a} {sign} {b}")


def _grouped(text: str) -> str:
    """The text in parentheses, unless it is one term."""
    return text if re.fullmatch(r"[\w.]+(\[[^][]*\])?", text) else f"({text})"


class Read:
    """A tensor, whose elements are read with indices: A[i, k]."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, indices: Union[Operand, tuple[Operand, ...]]) -> Expression:
        places = indices if isinstance(indices, tuple) else (indices,)
        return Expression(f"{self.name}[{', '.join(str(one) for one in places)}]")


class _Functions:
    """fn.NAME(x, …) applies a function or a type's cast; `hone operators` lists the functions."""

    def __getattr__(self, name: str) -> Any:
        def applied(*arguments: Operand) -> Expression:
            return Expression(f"{name}({', '.join(str(one) for one in arguments)})")

        return applied


class _Reducers:
    """over.NAME(axes, value) reduces a value over axes, where all guards hold; `hone operators` lists the reducers."""

    def __getattr__(self, name: str) -> Any:
        def reduced(axes: Union[Axis, Sequence[Axis]], value: Operand, where: Sequence[Operand] = ()) -> Expression:
            named = [axes] if isinstance(axes, Axis) else axes
            guards = f" where {', '.join(str(one) for one in where)}" if where else ""
            return Expression(f"{name}({', '.join(f'{one}: {one.extent}' for one in named)}{guards}) {value}")

        return reduced


fn = _Functions()
over = _Reducers()


def within(index: Operand, extent: int) -> Expression:
    """The guard 0 <= index < extent, as for padding: over.sum(r, X[h + r - 1], where=[within(h + r - 1, 14)])."""
    return Expression(f"0 <= {index} < {extent}")


class Builder:
    """Puts a workload together.

    >>> from hone import Axis, Builder, fn, over
    >>> b = Builder("dense_relu")
    >>> A = b.input("A", (4, 8))
    >>> W = b.input("W", (8, 2), constant=True)
    >>> i, j, k = Axis("i", 4), Axis("j", 2), Axis("k", 8)
    >>> C = b.stage("C", (i, j), over.sum(k, A[i, k] * W[k, j]))
    >>> _ = b.output("D", (i, j), fn.max(C[i, j], 0.0))
    >>> print(b.workload())
    workload dense_relu
    input A: f32[4, 8]
    input W: f32[8, 2] constant
    C[i: 4, j: 2] = sum(k: 8) A[i, k] * W[k, j]
    output D[i: 4, j: 2] = max(C[i, j], 0.0)
    """

    def __init__(self, name: str) -> None:
        self._lines = [f"workload {name}"]

    def input(self, name: str, shape: Sequence[int], dtype: str = "f32", constant: bool = False) -> Read:
        """Adds an input. A kernel may repack a constant one ahead of time."""
        self._lines.append(f"input {name}: {dtype}[{', '.join(map(str, shape))}]{' constant' if constant else ''}")
        return Read(name)

    def stage(self, name: str, axes: Sequence[Axis], value: Operand) -> Read:
        """Adds a tensor that later stages read."""
        self._lines.append(f"{name}[{', '.join(f'{one}: {one.extent}' for one in axes)}] = {value}")
        return Read(name)

    def output(self, name: str, axes: Sequence[Axis], value: Operand) -> Read:
        """Adds a tensor that is a result."""
        read = self.stage(name, axes, value)
        self._lines[-1] = "output " + self._lines[-1]
        return read

    def workload(self) -> Workload:
        """The workload. InvalidArgument says what is wrong with it, and where."""
        return Workload("\n".join(self._lines) + "\n")
