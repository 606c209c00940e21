"""Jobs: searches that the server runs, which are followed or left alone."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Iterable, Iterator

from . import _proposals, _protocol, errors
from ._best import Best, best_of, duration, table
from ._workload import Workload

if TYPE_CHECKING:
    from ._client import Client
    from ._kernel import Kernel
    from ._network import Network, Networks
    from .plot import Plot
    from ._records import Records


class Job:
    """A search. Its fields are those of the state that the server sent last; used by any number of threads.

    A thread follows a job that this process has started or waits for. A private server cancels a job that nobody follows."""

    def __init__(self, client: Client, message: Any, model: str = "", shapes: Any = None) -> None:
        self._client = client
        self._message = message
        self._model, self._shapes = model, shapes  # of a network
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._trouble: errors.Error | None = None  # why the thread has ended before the job

    @property
    def id(self) -> str:
        return str(self._message.id)

    @property
    def state(self) -> str:
        """"pending", "running", "confirming", "done", "cancelled" or "failed"."""
        return _protocol.enum_names("JobState")[self._message.state]

    @property
    def has_ended(self) -> bool:
        return self.state in _proposals.ENDED

    @property
    def trials(self) -> int:
        """How many candidates were measured."""
        return int(self._message.trials)

    @property
    def max_trials(self) -> int:
        """0: there is no limit."""
        return int(self._message.request.max_trials)

    @property
    def is_network(self) -> bool:
        return bool(self._message.HasField("network"))

    @property
    def sizes(self) -> dict[str, float]:
        """The weight of each size of a network that is tuned for several, as in {"N=1": 3.0, "N=8": 1.0}; else empty."""
        sizes = self._message.request.network.networks
        return {str(one.name): float(one.weight) or 1.0 for one in sizes} if len(sizes) > 1 else {}

    @property
    def latency_ns(self) -> float:
        """Of the best so far; of a network, the sum over its tasks. 0: unknown."""
        return float(self._message.network.latency_ns if self.is_network else self._message.best.latency_ns)

    @property
    def default_latency_ns(self) -> float:
        """The same for the untiled default schedule. 0: unknown."""
        message = self._message
        return float(message.network.default_latency_ns if self.is_network else message.default_schedule.latency_ns)

    @property
    def best(self) -> Best:
        """The best so far, which is confirmed when the job is done. NothingKnown: there is none."""
        return best_of(self._message.best)

    @property
    def counts(self) -> dict[str, int]:
        """How many trials had each outcome, such as "ok"."""
        return dict(self._message.outcomes)

    @property
    def error(self) -> str:
        """Why it failed, or why it ended early."""
        return str(self._message.error or self._message.note)

    def __str__(self) -> str:
        best = f", best {duration(self.latency_ns)}" if self.latency_ns else ""
        return f"job {self.id} is {self.state}: {self.trials} trials{best}"

    def __repr__(self) -> str:
        return f"<hone.Job {self}>"

    def _repr_html_(self) -> str:
        rows = {"job": str(self), "target": self._message.target, "workload": self._message.workload}
        return table({name: text for name, text in rows.items() if text})

    def _set(self, message: Any) -> Job:
        with self._changed:
            if not self.has_ended:  # answers may overtake each other
                self._message = message
            self._changed.notify_all()
        return self

    def follow(self) -> Job:
        """Keeps the fields up to date from now on, without waiting."""
        self._client.connection.channel()  # in a forked process, the thread does not exist
        with self._changed:
            if self._thread is None or (self._trouble is not None and not self.has_ended):
                self._trouble = None
                self._thread = threading.Thread(target=self._watch, name=f"hone-job-{self.id}", daemon=True)
                self._thread.start()
        return self

    def _watch(self) -> None:
        trouble: errors.Error
        try:
            for message in self._client.connection.watch(self.id):
                self._set(message)
            trouble = errors.ServerUnavailable(f"the server ended the report on job {self.id}; wait() asks again")
        except errors.Error as error:
            trouble = error
        with self._changed:
            self._trouble = trouble
            self._changed.notify_all()

    def refresh(self) -> Job:
        """Asks the server for the current state."""
        return self._set(self._client.connection.call("GetJob", id=self.id))

    def cancel(self, confirm: bool = True) -> Job:
        """Ends the search. With `confirm`, the best candidates are confirmed, which takes at most 30 s."""
        return self._set(self._client.connection.call("CancelJob", id=self.id, confirm_finalists=confirm))

    def wait(self, timeout: float | None = None, progress: bool | None = False) -> Job:
        """Waits until the job has ended, or raises TimeoutError after some seconds; the job then continues.

        `progress`: show a bar; None: if tqdm is installed and there is somebody to see it. After Ctrl-C, the job confirms
        its best candidates, and Interrupted is raised; after a second Ctrl-C, it ends at once.
        Failed: the job failed, and the message says why."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with _Bar(self, progress) as bar:
            try:
                self._await_end(bar, deadline)
            except KeyboardInterrupt:
                self._interrupted(bar)
        if self.state == "failed":
            raise errors.Failed(f"job {self.id} failed: {self.error}")
        return self

    def _await_end(self, bar: _Bar, deadline: float | None) -> None:
        self.follow()
        while not self.has_ended:
            bar.show()
            if self._trouble is not None:
                raise self._trouble
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{self}; it continues, and wait() waits longer")
            with self._changed:
                if not self.has_ended:
                    self._changed.wait(0.1)
        bar.show()

    def _interrupted(self, bar: _Bar) -> None:
        try:
            self.cancel(confirm=True)
            self._await_end(bar, None)
        except KeyboardInterrupt:
            self.cancel(confirm=False)
        raise errors.Interrupted(self) from None

    def result(self, timeout: float | None = None) -> Kernel | Network | Networks:
        """Waits, and returns the kernel or the network."""
        self.wait(timeout)
        if self.is_network:
            if not self._model:
                raise errors.InvalidArgument(f"job {self.id} was found by its number, so its model is not known here; "
                                             "load it with hone.load(MODEL.onnx)")
            target = str(self._message.target)
            is_gpu = "-cuda-" in target or "-opencl-" in target
            return self._client.load(self._model, shapes=self._shapes, target=target if is_gpu else "native",
                                     tolerance=float(self._message.request.tolerance))
        return self._client.kernel_of(Workload(self.best.workload), self.best, job=self)

    def records(self) -> Records:
        """The measurements of this job, the oldest first."""
        return self._client.records(job=self.id)

    @property
    def workload(self) -> str:
        """Its text, with which every trace of the job begins; "" for a job of networks."""
        return str(self._message.workload)

    @property
    def target(self) -> str:
        return str(self._message.target)

    def draft(self) -> str:
        """The trace of the schedule that a search of this job would begin with, by the server's estimate alone."""
        message = self._message
        answer = self._client.connection.call("DraftSchedule", timeout=300.0, workload=message.workload,
                                              target=message.target, tolerance=message.request.tolerance)
        return str(answer.trace)

    def propose(self, traces: Iterable[str], proposer: str = "python") -> list[_proposals.Verdict]:
        """Proposes schedules, the texts of trace files in which every sampling is decided, for this running job.

        The job measures those that it accepts among its own candidates and within its limits, and its records name
        the `proposer`. Failed: the job does not search, or no longer. docs/proposers.md has the rules and the limits."""
        return _proposals.propose(self._client.connection, self.id, proposer, traces)

    def outcomes(self, trials: Iterable[int] | None = None, *, proposer: str = "",
                 timeout: float | None = None) -> Iterator[_proposals.Trial]:
        """What the job measures of proposed schedules, from the first one on and as it comes, until the job has ended.

        `trials`: only of these, until each was measured once. `proposer`: only of this program.
        TimeoutError: it took longer than `timeout` seconds."""
        pages = _proposals.Pages(self._client.connection, self.id, proposed=True, proposer=proposer)
        return _proposals.outcomes(pages, None if trials is None else set(trials), timeout)

    def measured(self, traces: bool = True) -> list[_proposals.Trial]:
        """Everything that the job has measured so far, also of its own search, in order. `traces`: with the schedules."""
        return list(_proposals.Pages(self._client.connection, self.id, with_traces=traces).read())

    def plot(self) -> Plot:
        """The best latency over the trials."""
        from . import plot

        return plot.curve(self)


class _Bar:
    """A bar of tqdm, in a terminal or a notebook."""

    def __init__(self, job: Job, wanted: bool | None) -> None:
        self._job = job
        self._bar: Any = None
        if wanted is None:
            wanted = sys.stderr.isatty() or "ipykernel" in sys.modules
            if not wanted:
                return
            try:
                import tqdm.auto
            except ImportError:
                return
        elif wanted:
            try:
                import tqdm.auto
            except ImportError:
                raise errors.InvalidArgument("progress=True needs tqdm: pip install 'hone[progress]'") from None
        if wanted:
            self._bar = tqdm.auto.tqdm(total=job.max_trials or None, unit="trial", desc=job.state)

    def __enter__(self) -> _Bar:
        return self

    def show(self) -> None:
        if self._bar is None:
            return
        self._bar.set_description_str(self._job.state, refresh=False)
        if self._job.latency_ns:
            self._bar.set_postfix_str(f"best {duration(self._job.latency_ns)}", refresh=False)
        self._bar.update(self._job.trials - self._bar.n)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
