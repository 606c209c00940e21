"""Runs the kernels of a case and compares them with the oracle. This is a separate process, because
a kernel may crash or hang; the last "step" tells the parent which kernel it was.

Reads a line of JSON per case on standard input and answers with lines of JSON. The last one has the
event "verdict".
"""
import contextlib
import json
import sys

import numpy as np

import dtypes
import evaluate
import inputs as drawing
import kernel as calling
import onnx_oracle
import operators
import workload_text
from compare import compare
from number import Number, Sums

_POISONS = (0xFF, 0xAA)  # 0xFF... is NaN in every float type


def _send(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class _Expected:
    """The expected outputs for one filling of the inputs, from each oracle."""

    def __init__(self, case, workload, filling):
        self.arrays = [
            drawing.draw(filling, tensor.dtype, tensor.shape, case["seed"], tensor.name,
                         tensor.bound)
            for tensor in workload.inputs]
        self._case, self._workload = case, workload
        self._numbers = {
            tensor.name: Number(dtypes.loaded(tensor.dtype),
                                dtypes.from_memory(tensor.dtype, array))
            for tensor, array in zip(workload.inputs, self.arrays)}
        self.contents = [dtypes.pack(tensor.dtype, array)
                         for tensor, array in zip(workload.inputs, self.arrays)]
        self._known = {}

    def outputs(self, tolerance):
        """Pairs (oracle, Numbers in the order of the outputs) for kernels with this tolerance."""
        if tolerance not in self._known:
            Sums.tolerance = tolerance
            self._known[tolerance] = self._compute()
            Sums.tolerance = 0.0
        return self._known[tolerance]

    def _compute(self):
        found = []
        if self._case["source"] == "operator":
            found.append(("the operator's definition",
                          operators.define(self._case["text"], self._numbers)))
        # Evaluating an operator's text as well checks the operator library.
        if self._case["source"] != "operator" or self._case.get("text_too"):
            by_name = evaluate.evaluate(self._workload, self._numbers)
            found.append(("the workload's text",
                          [by_name[name] for name in self._workload.outputs()]))
        return found


class _Case:
    def __init__(self, request):
        self.case, self.kernels = request["case"], request["kernels"]
        self.workload = workload_text.parse(request["text"])
        self.outputs = [(t["name"], t["dtype"], t["shape"]) for t in request["outputs"]]
        self.failures, self.runs, self.told, self.unsupported = [], 0, 1.0, 0
        self.worst = 0.0
        self.onnx = False

    def fail(self, message, kernel=None):
        self.failures.append({"message": message, "kernel": kernel})

    def check(self):
        names = [(t.name, t.dtype, list(t.shape)) for t in self.workload.inputs]
        sent = [(t["name"], t["dtype"], t["shape"]) for t in self.case["inputs"]]
        if names != sent:
            self.fail(f"the oracle reads the inputs as {names}, Hone as {sent}")
            return
        for n, filling in enumerate(self.case["fillings"]):
            _send("step", step=f"compute what filling {filling} gives", kernel=None)
            expected = _Expected(self.case, self.workload, filling)
            self._check_onnx(expected, filling)
            for k, kernel in enumerate(self.kernels):
                if not kernel["path"] or len(self.failures) > 8:
                    continue
                _send("step", step=f"run kernel {k} ({kernel['origin']}) on filling {filling}",
                      kernel=k)
                try:
                    self._check_kernel(kernel, expected, thorough=n == 0)
                except calling.UnsupportedCpu:
                    self.unsupported += 1
                except calling.Fault as fault:
                    self.fail(f"{kernel['origin']}, filling {filling}: {fault}", k)

    def _check_onnx(self, expected, filling):
        node, text = self.case.get("node"), self.case["text"]
        given = None
        if node:
            given = onnx_oracle.run_case(node, expected.arrays)
        elif self.case["source"] == "operator":
            given = onnx_oracle.run(text, expected.arrays, filling)
        if given is None:
            return
        self.onnx = True
        (who, numbers), *_ = expected.outputs(0.0)
        for (name, _, _), array, number in zip(self.outputs, given, numbers):
            allowance = 0.0 if node else onnx_oracle.allowance(text, expected.arrays, number.value)
            comparison = compare(name, array, number, allowance)
            if comparison.message:
                self.fail(f"ONNX Runtime and {who} disagree, filling {filling}: "
                          f"{comparison.message}")

    def _check_kernel(self, kernel, expected, thorough):
        with contextlib.closing(calling.Kernel(kernel["path"])) as loaded:
            self._check_loaded(loaded, kernel, expected, thorough)

    def _check_loaded(self, loaded, kernel, expected, thorough):
        if loaded.abi != 2:
            raise calling.Fault(f"the kernel has ABI {loaded.abi}, not 2")
        sizes = [dtypes.DTYPES[dtype].bytes * int(np.prod(shape, dtype=np.int64))
                 for _, dtype, shape in self.outputs]
        first = None
        for place, poison, how, runtime in self._ways(thorough):
            call = calling.Call(loaded, expected.contents, sizes, place, poison, runtime)
            for _ in range(2 if thorough else 1):
                given = call.run()
                self.runs += 1
                if first is None:
                    first = given
                elif any(not np.array_equal(a, b) for a, b in zip(first, given)):
                    raise calling.Fault(
                        f"two runs on the same inputs differ (buffers at {place}, {how})")
            if thorough and place == "odd":
                call.run_wrong()
        for who, numbers in expected.outputs(kernel["tolerance"]):
            for (name, dtype, shape), data, number in zip(self.outputs, first, numbers):
                array = data.view(dtypes.DTYPES[dtype].memory).reshape(shape)
                if number.dtype != dtype:
                    raise calling.Fault(f"{name} is {dtype}, {who} has {number.dtype}")
                comparison = compare(name, array, number)
                self.told = min(self.told, comparison.told)
                self.worst = max(self.worst, comparison.worst)
                if comparison.message:
                    raise calling.Fault(f"not what {who} gives: {comparison.message}")

    def _ways(self, thorough):
        """The placement of buffers, their initial content, and the runtime with its name."""
        threads = self.case["threads"]
        yield "odd", _POISONS[0], "threads", calling.Runtime(threads)
        if thorough:
            yield "end", _POISONS[1], "backwards", calling.Runtime(threads, backwards=True)
            yield "begin", _POISONS[0], "without a runtime", None


def main():
    for line in sys.stdin:
        case = _Case(json.loads(line))
        case.check()
        _send("verdict", failures=case.failures, runs=case.runs, told=case.told, worst=case.worst,
              onnx=case.onnx, unsupported=case.unsupported)



if __name__ == "__main__":
    main()
