"""torch.compile(model, backend="hone"): graphs for inference run as networks of Hone, and others as PyTorch runs them.

A graph falls back to PyTorch if it needs gradients, has inputs that are not tensors on the CPU, or has operators that cannot
be exported to ONNX or that Hone does not know; so does a call with other weights than those that the graph was compiled with.
`counts` tells how many and why, by the first line of the reason.
"""

from __future__ import annotations

import collections
import threading
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Sequence

import torch

from . import errors
from ._network import Network

# "compiled", and the reasons of the graphs that fell back.
counts: collections.Counter[str] = collections.Counter()
_lock = threading.Lock()


def _count(reason: str) -> None:
    with _lock:
        counts[reason.strip().splitlines()[0][:200] if reason.strip() else "unknown"] += 1


class _Bound(torch.nn.Module):  # type: ignore[misc]
    """A graph whose parameters, which Dynamo gives as inputs, have the values of now."""

    def __init__(self, graph: Any, values: Sequence[Any], free: Sequence[int]) -> None:
        super().__init__()
        self._graph = graph
        self._free = list(free)
        self._bound: dict[int, Any] = {}
        for place, value in enumerate(values):
            if place not in self._free:
                self.register_buffer(f"constant_{place}", value.detach(), persistent=True)

    def forward(self, *inputs: Any) -> Any:
        given = dict(zip(self._free, inputs))
        count = len(self._free) + len(list(self.buffers()))
        return self._graph(*[given[p] if p in given else getattr(self, f"constant_{p}") for p in range(count)])


class _Weights:
    """The parameters whose values a network contains. They stay alive, so that no other tensor gets their memory."""

    def __init__(self, parameters: Sequence[Any]) -> None:
        self._kept = [(one, one.detach(), one._version) for one in parameters]

    def are(self, parameters: Sequence[Any]) -> bool:
        """Whether they are these parameters, as they were: Dynamo reuses the graph of a model for its other instances.
        Assigning `data` replaces the memory of a parameter, and writing to it changes the version."""
        return len(parameters) == len(self._kept) and all(
            now is one and now.data_ptr() == memory.data_ptr() and now._version == version
            for now, (one, memory, version) in zip(parameters, self._kept)
        )


def backend(graph: Any, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The entry point of torch.compile. `options`: {"trials": N} tunes each graph first; otherwise tasks that were never
    tuned get the schedule that a search would begin with."""
    unknown = sorted(set(options or {}) - {"trials"})
    if unknown:
        raise errors.InvalidArgument(f"the backend hone has no option {unknown[0]!r}; it has trials")
    tensors = all(isinstance(one, torch.Tensor) and one.device.type == "cpu" for one in example_inputs)
    if not tensors:
        _count("inputs that are not tensors on the CPU")
        return graph.forward  # type: ignore[no-any-return]
    if torch.is_grad_enabled() and any(one.requires_grad for one in example_inputs):
        _count("gradients are enabled; use torch.inference_mode() or torch.no_grad()")
        return graph.forward  # type: ignore[no-any-return]
    constant = [isinstance(one, torch.nn.Parameter) for one in example_inputs]
    free = [place for place, one in enumerate(constant) if not one]
    weights = _Weights([value for value, one in zip(example_inputs, constant) if one])
    try:
        network, multiple = _network(graph, example_inputs, free, int((options or {}).get("trials", 0)))
    except Exception as error:  # whatever the exporter or Hone cannot do, PyTorch can
        _count(str(error) or type(error).__name__)
        return graph.forward  # type: ignore[no-any-return]
    _count("compiled")

    def compiled(*inputs: Any) -> Any:
        if not weights.are([inputs[place] for place, one in enumerate(constant) if one]):
            _count("weights are not those that the graph was compiled with")
            return graph.forward(*inputs)
        results = network(*[inputs[place].detach().contiguous() for place in free])
        return (results if isinstance(results, tuple) else (results,)) if multiple else results

    return compiled


def _network(graph: Any, values: Sequence[Any], free: Sequence[int], trials: int) -> tuple[Network, bool]:
    """The graph as a network, and whether it returns a tuple."""
    from . import client

    bound = _Bound(graph, values, free).eval()
    inputs = tuple(values[place].detach() for place in free)
    with TemporaryDirectory(prefix="hone-torch-") as folder, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        multiple = isinstance(bound(*inputs), (tuple, list))
        path = str(Path(folder) / "graph.onnx")
        # The exporter by tracing keeps weights as constants, and needs no further package.
        torch.onnx.export(bound, inputs, path, opset_version=17, dynamo=False)
        if trials:
            made = client().tune(path, trials=trials, progress=False)
            assert isinstance(made, Network)
            return made, multiple
        return Network(client().connection, path), multiple
