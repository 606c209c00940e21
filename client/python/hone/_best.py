"""The best known schedule of a workload on a target."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from . import errors


def duration(ns: float) -> str:
    """"1.5 ms".

    >>> duration(1_500_000)
    '1.5 ms'
    """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.4g} ns"


@dataclass(frozen=True)
class Best:
    """What LookupBest of the server knows. `latency_ns` is 0 for a schedule that was adapted and never measured."""

    workload: str
    target: str
    tolerance: float
    latency_ns: float
    gflops: float
    peak_gflops: float  # of the machine; 0: unknown
    read_gbps: float    # of the machine, from memory; 0: unknown
    confirmed: bool     # in processes of its own; hone.best returns only such a schedule
    disturbed: bool     # by other work, in every process that measured it
    nearest: bool       # adapted from another workload, and never measured
    record: int
    trace: str
    artifact: str       # digest of the kernel

    def __str__(self) -> str:
        if self.nearest:
            return "adapted from another shape, not measured"
        share = f" ({100 * self.gflops / self.peak_gflops:.0f} % of peak)" if self.peak_gflops else ""
        return f"{'' if self.confirmed else '~'}{duration(self.latency_ns)}, {self.gflops:.4g} GFLOP/s{share}"

    def _repr_html_(self) -> str:
        rows = {"workload": self.workload.strip(), "target": self.target, "best": str(self), "schedule": self.trace}
        return table(rows)


def table(rows: dict[str, str]) -> str:
    """Rows as HTML, with their text quoted."""
    cells = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>"
                    f"<pre>{html.escape(text)}</pre></td></tr>" for name, text in rows.items())
    return f"<table>{cells}</table>"


def best_of(message: Any) -> Best:
    """From a message hone.v1.Best. NothingKnown: it is empty."""
    record = message.record
    if not message.workload or not record.target:
        raise errors.NothingKnown("there is no best yet")
    return Best(
        workload=message.workload, target=record.target, tolerance=record.tolerance, latency_ns=message.latency_ns,
        gflops=message.gflops, peak_gflops=message.peak_gflops, read_gbps=message.read_gbps, confirmed=message.confirmed,
        disturbed=message.disturbed, nearest=message.HasField("nearest"), record=record.id, trace=message.trace,
        artifact=record.result.artifact_digest,
    )
