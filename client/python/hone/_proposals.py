"""Schedules that this program proposes for a job of the server, and what the server measured."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Iterable, Iterator

from . import _protocol, errors

_AT_ONCE = 64      # traces of a call; proposal.proto
_BYTES = 8 << 20   # of the traces of a call, unless it has only one
_PAGE = 200
_POLL_S = 0.1
ENDED = ("done", "cancelled", "failed")


@dataclass(frozen=True)
class Verdict:
    """What the server says about a proposed trace."""

    trace: str
    trial: int    # its number in the job, which measures it; -1: it is refused
    refusal: str  # "malformed", "open", "other_workload", "illegal", "tolerance", "known" or "full"; "": it is accepted
    why: str

    @property
    def accepted(self) -> bool:
        return not self.refusal

    def __str__(self) -> str:
        """
        >>> print(Verdict("", 7, "", ""), Verdict("", -1, "known", "it is trial 3"), sep="; ")
        trial 7; refused (known): it is trial 3
        """
        return f"trial {self.trial}" if self.accepted else f"refused ({self.refusal}): {self.why}"


@dataclass(frozen=True)
class Trial:
    """One measurement of a candidate of a job."""

    trial: int         # 0: the default schedule
    proposer: str      # the program that proposed it; "": the job's own search
    purpose: str       # "screen": the search; "confirm": again, as a leader or a finalist
    outcome: str       # "ok", "wrong_output", …
    detail: str        # why it failed
    latency_ns: float  # 0 unless it is ok
    disturbed: bool    # other work disturbed the measurement
    is_best: bool      # it is the schedule that the job showed as its best then
    trace: str         # of the schedule, with its decisions; "" unless asked for
    record: int

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"


def propose(connection: Any, job: str, proposer: str, traces: Iterable[str]) -> list[Verdict]:
    """The verdicts of all traces, in order."""
    wanted = [traces] if isinstance(traces, str) else list(traces)
    for one in wanted:
        if not isinstance(one, str):
            raise errors.InvalidArgument(f"a trace is the text of a trace file, not {type(one).__name__}")
    refusals = _protocol.enum_names("ProposalVerdict.Refusal")
    found: list[Verdict] = []
    for part in _calls(wanted):
        answer = connection.call("Propose", timeout=120.0, job=job, proposer=proposer, traces=part)
        found += [Verdict(trace, one.trial, refusals[one.refusal] if one.refusal else "", one.why)
                  for trace, one in zip(part, answer.verdicts)]
    return found


def _calls(traces: list[str]) -> Iterator[list[str]]:
    """The traces of each call."""
    part: list[str] = []
    size = 0
    for trace in traces:
        length = len(trace.encode())
        if part and (len(part) == _AT_ONCE or size + length > _BYTES):
            yield part
            part, size = [], 0
        part.append(trace)
        size += length
    if part:
        yield part


class Pages:
    """Reads the measurements of a job from where it stopped the last time."""

    def __init__(self, connection: Any, job: str, **filters: Any) -> None:
        self._connection, self._job, self._filters, self._after = connection, job, filters, 0
        self.has_ended = False  # the job had ended before the last page was read

    def read(self) -> Iterator[Trial]:
        """What was measured since the last call."""
        more = True
        while more:
            page = self._connection.call("ListTrials", job=self._job, after=self._after, page_size=_PAGE, **self._filters)
            self._after, more = page.next, page.more
            self.has_ended = _protocol.enum_names("JobState")[page.state] in ENDED
            for one in page.trials:
                yield Trial(one.trial, one.proposer, one.purpose, _protocol.enum_names("Outcome")[one.outcome], one.detail,
                            one.latency_ns, one.quarantined, one.is_best, one.trace, one.record)


def outcomes(pages: Pages, trials: set[int] | None, timeout: float | None) -> Iterator[Trial]:
    """What is measured, as it comes, until the job has ended or each of `trials` was measured once."""
    deadline = None if timeout is None else time.monotonic() + timeout
    open_trials = None if trials is None else set(trials)
    while open_trials is None or open_trials:
        ended = pages.has_ended
        for one in pages.read():
            if trials is not None and one.trial not in trials:
                continue
            yield one
            if open_trials is not None:
                open_trials.discard(one.trial)
                if not open_trials:
                    return
        if ended:
            return
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError("the job has not measured the proposals yet; it continues, and outcomes() waits longer")
        if not pages.has_ended:
            time.sleep(_POLL_S)
