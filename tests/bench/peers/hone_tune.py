#!/usr/bin/env python3
"""Tunes the same operators with Hone, each with a new store, and exports the kernels for duel.py.

  python hone_tune.py --trials 16 128 --out FOLDER [NAME:INDEX …]

Writes FOLDER/hone_TRIALS/NAME_INDEX/ with the output of `hone export`, and FOLDER/hone.jsonl with the wall time of the whole
command, including the start of a server and a worker.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

from operators import OPERATORS, operator_of


def tune(hone, spec, trials, options):
    words = operator_of(spec).split()
    kernel = f"{options.out}/hone_{trials}/{spec.replace(':', '_')}"
    shutil.rmtree(kernel, ignore_errors=True)
    os.makedirs(os.path.dirname(kernel), exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        places = ("XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME")
        environment = dict(os.environ, HOME=home, **{name: home for name in places})
        begin = time.time()
        command = [hone, "tune", *words, "--trials", str(trials), "--seed", str(options.seed), "--json"]
        command += options.flags.split()
        job = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        wall = time.time() - begin
        if job.returncode != 0:
            return {"spec": spec, "trials": trials, "error": job.stderr[-300:]}
        export = [hone, "export", *words, "-o", kernel]
        subprocess.run(export, env=environment, capture_output=True, text=True, check=True)
    result = json.loads(job.stdout.splitlines()[-1])
    return {
        "spec": spec,
        "operator": operator_of(spec),
        "trials": trials,
        "seed": options.seed,
        "wall_s": wall,
        "result": {key: result.get(key) for key in ("trials", "outcomes", "best", "peak_gflops", "wall_ms")},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", default=[16, 128])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    parser.add_argument("--flags", default="", help="more flags of hone tune, as one word")
    parser.add_argument("specs", nargs="*", metavar="NAME:INDEX", default=[])
    options = parser.parse_args()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
    hone = os.path.join(os.environ.get("HONE_BUILD_DIR", os.path.join(root, "build/release")), "bin/hone")
    os.makedirs(options.out, exist_ok=True)
    for spec in options.specs or OPERATORS:
        for trials in options.trials:
            row = tune(hone, spec, trials, options)
            print(spec, trials, f"{row.get('wall_s', 0):.1f} s", row.get("error", ""), flush=True)
            with open(f"{options.out}/hone.jsonl", "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
