#!/usr/bin/env python3
"""Times a network that Hone has exported against the same network of tvm_tune_network.py, alternately in one process.

  TVM_NUM_THREADS=2 python network_duel.py HONE_FOLDER TVM_FOLDER [--rounds 25] [--processor-time]

HONE_FOLDER is that of `hone export MODEL.onnx -o HONE_FOLDER`. Both get the same inputs and TVM_NUM_THREADS threads. TVM binds the
calling thread to a core; this binding is removed while Hone's network runs. Prints the medians of the turns (see networks/turns.py) and
the ratio of two turns of one round; above 1, Hone is faster. Fails if the outputs differ by more than the tolerance.
"""

import argparse
import os
import pathlib
import sys
import time

import tvm
from tvm import relax

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../networks"))
from turns import alternate, at, error_of, hone_network, ratio_text, some_inputs, turn

CORES = os.sched_getaffinity(0)


class TvmNetwork:
    def __init__(self, folder, inputs):
        self.machine = relax.VirtualMachine(tvm.runtime.load_module(f"{folder}/network.so"), tvm.cpu())
        weights = tvm.runtime.load_param_dict_from_file(f"{folder}/weights.bin")
        self.arguments = [tvm.runtime.tensor(array) for array in inputs]
        self.arguments += [weights[name] for name in sorted(weights)]
        self.main = self.machine["main"]
        self.main(*self.arguments)  # binds this thread
        self.bound = os.sched_getaffinity(0)

    def __call__(self):
        return self.main(*self.arguments)

    def outputs(self):
        result = self()
        return [tensor.numpy() for tensor in ([result] if isinstance(result, tvm.runtime.Tensor) else result)]


def turn_on(cores, run, clock):
    os.sched_setaffinity(0, cores)
    return turn(run, clock)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hone", type=pathlib.Path, metavar="HONE_FOLDER")
    parser.add_argument("tvm", type=pathlib.Path, metavar="TVM_FOLDER")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--processor-time", action="store_true", help="time of the processor instead of the clock; for one thread")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args()
    hone = hone_network(options.hone, int(os.environ["TVM_NUM_THREADS"]))
    inputs = list(some_inputs([(t.name, t.shape, t.dtype.name) for t in hone.inputs]).values())
    expected = hone(*inputs)
    rival = TvmNetwork(options.tvm, inputs)
    error = error_of(rival.outputs(), expected)
    clock = time.process_time if options.processor_time else time.perf_counter
    turns = alternate({
        "hone": lambda: turn_on(CORES, lambda: hone(*inputs), clock),
        "tvm": lambda: turn_on(rival.bound, rival, clock),
    }, options.rounds)
    ratios = [theirs / ours for theirs, ours in zip(turns["tvm"], turns["hone"])]
    print(f"Hone {1e3 * at(turns['hone'], 0.5):.2f} ms, TVM {1e3 * at(turns['tvm'], 0.5):.2f} ms,"
          f" Hone over TVM {ratio_text(ratios)}, difference {error:.1e}")
    return 0 if error <= options.tolerance else "the outputs differ"


if __name__ == "__main__":
    sys.exit(main())
