#!/usr/bin/env python3
"""Tunes a network with Apache TVM's MetaSchedule and saves it for network_duel.py.

  TVM_NUM_THREADS=2 python tvm_tune_network.py MODEL.onnx --trials 2000 --out FOLDER --mcpu znver4

Fuses the operators, tunes the tasks with MetaSchedule and packs the weights. Writes FOLDER/network.so, FOLDER/weights.bin with the packed
weights, and TVM's records to FOLDER/records, and prints the wall time of the tuning. README.md lists the required packages.
"""

import argparse
import logging
import os
import time

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms


def tune(module, target, records, options):
    """The steps of TVM's pipeline `static_shape_tuning` with weights that are packed before the runs, as Hone's are."""
    with target:
        prepare = tvm.transform.Sequential([
            relax.transform.DecomposeOpsForInference(),
            relax.transform.CanonicalizeBindings(),
            relax.get_pipeline("zero"),
            relax.transform.AttachAttrLayoutFreeBuffers(),
        ])
        module = prepare(module)
        tasks = len(ms.relax_integration.extract_tasks(module, target))
        os.makedirs(records)
        ms.relax_integration.tune_relax(
            module,
            {},
            target,
            records,
            options.trials,
            # TVM's default is 64; with fewer trials than this for each task, some tasks would get none.
            num_trials_per_iter=max(1, min(64, options.trials // tasks)),
            seed=options.seed,
        )
        finish = tvm.transform.Sequential([
            relax.transform.MetaScheduleApplyDatabase(records),
            relax.transform.SplitLayoutRewritePreproc(),
            relax.transform.LiftTransformParams(),
            relax.transform.FoldConstant(),
        ])
        return finish(module), tasks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("--trials", type=int, required=True, help="of all tasks together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    parser.add_argument("--mcpu", required=True, help="LLVM's name of this machine's CPU")
    options = parser.parse_args()
    logging.disable(logging.INFO)
    target = tvm.target.Target(
        {"kind": "llvm", "mcpu": options.mcpu, "num-cores": int(os.environ["TVM_NUM_THREADS"])}
    )
    imported = from_onnx(onnx.load(options.model), keep_params_in_input=True)
    module, weights = relax.frontend.detach_params(imported)
    begin = time.time()
    module, tasks = tune(module, target, options.out + "/records", options)
    wall = time.time() - begin
    executable = tvm.compile(module, target)
    executable.export_library(options.out + "/network.so")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    packed = machine["main_transform_params"](weights["main"])
    tvm.runtime.save_param_dict_to_file(
        {f"{index:04}": weight for index, weight in enumerate(packed)}, options.out + "/weights.bin"
    )
    print(f"TVM: {options.trials} trials of {tasks} tasks in {wall:.0f} s")


if __name__ == "__main__":
    main()
