"""Alternating turns of networks in one process, for compare.py and for peers/network_duel.py."""
import importlib
import itertools
import statistics
import sys
import time

import numpy as np

PAUSE_S = 0.02
TURN_S = 0.06  # of timed runs in a turn, at least


def some_inputs(tensors):
    """Seeded numbers by name. `tensors` are (name, shape, dtype). Integers of 64 bits are small, because they are indices of words. Those of 32
    bits are 0, 1, …: the lengths of make_decoders.py are the number of earlier tokens and that of all."""
    rng = np.random.default_rng(0)
    lengths = itertools.count()

    def numbers(shape, dtype):
        if dtype == "int64":
            return rng.integers(0, 1000, shape, dtype=np.int64)
        if dtype == "int32":
            return np.full(shape, next(lengths), dtype=np.int32)
        return rng.standard_normal(shape).astype(np.float32)
    return {name: numbers(shape, dtype) for name, shape, dtype in tensors}


def hone_network(folder, threads):
    """The network that `hone export MODEL.onnx -o FOLDER` has written."""
    sys.path.insert(0, str(folder))
    module, = (path.stem for path in folder.glob("*.py"))
    return importlib.import_module(module).Network(threads=threads)


def turn(run, clock):
    """The median time of some runs, after a pause, in which the threads of others fall asleep, and a run that is not timed."""
    time.sleep(PAUSE_S)
    run()
    times, end = [], time.perf_counter() + TURN_S
    while len(times) < 3 or time.perf_counter() < end:
        begin = clock()
        run()
        times.append(clock() - begin)
    return statistics.median(times)


def alternate(turns, rounds):
    """What the named functions return, one call of each in every round, in an order that is reversed from round to round."""
    results = {name: [] for name in turns}
    for number in range(rounds):
        for name in list(turns) if number % 2 == 0 else list(reversed(turns)):
            results[name].append(turns[name]())
    return results


def error_of(actual, expected):
    """The largest difference, relative to the largest magnitude of its tensor."""
    return max(float(np.max(np.abs(a.reshape(e.shape) - e))) / max(float(np.max(np.abs(e))), 1e-30)
               for a, e in zip(actual, expected))


def at(values, share):
    values = sorted(values)
    return values[round(share * (len(values) - 1))]


def ratio_text(ratios):
    return f"{at(ratios, 0.5):.2f} [{at(ratios, 0.1):.2f}, {at(ratios, 0.9):.2f}]"
