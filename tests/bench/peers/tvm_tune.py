#!/usr/bin/env python3
"""Tunes operators with Apache TVM's MetaSchedule and saves the kernels for duel.py.

  TVM_NUM_THREADS=2 python tvm_tune.py --trials 128 --out FOLDER --mcpu cascadelake GMM:2 C2D:1 …

README.md lists the required packages. Each name is a workload of TVM's own list. Writes FOLDER/NAME_INDEX.so for each name, and a line
of tvm.jsonl with the latencies of all records in order and the wall time of the whole tuning.
"""

import argparse
import json
import logging
import os
import tempfile
import time

import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.testing.te_workload import create_te_workload


def tune(spec, options, target):
    name, index = spec.split(":")
    func = create_te_workload(name, int(index))
    begin = time.time()
    database = ms.tune_tir(
        func,
        target,
        tempfile.mkdtemp(),
        options.trials,
        num_trials_per_iter=min(64, options.trials),
        max_trials_per_task=options.trials,
        seed=options.seed,
    )
    wall = time.time() - begin
    schedule = ms.tir_integration.compile_tir(database, func, target)
    tvm.compile(schedule.mod, target).mod.export_library(f"{options.out}/{name}_{index}.so")
    latencies = [float(record.run_secs[0]) for record in database.get_all_tuning_records() if record.run_secs]
    return {
        "spec": spec,
        "trials": options.trials,
        "seed": options.seed,
        "wall_s": wall,
        "best_record_s": min(latencies),
        "shapes": [[int(extent) for extent in p.shape] for p in func.params],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    parser.add_argument("--mcpu", required=True, help="LLVM's name of this machine's CPU")
    parser.add_argument("specs", nargs="+", metavar="NAME:INDEX")
    options = parser.parse_args()
    logging.disable(logging.INFO)
    os.makedirs(options.out, exist_ok=True)
    target = tvm.target.Target(
        {"kind": "llvm", "mcpu": options.mcpu, "num-cores": int(os.environ["TVM_NUM_THREADS"])}
    )
    for spec in options.specs:
        try:
            row = tune(spec, options, target)
        except Exception as error:  # continue with the other operators
            row = {"spec": spec, "error": repr(error)[:300]}
        print(row, flush=True)
        with open(f"{options.out}/tvm.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
