"""Every operator of ONNX models at special values, against ONNX's reference and ONNX Runtime.

A case is a model of one node with one or two sets of inputs. oracle_kernels imports it, builds its
kernels and runs it. Elements on which both references agree must be what they give. Other elements
do not count: ONNX leaves them open, or one of the references is wrong there.

Files in cases/ that end with .net hold cases with their expected outputs, so that they need no
package but NumPy. A failed case is written in the same form.
"""
import base64
import collections
import json
import threading
import time
import warnings

import numpy as np

import dtypes
import special_fill
import special_nodes
from peers import Builder, Died

try:
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    AVAILABLE = True
    onnxruntime.set_default_logger_severity(4)
except ImportError:
    AVAILABLE = False

_OPSET, _IR_VERSION = 22, 10
# The newest opsets of operators that no longer exist.
_OLD_OPSETS = {"Scatter": 10, "Upsample": 9, "GroupNormalization": 21}

# By type: the relative error within which numbers are the same, and a share of the largest one.
_RELATIVE = {"f16": 4e-3, "f32": 3e-5, "f64": 3e-5}
_NAMES = {np.dtype(kind): name for name, kind in special_fill.NUMPY.items()}


def _model(node):
    names = ["" if array is None else f"i{n}" for n, array in enumerate(node.inputs)]
    results = [f"o{n}" for n in range(node.outputs)]
    given, constants = [], []
    for n, (name, array) in enumerate(zip(names, node.inputs)):
        if array is None:
            continue
        if n in node.constants:
            constants.append(numpy_helper.from_array(np.asarray(array), name))
        else:
            given.append(helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    made = helper.make_node(node.op, names, results, **node.attributes)
    graph = helper.make_graph([made], "case", given,
                              [onnx.ValueInfoProto(name=name) for name in results], constants)
    opset = _OLD_OPSETS.get(node.op, _OPSET)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = _IR_VERSION
    return model


def _feeds(node, arrays):
    return {f"i{n}": array for n, array in enumerate(arrays)
            if array is not None and n not in node.constants}


def _try(run):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(output) for output in run()]
        except Exception:  # whatever a reference throws, it has no answer
            return None


def _references(model, feeds):
    """The outputs of both references; None for one without an answer."""
    def runtime():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        return session.run(None, feeds)

    return _try(lambda: ReferenceEvaluator(model).run(None, feeds)), _try(runtime)


def _same(dtype, how, a, b, scale):
    """Whether elements are equal within what correct computations may differ by."""
    if not dtypes.is_float(dtype):
        distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
        return distance <= (1 if how == "step" else 0)
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        if how == "exact":
            return equal
        info, relative = dtypes.DTYPES[dtype], _RELATIVE[dtype]
        allowed = relative * np.abs(b) + 4 * info.tiny
        if how in ("sum", "step"):
            allowed = allowed + relative * scale
        near = np.abs(a - b) <= allowed
        # Near the largest number, roundings decide whether a result is infinite.
        edge = info.largest * (1 - 4 * relative)
        return equal | near | ((np.sign(a) == np.sign(b)) & (np.abs(a) > edge) & (np.abs(b) > edge))


def _scale(arrays):
    most = 0.0
    for array in arrays:
        if array is not None and array.dtype.kind == "f":
            finite = np.abs(array[np.isfinite(array)].astype(np.float64))
            most = max(most, float(finite.max(initial=0.0)))
    return min(max(most, most * most), 1e300)


class Case:
    """A model with inputs, and what is known about the outputs: an array and a mask each."""

    def __init__(self, identity, op, model, runs, how, is_random, seed):
        self.id, self.op, self.model, self.runs, self.how = identity, op, model, runs, how
        self.is_random, self.seed = is_random, seed

    def request(self):
        encode = lambda array: base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        return {"network": base64.b64encode(self.model).decode(), "seed": self.seed,
                "random": self.is_random,
                "inputs": [[encode(array) for array in inputs] for inputs, _, _ in self.runs]}

    def to_json(self):
        return json.dumps({
            "op": self.op, "how": self.how, "seed": self.seed, "random": self.is_random,
            "model": base64.b64encode(self.model).decode(),
            "runs": [{"inputs": [_to_json(array) for array in inputs], "scale": scale,
                      "outputs": [{**_to_json(array), "known": known.reshape(-1).tolist()}
                                  for array, known in outputs]}
                     for inputs, outputs, scale in self.runs]})


def _to_json(array):
    array = np.asarray(array)
    elements = [repr(float(x)) if array.dtype.kind == "f" else int(x) for x in array.reshape(-1)]
    return {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "elements": elements}


def _from_json(tensor):
    kind = special_fill.NUMPY[tensor["dtype"]]
    elements = [float(x) if isinstance(x, str) else x for x in tensor["elements"]]
    with np.errstate(over="ignore"):
        return np.array(elements, kind).reshape(tensor["shape"])


def from_file(path):
    """The cases of a file: one JSON object per line."""
    cases = []
    for n, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.startswith("{"):
            continue
        known = json.loads(line)
        runs = [([_from_json(x) for x in run["inputs"]],
                 [(_from_json(x), np.array(x["known"], bool).reshape(x["shape"]))
                  for x in run["outputs"]], run["scale"]) for run in known["runs"]]
        for is_random in (False, True):
            cases.append(Case(f"{path}:{n}", known["op"], base64.b64decode(known["model"]), runs,
                              known["how"], is_random, known["seed"]))
    return cases


def drawn(seed, number):
    """The case with this number. None if no reference has an answer."""
    rng = np.random.default_rng([seed, number])
    names = sorted(special_nodes.DRAWERS)
    op = names[(number + seed) % len(names)]
    node = special_nodes.DRAWERS[op](rng)
    model, runs = _model(node), []
    sets = [node.inputs] + ([node.refill()] if node.refill else [])
    for arrays in sets:
        feeds = _feeds(node, arrays)
        one, two = _references(model, feeds)
        if op == "Scatter":  # the reference evaluator does not have it
            one = two
        if one is None or two is None:
            return Case(str(number), op, b"", [], node.how, False, 0)
        scale = _scale(arrays)
        outputs = []
        for a, b in zip(one, two):
            if a.shape != b.shape or a.dtype != b.dtype or b.dtype not in _NAMES:
                return Case(str(number), op, b"", [], node.how, False, 0)
            outputs.append((b, _same(_NAMES[b.dtype], node.how, a, b, scale)))
        runs.append((list(feeds.values()), outputs, scale))
    # ValueInfo without a type is legal for the references; Hone infers types itself.
    return Case(str(number), op, model.SerializeToString(), runs, node.how,
                bool(rng.integers(0, 2)), int(rng.integers(0, 2**31)))


def check(case, builder):
    """Returns a message; "" if the outputs are right."""
    try:
        answer = builder.ask(case.request())
    except Died as death:
        return str(death)
    if not answer[-1]["ok"]:
        return answer[-1]["detail"]
    types, runs = answer[0]["types"], answer[0]["runs"]
    for (inputs, outputs, scale), given in zip(case.runs, runs):
        for o, ((expected, known), kind, text) in enumerate(zip(outputs, types, given)):
            dtype = kind["dtype"]
            if dtype != _NAMES[expected.dtype] or kind["shape"] != list(expected.shape):
                return (f"output {o} is {dtype}{kind['shape']} instead of "
                        f"{_NAMES[expected.dtype]}{list(expected.shape)}")
            got = np.frombuffer(base64.b64decode(text), expected.dtype).reshape(expected.shape)
            wrong = known & ~_same(dtype, case.how, got, expected, scale)
            if wrong.any():
                place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
                return (f"output {o}{[int(i) for i in place]} is {got[place]!r} instead of "
                        f"{expected[place]!r}; {int(wrong.sum())} of {wrong.size} elements are "
                        f"wrong; inputs {[array.tolist() for array in inputs]}"[:1500])
    return ""


class Report:
    def __init__(self, options):
        self._options, self._lock = options, threading.Lock()
        self._counts, self._known = collections.Counter(), collections.Counter()
        self._refused, self._failed = collections.Counter(), []
        self._begin = time.monotonic()

    def add(self, case, message):
        with self._lock:
            self._counts["cases"] += 1
            self._known[case.op] += sum(int(known.sum()) for _, outputs, _ in case.runs
                                        for _, known in outputs)
            if not case.runs:
                self._counts["undecided"] += 1
            elif "UNIMPLEMENTED" in message.split(":")[0]:
                self._refused[f"{case.op}: {message[:160]}"] += 1
            elif message:
                self._fail(case, message)
            if self._counts["cases"] % 1000 == 0:
                print(f"{self._counts['cases']} cases, {len(self._failed)} failed, "
                      f"{time.monotonic() - self._begin:.0f} s", flush=True)

    def _fail(self, case, message):
        self._failed.append(case.id)
        folder = self._options.failures
        folder.mkdir(parents=True, exist_ok=True)
        name = case.id.replace("/", "_").replace(":", "_")
        path = folder / f"special{self._options.seed}-{name}.net"
        path.write_text(case.to_json() + "\n")
        print(f"\nFAILED case {case.id}: {case.op} ({'random' if case.is_random else 'default'} "
              f"schedule)\n  {message}\n  repeat: tests/oracle/run.sh --special --case {path}",
              flush=True)

    def finish(self):
        c = self._counts
        for message, count in sorted(self._refused.items()):
            print(f"refused {count} times: {message}")
        if c["cases"] > 1000:
            for op in sorted(set(special_nodes.DRAWERS) - set(+self._known)):
                print(f"never decided: {op}")
        print(f"oracle: special values, seed {self._options.seed}, {c['cases']} cases, "
              f"{c['undecided']} without two references, {sum(self._refused.values())} refused, "
              f"{sum(self._known.values())} elements on which the references agree, "
              f"{time.monotonic() - self._begin:.0f} s")
        if self._failed:
            print(f"oracle: {len(self._failed)} cases FAILED: {' '.join(self._failed)}")
        return 1 if self._failed else 0


def missing_operators(supported):
    own = {name for name in supported if "." not in name}  # without the operators of other domains
    return sorted(own - set(special_nodes.DRAWERS) - special_nodes.WITHOUT_CASES)


def run(options, files, numbers):
    """`files`: paths of case files. `numbers`: of drawn cases."""
    report = Report(options)
    queue = collections.deque([*(case for path in files for case in from_file(path)), *numbers])

    def work():
        builder = Builder(options.program)
        try:
            while True:
                case = queue.popleft()
                if isinstance(case, int):
                    case = drawn(options.seed, case)
                report.add(case, check(case, builder) if case.runs else "")
        except IndexError:
            builder.close()

    threads = [threading.Thread(target=work) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report.finish()
