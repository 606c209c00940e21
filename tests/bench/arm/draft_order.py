#!/usr/bin/env python3
"""How well the draft orders candidates for ARM, compared with a static cost of their code. No time is measured.

  tests/bench/arm/draft_order.py [--candidates 60] [--program build/release/bench/arm_candidates] [--list FILE]

The cost of a candidate is that of worker/compile/llvm/modelled_cost.h, on one core: the sum over the basic blocks of its
kernel of how often the block runs, times its cycles per run by LLVM's model of the core when it runs again and again. It
knows no caches. Pairs whose costs differ by less than 5 % do not count. --list writes the drafts and the costs."""
import argparse
import itertools
import json

from loops import run

CORES = ["cortex-a72", "cortex-a76", "neoverse-n1", "neoverse-v1"]
# The data fits into the L2 caches of these cores.
OPERATORS = ["matmul m=128 n=128 k=128", "conv2d n=1 h=14 w=14 ci=32 co=32 k=3 s=1 p=1"]
LEAST_DIFFERENCE = 0.05


def agreement(candidates):
    """The share of pairs that the draft orders as the costs do, and the number of pairs."""
    right = pairs = 0
    for one, other in itertools.combinations(candidates, 2):
        if max(one["cost"], other["cost"]) < (1 + LEAST_DIFFERENCE) * min(one["cost"], other["cost"]):
            continue
        pairs += 1
        right += (one["draft_cycles"] < other["draft_cycles"]) == (one["cost"] < other["cost"])
    return right / pairs if pairs else float("nan"), pairs


def compare(options):
    print(f"{'operator':46} {'core':12} {'pairs':>6} {'agree':>6}")
    for operator, core in itertools.product(OPERATORS, CORES):
        lines = run([options.program, "--core", f"arm/{core}", "--operator", operator,
                     "--candidates", str(options.candidates)]).splitlines()
        drawn = [json.loads(line) for line in lines]
        for candidate in drawn:
            if options.list:
                print(json.dumps({"operator": operator, "core": core, **candidate}), file=options.list, flush=True)
        share, pairs = agreement(drawn)
        print(f"{operator:46} {core:12} {pairs:6} {100 * share:5.1f}%", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--program", default="build/release/bench/arm_candidates")
    parser.add_argument("--list", type=argparse.FileType("w"))
    options = parser.parse_args()
    compare(options)


if __name__ == "__main__":
    main()
