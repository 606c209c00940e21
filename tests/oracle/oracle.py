"""The independent oracle: see README.md. run.sh runs it, and finds the programs and packages."""
import argparse
import collections
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import cases
import onnx_oracle
import operators
import special
from peers import Builder, Checker, Died

_CASES_BETWEEN_NEWS = 1000
_MOST_SHOWN = 4  # failures that are printed per case
_BUILD_FIELDS = ("seed", "candidates", "random_traces", "threads", "target", "tolerance")


@dataclass
class Result:
    case: dict
    failures: list = field(default_factory=list)  # (message, the kernel or None)
    kernels: int = 0
    refused: int = 0
    runs: int = 0
    onnx: bool = False
    told: float = 1.0
    worst: float = 0.0
    unsupported: int = 0


class Worker:
    """Runs cases one after another with its own two processes."""

    def __init__(self, options):
        self._work = options.work
        self._builder, self._checker = Builder(options.program), Checker()

    def run(self, case):
        result = Result(case)
        # The loader identifies libraries by path, so each kernel needs its own.
        folder = tempfile.mkdtemp(dir=self._work)
        try:
            answer = self._builder.ask({
                case["source"]: case["text"], "folder": folder,
                **{key: case[key] for key in _BUILD_FIELDS}})
            self._check(case, answer, result)
        except Died as death:
            result.failures.append((str(death), None))
        shutil.rmtree(folder)
        return result

    def close(self):
        self._builder.close()
        self._checker.close()

    def _check(self, case, answer, result):
        kernels = [message for message in answer if message["event"] == "kernel"]
        for message in answer:
            if message["event"] in ("done", "reference") and not message["ok"]:
                what = "Hone's reference refuses the workload: " * (message["event"] == "reference")
                result.failures.append((what + message["detail"], None))
        for kernel in kernels:
            if kernel["outcome"] == "ok":
                result.kernels += 1
            elif kernel["outcome"] == "invalid" and kernel["origin"] != "default":
                result.refused += 1
            else:
                result.failures.append(
                    (f"{kernel['origin']}: {kernel['outcome']}: {kernel['detail']}", kernel))
        described = [message for message in answer if message["event"] == "workload"]
        if not described:
            return
        request = {"case": {**case, "inputs": described[0]["inputs"]}, "kernels": kernels,
                   "text": described[0]["text"] if case["source"] == "operator" else case["text"],
                   "outputs": described[0]["outputs"]}
        try:
            verdict = self._checker.ask(request)[-1]
        except Died as death:
            kernel = None if death.kernel is None else kernels[death.kernel]
            result.failures.append((str(death), kernel))
            return
        for failure in verdict["failures"]:
            kernel = None if failure["kernel"] is None else kernels[failure["kernel"]]
            result.failures.append((failure["message"], kernel))
        wrong = {failure["kernel"] for failure in verdict["failures"]}
        for n, kernel in enumerate(kernels):
            # With infinite bounds (nearly equal candidates of an argmax), the oracle cannot tell.
            if kernel["own_check"] and n not in wrong and verdict["told"] == 1.0:
                result.failures.append(
                    (f"Hone's own check refuses {kernel['origin']}, which is right: "
                     f"{kernel['own_check']}", kernel))
        for key in ("runs", "onnx", "told", "worst", "unsupported"):
            setattr(result, key, verdict[key])


class Report:
    def __init__(self, options):
        self._options = options
        self._lock = threading.Lock()
        self._counts = collections.Counter()
        self._by_name = collections.Counter()
        self._failed = []
        self._worst = 0.0
        self._begin = time.monotonic()

    def add(self, result):
        with self._lock:
            self._by_name[result.case["name"]] += 1
            self._counts.update(cases=1, kernels=result.kernels, refused=result.refused,
                                runs=result.runs, onnx=int(result.onnx),
                                vague=int(result.told < 0.5),
                                unsupported=result.unsupported)
            self._worst = max(self._worst, result.worst)
            if result.failures:
                self._failed.append(result.case["id"])
                self._print_failure(result)
            if self._counts["cases"] % _CASES_BETWEEN_NEWS == 0:
                print(f"{self._counts['cases']} cases, {len(self._failed)} failed, "
                      f"{time.monotonic() - self._begin:.0f} s", flush=True)

    def _print_failure(self, result):
        case = result.case
        print(f"\nFAILED case {case['id']}: {case['text'].strip()}")
        print(f"  seed={case['seed']} threads={case['threads']} target={case['target']} "
              f"fillings={','.join(case['fillings'])}")
        for n, (message, kernel) in enumerate(result.failures[:_MOST_SHOWN]):
            print("  " + message.replace("\n", "\n    "))
            if kernel is not None:
                print(f"    the kernel's trace: {self._save(case, n, message, kernel)}")
        if len(result.failures) > _MOST_SHOWN:
            print(f"  and {len(result.failures) - _MOST_SHOWN} more")
        print(f"  repeat: tests/oracle/run.sh --seed {self._options.seed} --case {case['id']}",
              flush=True)

    def _save(self, case, number, message, kernel):
        """Writes a file for --case."""
        folder = self._options.failures
        folder.mkdir(parents=True, exist_ok=True)
        name = case["id"].replace("/", "_").replace(":", "_")
        path = folder / f"seed{self._options.seed}-{name}-{number}.trace"
        path.write_text(
            f"# {message.splitlines()[0]}\n"
            f"# oracle: threads={case['threads']} fillings={','.join(case['fillings'])} "
            f"seed={case['seed']} target={case['target']} tolerance={kernel['tolerance']}\n"
            f"{kernel['trace']}")
        return path

    def finish(self):
        c = self._counts
        print("\n" + " ".join(f"{name}:{count}" for name, count in sorted(self._by_name.items())))
        print(f"oracle: seed {self._options.seed}, {c['cases']} cases, {c['kernels']} kernels, "
              f"{c['runs']} runs, {c['refused']} candidates refused, {c['onnx']} cases also by "
              f"ONNX Runtime, {c['vague']} with bounds for less than half of an output, "
              f"{c['unsupported']} unsupported here, largest error {self._worst:.2f} of its bound, "
              f"{time.monotonic() - self._begin:.0f} s")
        if self._failed:
            print(f"oracle: {len(self._failed)} cases FAILED: {' '.join(self._failed)}")
        return 1 if self._failed else 0


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="oracle_kernels")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is built")
    parser.add_argument("--cases", type=int, default=275, help="drawn cases (default %(default)s)")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("HONE_SEED", 1)),
                        help="of the drawn cases (default %(default)s, or HONE_SEED)")
    parser.add_argument("--first", type=int, default=0, help="number of the first drawn case")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--case", action="append", default=[],
                        help="only this one: a number of a drawn case, or a file (FILE:LINE)")
    parser.add_argument("--special", action="store_true",
                        help="nodes of ONNX models at special values instead (special.py)")
    parser.add_argument("--no-files", action="store_true", help="leave out the folder cases/")
    return parser.parse_args()


def _named_case(seed, name):
    if name.isdigit():
        return [cases.drawn(seed, int(name))]
    found = cases.from_file(name if Path(name).exists() else name.rsplit(":", 1)[0])
    return [case for case in found if case["id"] == name] or found


def _missing_operators(program):
    """The operators of the library and of ONNX that the oracle does not define."""
    builder = Builder(program)
    (listing, *_) = builder.ask({"operators": True})
    builder.close()
    return [*sorted(set(listing["names"]) - set(operators.OPERATORS)),
            *special.missing_operators(listing["onnx"])]


def _run_special(options):
    if options.case:
        return special.run(options, [Path(name) for name in options.case if not name.isdigit()],
                           [int(name) for name in options.case if name.isdigit()])
    files = [] if options.no_files else cases.network_files()
    if options.cases > 0 and not special.AVAILABLE:
        print("oracle: drawn cases need the packages onnx and onnxruntime; only the files run")
        return special.run(options, files, [])
    return special.run(options, files, range(options.first, options.first + options.cases))


def main():
    options = _arguments()
    print(f"oracle: seed {options.seed}; ONNX Runtime is "
          f"{'the second oracle' if onnx_oracle.AVAILABLE else 'not installed: NumPy alone'}",
          flush=True)
    missing = _missing_operators(options.program)
    if missing:
        print(f"oracle: operators.py, special_nodes.py or special_layers.py lack: {' '.join(missing)}")
        return 1
    options.failures = options.work / "failures"
    if options.special:
        return _run_special(options)
    if options.case:
        todo = [case for name in options.case for case in _named_case(options.seed, name)]
    else:
        todo = [] if options.no_files else cases.all_files()
        todo += [cases.drawn(options.seed, options.first + n) for n in range(options.cases)]
    report = Report(options)
    queue = collections.deque(todo)
    with tempfile.TemporaryDirectory(dir=options.work, prefix="run-") as folder:
        options.work = Path(folder)

        def work():
            worker = Worker(options)
            try:
                while True:
                    report.add(worker.run(queue.popleft()))
            except IndexError:
                worker.close()

        threads = [threading.Thread(target=work) for _ in range(options.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    code = report.finish()
    if options.case or options.no_files:
        return code
    return max(code, special.run(options, cases.network_files(), []))


if __name__ == "__main__":
    sys.exit(main())
