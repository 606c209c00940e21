"""What a user does: tune, look up, load, list."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import uuid
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Mapping, Sequence, TypedDict, Union, overload

from . import _programs, errors
from ._best import Best, best_of
from ._connection import Connection, Settings
from ._cuda import CudaKernel
from ._job import Job
from ._kernel import Kernel
from ._network import Network, Networks, Shapes, all_shapes, shape_words
from ._records import Records
from ._workload import Workload

if TYPE_CHECKING:
    from typing_extensions import Unpack

Source = Union[str, "os.PathLike[str]", Workload]
_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
_PAGE = 1000


def seconds(text: Union[str, float, int]) -> float:
    """The seconds of a number, or of a text such as "1h30m".

    >>> seconds("1m30s"), seconds(5)
    (90.0, 5.0)
    """
    if isinstance(text, (int, float)):
        return float(text)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|(?=$))", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise errors.InvalidArgument(f"{text!r} is not a time; write it as in 60s, 10m or 1h30m")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


class SearchOptions(TypedDict, total=False):
    """The options of a search; those of `hone tune --help` with the same names."""

    trials: int
    time: Union[str, float]  # "60s", or seconds
    target: str
    tolerance: float
    seed: int
    strategy: str
    cost_model: str
    priority: str
    shapes: Union[Shapes, Sequence[Shapes]]  # of a network's inputs with open dimensions; several for a search of each
    batch: Union[int, Sequence[int]]  # the first dimension of a network's inputs, if it is open
    only_missing: bool  # only tasks of a network without a known best


class Client:
    """A user of one server: the named one, or the private server of this user, which starts at the first call and stops
    when its last client has closed. Used by any number of threads."""

    def __init__(self, server: str = "", *, config: str = "", ca: str = "", certificate: str = "", key: str = "",
                 token: str = "", token_file: str = "", server_name: str = "", insecure: bool = False,
                 local: bool = False) -> None:
        """What is not given comes from $HONE_SERVER and from client.conf, as for the `hone` command. `local`: the private
        server, whatever these say. `config`: another file than client.conf."""
        given = Settings(server, ca, certificate, key, token, token_file, server_name, insecure)
        self.connection = Connection(Settings() if local else given.completed(config))

    def close(self) -> None:
        """Ends the connection for ever. The private server ends if it has no other client, and so do its jobs."""
        self.connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @overload
    def tune(self, workload: Source, *, wait: Literal[True] = True, progress: Union[bool, None] = None,
             **options: Unpack[SearchOptions]) -> Union[Kernel, Network, Networks]: ...

    @overload
    def tune(self, workload: Source, *, wait: Literal[False], progress: Union[bool, None] = None,
             **options: Unpack[SearchOptions]) -> Union[Job, list[Job]]: ...

    def tune(self, workload: Source, *, wait: bool = True, progress: Union[bool, None] = None,
             **options: Unpack[SearchOptions]) -> Union[Kernel, Network, Networks, Job, list[Job]]:
        """Searches for a fast schedule of a workload, or of the tasks of a network, MODEL.onnx.

        Returns the kernel or the network, which can be called, or with wait=False the job. The options are those of
        SearchOptions. The search ends after `trials` measurements (256 if there is no time limit; 32 for each task of a
        network) or after `time`, such as "60s". `progress`: as for Job.wait. With several sizes of a network, as in
        batch=[1, 8], each gets a search with this limit, one after the other; with wait=False, the jobs run at the same time,
        and their list is returned."""
        if unknown := sorted(set(options) - set(SearchOptions.__annotations__)):
            raise TypeError(f"tune has no option {unknown[0]!r}; the options are "
                            f"{', '.join(SearchOptions.__annotations__)}, wait and progress")
        limit_s = seconds(options.get("time") or 0.0)
        if is_network(workload):
            return self._tune_networks(str(workload), limit_s, wait, progress, options)
        if options.get("shapes") or options.get("batch") or options.get("only_missing"):
            raise errors.InvalidArgument("shapes, batch and only_missing are for networks, MODEL.onnx")
        job = self._tune_workload(Workload(workload), limit_s, options)
        if not wait:
            return job
        job.wait(progress=progress)
        return job.result()

    def _tune_networks(self, model: str, limit_s: float, wait: bool, progress: Union[bool, None],
                       options: SearchOptions) -> Union[Network, Networks, Job, list[Job]]:
        shapes = all_shapes(model, options.get("batch"), options.get("shapes"))
        jobs = []
        for one in shapes:
            jobs.append(self._tune_network(model, one, limit_s, options))
            if wait:
                jobs[-1].wait(progress=progress)
        if not wait:
            return jobs if _are_several(options.get("batch"), options.get("shapes")) else jobs[0]
        return self._load_network(model, options.get("batch"), options.get("shapes"), target=options.get("target", "native"),
                                  tolerance=options.get("tolerance", 0.0))

    def _tune_workload(self, workload: Workload, limit_s: float, options: SearchOptions) -> Job:
        target = options.get("target", "native")
        request: dict[str, Any] = dict(
            request_id=uuid.uuid4().hex, workload=workload.text, max_time_ms=round(1000 * limit_s),
            max_trials=options.get("trials", 0) or (0 if limit_s else 256), target=self._tuning_target(target))
        for name in ("seed", "strategy", "cost_model", "tolerance", "priority"):
            if name in options:
                request[name] = options[name]
        # A wrong request must not wait for a worker.
        self.connection.call("CreateJob", validate_only=True, **request)
        self._start_worker(target)
        return Job(self, self.connection.call("CreateJob", timeout=40.0, **request)).follow()

    def _tune_network(self, model: str, shapes: Union[Shapes, None], limit_s: float, options: SearchOptions) -> Job:
        """`hone` reads the model, divides it into tasks and creates the job."""
        target = options.get("target", "native")
        words = ["tune", model, "--detach", "--target", self._tuning_target(target), *shape_words(shapes)]
        words += ["--time", f"{round(1000 * limit_s)}ms"] if limit_s else []
        for name in ("trials", "tolerance", "seed", "strategy", "cost_model", "priority"):
            value = options.get(name)
            words += [f"--{name.replace('_', '-')}", str(value)] if value else []
        words += ["--only-missing"] if options.get("only_missing") else []
        self._start_worker(target)
        answer = _programs.call([*words, *self.connection.words()])
        return Job(self, self.connection.call("GetJob", id=str(answer["jobs"][0]["job"])), model, shapes).follow()

    def _tuning_target(self, target: str) -> str:
        """The private server measures on this machine; for another one, "native" is the only target of its workers."""
        if self.connection.private is None:
            return "native" if target in ("", "native") else _programs.device(target)[1]
        name, key = _programs.device(target)
        if not name:
            raise errors.InvalidArgument(
                f"the target {target} is not a device of this machine, and the private server measures only here; connect "
                "to a server that has a worker of the target"
            )
        return key

    def _start_worker(self, target: str) -> None:
        if self.connection.private is not None:
            self.connection.start_worker(_programs.device(target)[0])

    def best(self, workload: Source, *, target: str = "native", tolerance: float = 0.0, nearest: bool = False) -> Best:
        """The best confirmed schedule. `nearest`: if there is none, that of a similar shape, adapted and not measured.
        NothingKnown: there is none."""
        answer = self.connection.call("LookupBest", workload=Workload(workload).text, target=_programs.device(target)[1],
                                      tolerance=tolerance, nearest=nearest)
        return best_of(answer)

    def load(self, workload: Source, *, target: str = "native", tolerance: float = 0.0, threads: int = 0,
             shapes: Union[Shapes, Sequence[Shapes], None] = None, batch: Union[int, Sequence[int], None] = None,
             draft: bool = True) -> Union[Kernel, Network, Networks]:
        """The best known kernel, or a network, MODEL.onnx, of the best known kernels, for the CPU of this machine or for a
        `target` such as "cuda".

        `threads` 0: OMP_NUM_THREADS, or the usable CPUs. A task of a network without a confirmed schedule uses the best
        measured one, or else that with which a search would begin; the network's `schedules` counts them. `draft`: also if
        nothing of the network was tuned. `batch`: the first dimension of a network's inputs, if it is open. `shapes`: of inputs
        by their names, and of dimensions by theirs. A list of batches, or of shapes, returns Networks: a call runs the network
        for the shapes of its arrays. NothingKnown: there is no kernel."""
        if is_network(workload):
            return self._load_network(str(workload), batch, shapes, draft, tolerance, threads, target)
        if shapes or batch:
            raise errors.InvalidArgument("shapes and batch are for networks, MODEL.onnx")
        made = Workload(workload)
        return self.kernel_of(made, self.best(made, target=target, tolerance=tolerance), threads)

    def _load_network(self, model: str, batch: Union[int, Sequence[int], None], shapes: Union[Shapes, Sequence[Shapes], None],
                      draft: bool = True, tolerance: float = 0.0, threads: int = 0,
                      target: str = "native") -> Union[Network, Networks]:
        networks = [Network(self.connection, model, one, draft, tolerance, threads, target)
                    for one in all_shapes(model, batch, shapes)]
        return Networks(networks) if _are_several(batch, shapes) else networks[0]

    def kernel_of(self, workload: Workload, best: Best, threads: int = 0, job: Union[Job, None] = None) -> Kernel:
        """The measured kernel of a best."""
        if best.target.startswith("nvptx64-"):
            return CudaKernel(workload, best, lambda: self.artifact(best), job)
        return Kernel(workload, best, lambda: self.artifact(best), threads, job)

    def artifact(self, best: Best) -> bytes:
        """The bytes of a best's kernel."""
        if not best.target.startswith("nvptx64-") and best.target != _programs.device("native")[1]:
            raise errors.Failed(f"the kernel was tuned for {best.target}, which is neither the CPU of this machine nor a GPU of "
                                "NVIDIA; hone export writes its files")
        if not best.artifact:
            raise errors.NothingKnown("the schedule was never built; tune the workload first")
        parts, size = [], 0
        for chunk in self.connection.stream("GetArtifact", digest=best.artifact):
            size = chunk.total_bytes or size
            parts.append(chunk.data)
        data = b"".join(parts)
        if len(data) != size:
            raise errors.ServerUnavailable(f"the server sent {len(data)} of the {size} bytes of a kernel; try again")
        return data

    def export(self, workload: Source, folder: Union[str, os.PathLike[str]], *, target: str = "native",
               shapes: Union[Shapes, None] = None, draft: bool = False, overwrite: bool = False) -> list[Path]:
        """Writes the best kernel, or a network, as files that programs use without Hone, and returns their paths."""
        with contextlib.ExitStack() as stack:
            if is_network(workload):
                words = [str(workload), *shape_words(shapes)]
            else:
                made = Workload(workload)
                scratch = Path(stack.enter_context(tempfile.TemporaryDirectory())) / f"{made.name}.hone"
                scratch.write_text(made.text)
                words = [str(scratch)]
            words += ["--draft"] if draft else []
            words += ["--overwrite"] if overwrite else []
            words += ["--target", target] if target not in ("", "native") else []
            answer = _programs.call(["export", *words, "-o", os.fspath(folder), *self.connection.words()])
            return [Path(one) for one in answer["files"]]

    def records(self, *, op: str = "", target: str = "", job: str = "", outcome: str = "", best: bool = False,
                limit: int = 0) -> Records:
        """Measurements, the oldest first. `best`: only the published ones. `limit` 0: all."""
        found: list[Any] = []
        token = ""
        while True:
            size = min(_PAGE, limit - len(found)) if limit else _PAGE
            answer = self.connection.call(
                "ListRecords", operator=op, target=_programs.device(target)[1] if target else "", job_id=job,
                outcome=outcome, best_only=best, page_size=size, page_token=token)
            found += answer.records
            token = answer.next_page_token
            if not token or (limit and len(found) >= limit):
                return Records(found)

    def jobs(self) -> list[Job]:
        """The jobs of the server, the newest first."""
        found, token = [], ""
        while True:
            answer = self.connection.call("ListJobs", page_size=_PAGE, page_token=token)
            found += [Job(self, one) for one in answer.jobs]
            token = answer.next_page_token
            if not token:
                return found

    def job(self, number: Union[str, int]) -> Job:
        """A job by its id. NothingKnown: there is none."""
        return Job(self, self.connection.call("GetJob", id=str(number)))


def is_network(source: Source) -> bool:
    return not isinstance(source, Workload) and os.fspath(source).endswith(".onnx")


def _are_several(batch: Union[int, Sequence[int], None], shapes: Union[Shapes, Sequence[Shapes], None]) -> bool:
    """Whether a list was given, even of one size."""
    return not (batch is None or isinstance(batch, Integral)) or not (shapes is None or isinstance(shapes, Mapping))
