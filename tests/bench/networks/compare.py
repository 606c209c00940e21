"""Times an exported network, ONNX Runtime and OpenVINO in one process, in alternating rounds with equal threads.

  compare.py MODEL.onnx FOLDER [--rounds N] [--threads N] [--processor-time] [--profile] [--bf16] [--tolerance E]

FOLDER is that of `hone export MODEL.onnx -o FOLDER`. Without openvino, only ONNX Runtime is compared. Prints one row of a Markdown table
(--header prints the head), and fails if the outputs differ from ONNX Runtime's by more than the tolerance. Quantized networks, where a
near tie may be rounded differently, need a larger one. Each turn is a pause, in which the threads of the others fall asleep, one run that
is not timed, and then timed runs, of which the median counts. A ratio is that of two turns of one round.
"""
import argparse
import importlib
import pathlib
import statistics
import sys
import time

import numpy as np
import onnxruntime

try:
    import openvino
except ImportError:
    openvino = None

HEADER = ("| network | Hone ms | ONNX Runtime ms | OpenVINO ms | over ONNX Runtime | over OpenVINO | over the better | error |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|")
PAUSE_S = 0.02
TURN_S = 0.06  # of timed runs in a turn, at least
PROFILES = 25


def some_inputs(session):
    """Seeded numbers; integers are small, because they are indices of words."""
    rng = np.random.default_rng(0)
    feed = {}
    for tensor in session.get_inputs():
        shape = [extent if isinstance(extent, int) else 1 for extent in tensor.shape]
        if "int" in tensor.type:
            feed[tensor.name] = rng.integers(0, 1000, shape, dtype=np.int64)
        else:
            feed[tensor.name] = rng.standard_normal(shape).astype(np.float32)
    return feed


def hone_runner(folder, threads, feed):
    sys.path.insert(0, str(folder))
    module, = (path.stem for path in folder.glob("*.py"))
    network = importlib.import_module(module).Network(threads=threads)
    inputs = [feed[tensor.name] for tensor in network.inputs]
    return network, lambda: network(*inputs)


def onnxruntime_session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def openvino_runner(model, threads, precision, feed):
    core = openvino.Core()
    read = core.read_model(model)
    read.reshape({name: array.shape for name, array in feed.items()})
    compiled = core.compile_model(read, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision})
    request = compiled.create_infer_request()

    def run():
        results = request.infer(feed, share_inputs=True, share_outputs=True)
        return [results[port] for port in compiled.outputs]
    return run


def turn(run, clock):
    time.sleep(PAUSE_S)
    run()
    times, end = [], time.perf_counter() + TURN_S
    while len(times) < 3 or time.perf_counter() < end:
        begin = clock()
        run()
        times.append(clock() - begin)
    return statistics.median(times)


def error_of(actual, expected):
    """The largest difference, relative to the largest magnitude of its tensor."""
    return max(float(np.max(np.abs(a.reshape(e.shape) - e))) / max(float(np.max(np.abs(e))), 1e-30)
               for a, e in zip(actual, expected))


def at(values, share):
    values = sorted(values)
    return values[round(share * (len(values) - 1))]


def ratio_text(ratios):
    return f"{at(ratios, 0.5):.2f} [{at(ratios, 0.1):.2f}, {at(ratios, 0.9):.2f}]"


def main():
    parser = argparse.ArgumentParser(description="Times an exported network, ONNX Runtime and OpenVINO.")
    parser.add_argument("model", nargs="?")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor-time", action="store_true",
                        help="time of the processor instead of the clock; for one thread on a machine that is shared")
    parser.add_argument("--profile", action="store_true", help="print the least time of each step of Hone's network")
    parser.add_argument("--bf16", action="store_true", help="OpenVINO may compute in bf16; ONNX Runtime computes in f32")
    parser.add_argument("--tolerance", type=float, default=1e-4,
                        help="allowed difference to ONNX Runtime's outputs, relative to the largest magnitude")
    parser.add_argument("--header", action="store_true")
    options = parser.parse_args()
    if options.header:
        print(HEADER)
        return 0
    session = onnxruntime_session(options.model, options.threads)
    feed = some_inputs(session)
    expected = session.run(None, feed)
    network, hone = hone_runner(options.folder, options.threads, feed)
    runs = {"hone": hone, "onnxruntime": lambda: session.run(None, feed)}
    if openvino is not None:
        runs["openvino"] = openvino_runner(options.model, options.threads, "bf16" if options.bf16 else "f32", feed)
    error = error_of(hone(), expected)
    if options.profile:
        profiles = [network.profile(*(feed[tensor.name] for tensor in network.inputs)) for _ in range(PROFILES)]
        least = [min(ns for _, _, ns in step) for step in zip(*profiles)]
        for (name, kernel), ns in zip(network.steps, least):
            print(f"{ns / 1e3:10.1f} us  {100 * ns / sum(least):5.1f} %  {kernel}  {name}")
        print(f"{sum(least) / 1e3:10.1f} us  in {len(least)} steps")
    clock = time.process_time if options.processor_time else time.perf_counter
    turns = {name: [] for name in runs}
    for number in range(options.rounds):
        names = list(runs) if number % 2 == 0 else list(reversed(runs))
        for name in names:
            turns[name].append(turn(runs[name], clock))
    over = {name: [rival / own for rival, own in zip(turns[name], turns["hone"])] for name in runs if name != "hone"}
    better = min(over, key=lambda name: at(turns[name], 0.5))
    row = [pathlib.Path(options.model).stem]
    row += [f"{1e3 * at(turns[name], 0.5):.2f}" if name in turns else "" for name in ("hone", "onnxruntime", "openvino")]
    row += [ratio_text(over[name]) if name in over else "" for name in ("onnxruntime", "openvino")]
    row += [f"{at(over[better], 0.5):.2f}", f"{error:.1e}"]
    print("| %s |" % " | ".join(row), flush=True)
    if error > options.tolerance:
        print(f"{options.model}: the outputs differ by {error:.2e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
