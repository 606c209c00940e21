"""Networks: ONNX models whose kernels `hone export` links into one library, which runs in this process."""

from __future__ import annotations

import importlib.util
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy

from . import _arrays, _programs, errors
from ._workload import Tensor

if TYPE_CHECKING:
    from ._connection import Connection


def shape_words(shapes: Mapping[str, Sequence[int]] | None) -> list[str]:
    """The option --shape of `hone`."""
    if not shapes:
        return []
    return ["--shape", *(f"{name}={'x'.join(str(one) for one in shape)}" for name, shape in shapes.items())]


class Network:
    """A network with the best known kernels. Each thread that calls it gets memory of its own, and all share the weights."""

    def __init__(self, connection: Connection, model: str, shapes: Mapping[str, Sequence[int]] | None = None,
                 draft: bool = True, tolerance: float = 0.0, threads: int = 0) -> None:
        """`draft`: tasks that were not tuned get the schedule that a search would begin with."""
        self.model = model
        # The library needs its files as long as it is loaded, and the system removes them when this process ends.
        self._folder = tempfile.TemporaryDirectory(prefix="hone-network-", ignore_cleanup_errors=True)
        words = ["export", model, "-o", self._folder.name, "--name", "network", *shape_words(shapes)]
        words += ["--draft"] if draft else []
        words += ["--tolerance", repr(tolerance)] if tolerance else []
        _programs.call([*words, *connection.words()])
        spec = importlib.util.spec_from_file_location("hone_exported_network", Path(self._folder.name) / "network.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._network: Any = module.Network(threads=threads)
        self._failure: type[Exception] = module.Error
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
        return [_arrays.borrowed(one, value) for one, value in zip(self.inputs, inputs)]

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
