"""Times an exported network, ONNX Runtime and OpenVINO in one process, in alternating rounds with equal threads.

  compare.py MODEL.onnx FOLDER [--rounds N] [--threads N] [--processor-time] [--profile] [--bf16] [--tolerance E]

FOLDER is that of `hone export MODEL.onnx -o FOLDER`. Without openvino, only ONNX Runtime is compared. Prints one row of a Markdown table
(--header prints the head), and fails if the outputs differ from ONNX Runtime's by more than the tolerance. Quantized networks, where a
near tie may be rounded differently, need a larger one. turns.py describes a turn. A ratio is that of two turns of one round.
"""
import argparse
import functools
import pathlib
import sys
import time

import onnxruntime

try:
    import openvino
except ImportError:
    openvino = None

from turns import alternate, at, error_of, hone_network, ratio_text, some_inputs, turn

HEADER = ("| network | Hone ms | ONNX Runtime ms | OpenVINO ms | over ONNX Runtime | over OpenVINO | over the better | error |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|")
PROFILES = 25


def inputs_of(session):
    return some_inputs([(tensor.name, [extent if isinstance(extent, int) else 1 for extent in tensor.shape],
                         tensor.type.removeprefix("tensor(").removesuffix(")")) for tensor in session.get_inputs()])


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
    feed = inputs_of(session)
    expected = session.run(None, feed)
    network = hone_network(options.folder, options.threads)
    inputs = [feed[tensor.name] for tensor in network.inputs]
    runs = {"hone": lambda: network(*inputs), "onnxruntime": lambda: session.run(None, feed)}
    if openvino is not None:
        runs["openvino"] = openvino_runner(options.model, options.threads, "bf16" if options.bf16 else "f32", feed)
    error = error_of(network(*inputs), expected)
    if options.profile:
        profiles = [network.profile(*inputs) for _ in range(PROFILES)]
        least = [min(ns for _, _, ns in step) for step in zip(*profiles)]
        for (name, kernel), ns in zip(network.steps, least):
            print(f"{ns / 1e3:10.1f} us  {100 * ns / sum(least):5.1f} %  {kernel}  {name}")
        print(f"{sum(least) / 1e3:10.1f} us  in {len(least)} steps")
    clock = time.process_time if options.processor_time else time.perf_counter
    turns = alternate({name: functools.partial(turn, run, clock) for name, run in runs.items()}, options.rounds)
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
