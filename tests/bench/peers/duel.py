#!/usr/bin/env python3
"""Times kernels of tvm_tune.py and hone_tune.py against each other, interleaved in one process.

  TVM_NUM_THREADS=2 OMP_NUM_THREADS=2 python duel.py [--trials 16 128] --out FOLDER [--rounds 40] [NAME:INDEX …]

Each operator runs in a separate process, so that remaining threads of one row cannot disturb another. In each round, every kernel
runs once to wake its threads and then for at least 20 ms, in an order that changes. After each kernel, both runtimes get time to put
their spinning threads to sleep. TVM binds the calling thread to a core; this binding is removed while Hone's kernels run. A ratio is
the median over the rounds of TVM's time divided by Hone's time in the same round; above 1, Hone is faster. Prints a Markdown table and
writes FOLDER/duel.jsonl.
"""

import argparse
import ctypes
import glob
import json
import math
import multiprocessing
import os
import random
import subprocess
import tempfile
import time

import numpy as np
import tvm
from operators import OPERATORS, is_memory_bound, operator_of

# Calls a kernel of Hone repeatedly without the interpreter between calls.
REPEAT = r"""
#include <stdint.h>
#include <time.h>
#include "common/target/kernel_abi.h"
#include "common/target/thread_pool.h"
extern "C" double repeat(hone::target::RunFunction run, void* const* buffers, const void* packed, void* space, int n) {
  struct timespec a, b;
  const HoneRuntime runtime = hone_threads(0);
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < n; ++i) if (run(buffers, packed, space, &runtime)) return -1;
  clock_gettime(CLOCK_MONOTONIC, &b);
  return ((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) * 1e-9) / n;
}
"""
CORES = os.sched_getaffinity(0)
BLOCK_S = 0.02
REST_S = 0.03


def aligned(size):
    raw = np.zeros(size + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + size]


class HoneKernel:
    def __init__(self, folder, shapes, repeat):
        self.library = ctypes.CDLL(glob.glob(folder + "/lookup/*.so")[0])
        for name in ("hone_kernel_workspace_bytes", "hone_kernel_packed_bytes"):
            getattr(self.library, name).restype = ctypes.c_int64
        self.buffers = [aligned(4 * math.prod(shape)) for shape in shapes]
        for buffer in self.buffers:
            buffer.view(np.float32)[:] = np.random.uniform(-1, 1, buffer.size // 4)
        self.pointers = (ctypes.c_void_p * len(shapes))(*[b.ctypes.data for b in self.buffers])
        self.packed = aligned(max(64, self.library.hone_kernel_packed_bytes()))
        self.space = aligned(max(64, self.library.hone_kernel_workspace_bytes(len(CORES))))
        if self.library.hone_kernel_packed_bytes():
            status = self.library.hone_kernel_prepack(self.pointers, ctypes.c_void_p(self.packed.ctypes.data))
            assert status == 0, status
        self.repeat = repeat

    def time(self, calls):
        bound = os.sched_getaffinity(0)
        os.sched_setaffinity(0, CORES)
        try:
            return self.run(calls)
        finally:
            os.sched_setaffinity(0, bound)

    def run(self, calls):
        seconds = self.repeat(
            self.library.hone_kernel_run,
            self.pointers,
            ctypes.c_void_p(self.packed.ctypes.data),
            ctypes.c_void_p(self.space.ctypes.data),
            calls,
        )
        assert seconds >= 0
        return seconds


class TvmKernel:
    def __init__(self, path, shapes):
        module = tvm.runtime.load_module(path)
        self.arguments = [
            tvm.runtime.tensor(np.random.uniform(-1, 1, shape).astype("float32")) for shape in shapes
        ]
        self.module = module
        self.evaluators = {}

    def time(self, calls):
        if calls not in self.evaluators:
            self.evaluators[calls] = self.module.time_evaluator("main", tvm.cpu(), number=calls, repeat=1)
        return float(self.evaluators[calls](*self.arguments).results[0])


def duel(kernels, rounds):
    calls = {}
    for name, kernel in kernels.items():
        kernel.time(1)
        calls[name] = max(1, math.ceil(BLOCK_S / kernel.time(3)))
    times = {name: [] for name in kernels}
    for _ in range(rounds):
        order = list(kernels)
        random.shuffle(order)
        for name in order:
            time.sleep(REST_S)
            kernels[name].time(1)
            times[name].append(kernels[name].time(calls[name]))
    return times


def duel_of(tvm_path, hone_paths, shapes, repeat_path, rounds):
    random.seed(0)
    repeat = ctypes.CDLL(repeat_path).repeat
    repeat.restype = ctypes.c_double
    kernels = {trials: HoneKernel(path, shapes, repeat) for trials, path in hone_paths.items() if os.path.isdir(path)}
    kernels["tvm"] = TvmKernel(tvm_path, shapes)
    return duel(kernels, rounds)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--trials", type=int, nargs="+", default=[16, 128], help="as for hone_tune.py")
    parser.add_argument("specs", nargs="*", metavar="NAME:INDEX", default=[])
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    with open(folder + "/repeat.cc", "w", encoding="utf-8") as source:
        source.write(REPEAT)
    root = os.path.dirname(os.path.abspath(__file__)) + "/../../.."
    subprocess.run(["c++", "-std=c++20", "-O2", "-shared", "-fPIC", "-I", root, "-o", folder + "/repeat.so", folder + "/repeat.cc",
                    "-x", "c", root + "/common/target/thread_pool.c"], check=True)
    rows = {}
    for line in open(options.out + "/tvm.jsonl", encoding="utf-8"):
        row = json.loads(line)
        if "error" not in row:
            rows[row["spec"]] = row
    walls = {}
    for line in open(options.out + "/hone.jsonl", encoding="utf-8"):
        row = json.loads(line)
        if "error" not in row:
            walls[row["spec"], row["trials"]] = row["wall_s"]
    columns = ["operator", "TVM µs", *(f"Hone {trials}" for trials in options.trials), "wall TVM s",
               *(f"wall Hone {trials} s" for trials in options.trials)]
    print(f"| | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    ratios = {trials: {} for trials in options.trials}
    for spec in options.specs or OPERATORS:
        if spec not in rows:
            continue
        name = spec.replace(":", "_")
        shapes = rows[spec]["shapes"]
        paths = {trials: f"{options.out}/hone_{trials}/{name}" for trials in ratios}
        with multiprocessing.get_context("fork").Pool(1) as process:
            times = process.apply(
                duel_of, (f"{options.out}/{name}.so", paths, shapes, folder + "/repeat.so", options.rounds)
            )
        cells = []
        for trials in ratios:
            if trials in times:
                ratios[trials][spec] = float(np.median(np.array(times["tvm"]) / np.array(times[trials])))
            cells.append(f"{ratios[trials].get(spec, float('nan')):.2f}")
        wall = [walls.get((spec, trials), float("nan")) for trials in ratios]
        print(
            f"| {spec} | {operator_of(spec)} | {np.median(times['tvm']) * 1e6:.1f} | {' | '.join(cells)} |"
            f" {rows[spec]['wall_s']:.0f} | {' | '.join(f'{seconds:.1f}' for seconds in wall)} |",
            flush=True,
        )
        with open(options.out + "/duel.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps({"spec": spec, "times_s": {str(k): v for k, v in times.items()}}) + "\n")
    for trials, found in ratios.items():
        memory = [ratio for spec, ratio in found.items() if is_memory_bound(spec)]
        rest = [ratio for spec, ratio in found.items() if not is_memory_bound(spec)]
        wall = [rows[spec]["wall_s"] / walls[spec, trials] for spec in found]
        print(
            f"Hone at {trials} trials over TVM: all {mean(list(found.values())):.2f}, bound by memory {mean(memory):.2f},"
            f" by arithmetic {mean(rest):.2f} (least {min(rest, default=float('nan')):.2f}); wall time {mean(wall):.1f}× less"
        )


if __name__ == "__main__":
    main()
