"""Plots with matplotlib, which notebooks show: the curve of a search, the roofline, the importance of decisions."""

from __future__ import annotations

import base64
import io
import math
import os
import re
from typing import TYPE_CHECKING, Any, Sequence, Union

import numpy

from . import _arrays, errors
from ._best import Best, duration
from ._workload import Workload

if TYPE_CHECKING:
    from ._job import Job
    from ._records import Records


class Plot:
    """A figure with the data that it shows."""

    def __init__(self, figure: Any, data: dict[str, list[Any]]) -> None:
        self.figure = figure
        self.data = data

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the figure; the name's end is its format, such as .svg or .png."""
        self.figure.savefig(path, bbox_inches="tight")

    def _repr_html_(self) -> str:
        memory = io.BytesIO()
        self.figure.savefig(memory, format="png", bbox_inches="tight")
        return f'<img src="data:image/png;base64,{base64.b64encode(memory.getvalue()).decode()}"/>'


def _figure(title: str, x: str, y: str) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise errors.InvalidArgument("plots need matplotlib: pip install 'hone[plots]'") from None
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return figure, axes


def _search(source: Union[Job, Records]) -> list[dict[str, Any]]:
    """The successful trials of a search, in order."""
    rows: Any = source if isinstance(source, Sequence) else source.records()
    chosen = [row for row in rows if row["outcome"] == "ok" and row["policy"] == "screen" and row["trial"] >= 0]
    if not chosen:
        raise errors.NothingKnown("there is no successful measurement of a search to plot")
    return sorted(chosen, key=lambda row: (row["created_unix_ms"], row["trial"]))


def curve(source: Union[Job, Records]) -> Plot:
    """The latency of each trial and the best so far."""
    rows = _search(source)
    latencies = [row["latency_ns"] for row in rows]
    best = numpy.minimum.accumulate(latencies).tolist()
    count = list(range(1, len(rows) + 1))
    figure, axes = _figure(f"{rows[0]['operator']}: best {duration(best[-1])}", "successful trial", "latency in us")
    axes.plot(count, [one / 1e3 for one in latencies], ".", alpha=0.5, label="trial")
    axes.step(count, [one / 1e3 for one in best], where="post", label="best so far")
    axes.set_yscale("log")
    axes.legend()
    return Plot(figure, {"trial": count, "latency_ns": latencies, "best_ns": best})


def roofline(bests: Union[Best, Sequence[Best]]) -> Plot:
    """The speed of kernels below the limits of their machine. Each tensor is assumed to be moved once."""
    listed = [bests] if isinstance(bests, Best) else list(bests)
    if not listed or any(not (one.latency_ns and one.peak_gflops and one.read_gbps) for one in listed):
        raise errors.NothingKnown("a roofline needs measured kernels on a machine with a known peak and bandwidth")
    data: dict[str, list[Any]] = {"workload": [], "flops_per_byte": [], "gflops": []}
    for one in listed:
        workload = Workload(one.workload)
        moved = sum(math.prod(_arrays.numpy_shape(t)) * numpy.dtype(_arrays.DTYPES[t.dtype]).itemsize
                    for t in workload.tensors)
        data["workload"].append(workload.name)
        data["flops_per_byte"].append(one.gflops * one.latency_ns / moved)
        data["gflops"].append(one.gflops)
    peak, bandwidth = max(one.peak_gflops for one in listed), max(one.read_gbps for one in listed)
    figure, axes = _figure(f"{peak:.4g} GFLOP/s, {bandwidth:.4g} GB/s", "FLOP per byte", "GFLOP/s")
    low = min([*data["flops_per_byte"], peak / bandwidth]) / 4
    high = max([*data["flops_per_byte"], peak / bandwidth]) * 4
    axes.loglog([low, peak / bandwidth, high], [low * bandwidth, peak, peak], color="black")
    for name, x, y in zip(*data.values()):
        axes.loglog([x], [y], "o", label=name)
    axes.legend()
    return Plot(figure, data)


def importance(source: Union[Job, Records], trace: str = "") -> Plot:
    """For each decision of the most frequent design space, the share of the variance of log(latency) between its values.

    `trace`: of a schedule of this space, which names the decisions; that of the job's best by default."""
    rows = _search(source)
    spaces = [row["space"] for row in rows]
    space = max(set(spaces), key=spaces.count)
    rows = [row for row in rows if row["space"] == space]
    logs = numpy.log([row["latency_ns"] for row in rows])
    total = float(((logs - logs.mean()) ** 2).sum())
    if len(rows) < 3 or total == 0:
        raise errors.NothingKnown("the importance of decisions needs at least three different measurements of a design space")
    names = _decision_names(trace or _trace_of(source), len(rows[0]["decisions"]))
    shares = []
    for place in range(len(names)):
        values = numpy.array([row["decisions"][place] for row in rows])
        between = sum(len(group) * (group.mean() - logs.mean()) ** 2
                      for group in (logs[values == value] for value in set(values.tolist())))
        shares.append(float(between) / total)
    order = sorted(range(len(names)), key=shares.__getitem__)
    figure, axes = _figure(f"{rows[0]['operator']}: {len(rows)} trials", "share of the variance", "")
    axes.barh([names[one] for one in order], [shares[one] for one in order])
    return Plot(figure, {"decision": [names[one] for one in order], "share": [shares[one] for one in order]})


def _trace_of(source: Union[Job, Records]) -> str:
    try:
        return str(source.best.trace)  # type: ignore[union-attr]
    except (AttributeError, errors.NothingKnown):
        return ""


def _decision_names(trace: str, count: int) -> list[str]:
    names = [f"{number} {kind}" for number, kind in enumerate(re.findall(r"= (sample_\w+)\(", trace))]
    return names if len(names) == count else [f"decision {number}" for number in range(count)]
