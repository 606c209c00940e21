"""Networks: ONNX models whose kernels `hone export` links into one library, which runs in this process."""

from __future__ import annotations

import importlib.util
import tempfile
import threading
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence, Union

import numpy

from . import _arrays, _programs, errors
from ._workload import Tensor

if TYPE_CHECKING:
    from ._connection import Connection

# Shapes of inputs, and extents of dimensions with a name, or several sizes of such a dimension: "1,4,8" or "1..64", or with
# the weights with which their search divides its trials, {1: 3, 8: 1}.
Shapes = Mapping[str, Union[int, str, Sequence[int], Mapping[int, float]]]


def shape_words(shapes: Shapes | None) -> list[str]:
    """The option --shape of `hone`.

    >>> shape_words({"x": (1, 3), "N": numpy.int64(4)})
    ['--shape', 'x=1x3', 'N=4']
    >>> shape_words({"N": "1..64"})
    ['--shape', 'N=1..64']
    >>> shape_words({"N": {1: 3, 8: 1}})  # sizes with weights
    ['--shape', 'N=1:3,8:1']
    """
    if not shapes:
        return []
    texts = {name: ",".join(f"{size}:{weight}" for size, weight in shape.items()) if isinstance(shape, Mapping) else shape
             for name, shape in shapes.items()}
    extents = {name: [shape] if isinstance(shape, (Integral, str)) else shape for name, shape in texts.items()}
    return ["--shape", *(f"{name}={'x'.join(str(one) for one in shape)}" for name, shape in extents.items())]


def all_shapes(model: str, batch: int | Sequence[int] | None, shapes: Shapes | Sequence[Shapes] | None) -> list[Shapes | None]:
    """The shapes of each network that is to be loaded: for each of `shapes`, which may be several, one with each batch."""
    listed: list[Shapes | None] = [shapes] if shapes is None or isinstance(shapes, Mapping) else list(shapes)
    if not listed:
        raise errors.InvalidArgument("shapes is an empty list; give at least one set of shapes")
    if batch is None:
        return listed
    batches = [batch] if isinstance(batch, Integral) else list(batch)
    if wrong := [one for one in batches if not isinstance(one, Integral) or one < 1]:
        raise errors.InvalidArgument(f"batch has {wrong[0]!r}, which is not a positive number")
    if not batches:
        raise errors.InvalidArgument("batch is an empty list; give at least one batch size, as in batch=[1, 8]")
    inputs = _programs.call(["show", model, "--inputs"])["inputs"]
    return [_with_batch(model, inputs, int(one), given or {}) for given in listed for one in dict.fromkeys(batches)]


def _with_batch(model: str, inputs: Sequence[Mapping[str, Any]], batch: int, shapes: Shapes) -> Shapes:
    """Adds the batch, which is the first dimension of the first input whose first dimension is open. Dimensions of the
    same name are the batch, too, and so are first dimensions without a name."""
    made = dict(shapes)
    named = ""  # the name of the batch
    found = False
    for one in inputs:
        shape = one["shape"]
        if one["name"] in shapes or not shape or isinstance(shape[0], int):
            continue
        if shape[0] is not None:
            if not found:
                named = shape[0]
                made[named] = batch
            found = True
            continue
        found = True
        # A dimension without a name can only be given with the others of its input.
        known = [batch, *(made.get(extent, extent) for extent in shape[1:])]
        if not all(isinstance(extent, Integral) for extent in known):
            raise errors.InvalidArgument(
                f"{model}: the input {one['name']} has more open dimensions than the batch: {_shape_text(shape)}; give its "
                f"shape with each batch, as in shapes=[{{{one['name']!r}: ({batch}, …)}}]")
        made[one["name"]] = known
    if not found:
        listed = ", ".join(f"{one['name']}: {_shape_text(one['shape'] or [])}" for one in inputs)
        raise errors.InvalidArgument(
            f"{model} has no input whose first dimension is open, so its batch cannot be chosen; the inputs are {listed}")
    return made


def _shape_text(shape: Iterable[Any]) -> str:
    return f"[{', '.join('?' if extent is None else str(extent) for extent in shape)}]"


class Network:
    """A network with the best known kernels. With several sizes of a dimension, a call finds the size from the shapes of its
    arrays; `inputs` and `outputs` are those of the largest one. Each thread that calls it gets memory of its own, and all share the weights."""

    def __init__(self, connection: Connection, model: str, shapes: Shapes | None = None,
                 draft: bool = True, tolerance: float = 0.0, threads: int = 0, target: str = "native") -> None:
        """`draft`: also if nothing of the network was tuned. Tasks without a confirmed schedule use the best measured one, or
        else that with which a search would begin."""
        self.model = model
        # The library needs its files as long as it is loaded, and the system removes them when this process ends.
        self._folder = tempfile.TemporaryDirectory(prefix="hone-network-", ignore_cleanup_errors=True)
        words = ["export", model, "-o", self._folder.name, "--name", "network", *shape_words(shapes)]
        words += ["--draft"] if draft else []
        words += ["--tolerance", repr(tolerance)] if tolerance else []
        words += ["--target", target] if target not in ("", "native") else []
        answer = _programs.call([*words, *connection.words()])
        # How many tasks have a "confirmed" schedule, the best "measured" one, and that of the "draft"; and how many kernels
        # are "unchecked": nobody has compared their output with a reference.
        self.schedules: dict[str, int] = dict(answer["schedule_count"])
        spec = importlib.util.spec_from_file_location("hone_exported_network", Path(self._folder.name) / "network.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        number = _programs.device(target)[0].partition(":")[2]  # of "cuda:1"
        self._failure: type[Exception] = module.Error
        try:
            self._network: Any = module.Network(threads=threads, device=int(number) if number.isdigit() else -1)
        except self._failure as error:
            raise errors.Failed(str(error)) from None
        self.sizes: tuple[int, ...] = self._network.sizes  # of the open dimension, if there are several
        self._local = threading.local()
        self.inputs = tuple(Tensor(one.name, one.dtype, one.shape) for one in self._network.inputs)
        self.outputs = tuple(Tensor(one.name, one.dtype, one.shape, True) for one in self._network.outputs)

    def __repr__(self) -> str:
        return f"<hone.Network {self.model}: {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}>"

    def _instance(self) -> Any:
        found = getattr(self._local, "network", None)
        if found is None:
            found = self._local.network = self._network.sibling()
        return found

    def _arrays(self, inputs: Sequence[Any]) -> list[numpy.ndarray[Any, Any]]:
        if len(inputs) != len(self.inputs):
            names = ", ".join(map(str, self.inputs))
            raise errors.InvalidArgument(f"{len(inputs)} arrays are given, but the network needs {names}")
        wanted = self.inputs
        if self.sizes:
            try:
                found = self._network.tensors_for(inputs)[1]
            except self._failure as error:
                raise errors.ArrayError(str(error)) from None
            wanted = tuple(Tensor(one.name, one.dtype, one.shape) for one in found)
        return [_arrays.borrowed(one, value) for one, value in zip(wanted, inputs)]

    def __call__(self, *inputs: Any) -> Any:
        """Returns the output, or the tuple of outputs: arrays of the library of the inputs (NumPy, PyTorch, JAX)."""
        given = self._arrays(inputs)
        try:
            made = self._instance()(*given)
        except self._failure as error:
            raise errors.Failed(str(error)) from None
        convert = _arrays.converter(_arrays.library_of(inputs))
        results = tuple(convert(one) for one in made)
        return results[0] if len(results) == 1 else results

    def profile(self, *inputs: Any) -> list[tuple[str, str, int]]:
        """Runs once, and returns the name, the kernel and the nanoseconds of each step."""
        return list(self._instance().profile(*self._arrays(inputs)))


class Networks:
    """A network that was loaded for several shapes of its inputs. A call chooses by the shapes of its arrays. The weights are
    packed once for each shape."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self.networks = tuple(networks)
        self._by_shapes = {tuple(one.shape for one in network.inputs): network for network in networks}

    def __repr__(self) -> str:
        return f"<hone.Networks {self.networks[0].model} for {self._sizes()}>"

    def _sizes(self) -> str:
        """"batches of 1, 4 and 8", if only the first dimensions differ, or else all shapes of the inputs."""
        rest = {tuple(shape[1:] for shape in shapes) for shapes in self._by_shapes}
        firsts = [{shape[0] for shape in shapes if shape} for shapes in self._by_shapes]
        if len(rest) == 1 and all(len(one) == 1 for one in firsts):
            words = [str(next(iter(one))) for one in firsts]
            return "batches of " + " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
        return " | ".join(", ".join(map(str, network.inputs)) for network in self.networks)

    def for_shapes(self, *inputs: Any) -> Network:
        """Returns the network for the shapes of these arrays. ArrayError: none was loaded for them; the message names the sizes."""
        found = self._by_shapes.get(tuple(tuple(getattr(value, "shape", ())) for value in inputs))
        if found is not None:
            return found
        expected = self.networks[0].inputs
        if len(inputs) != len(expected) or not all(hasattr(value, "shape") for value in inputs):
            self.networks[0]._arrays(inputs)  # says what is wrong
        wrong = next(place for place, value in enumerate(inputs)
                     if all(network.inputs[place].shape != tuple(value.shape) for network in self.networks)
                     or place + 1 == len(inputs))
        raise errors.ArrayError(
            f"{expected[wrong].name} has the shape {list(inputs[wrong].shape)}, but the network was loaded for "
            f"{self._sizes()}; load it for this size, too, or pad the array to one of these")

    def __call__(self, *inputs: Any) -> Any:
        """Returns the output, or the tuple of outputs, of the network for these shapes."""
        return self.for_shapes(*inputs)(*inputs)

    def profile(self, *inputs: Any) -> list[tuple[str, str, int]]:
        """Runs once, and returns the name, the kernel and the nanoseconds of each step."""
        return self.for_shapes(*inputs).profile(*inputs)
