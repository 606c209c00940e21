"""Proposes schedules for a search: changes decisions of the fastest schedules that the job has measured so far.

    python3 propose_tiles.py "matmul m=128 n=128 k=128" 96 [external]      external: without the search of the server
"""

import random
import re
import sys

import hone

SITE = re.compile(r"sample_(\w+)\(([^)]*)\) = \[([-\d, ]+)\]")
PROPOSER, BATCH = "propose_tiles", 8


def numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def mutate(trace: str, rng: random.Random) -> str:
    """The trace with another value at one sampling; what is not legal there, the server refuses."""
    site = rng.choice(list(SITE.finditer(trace)))
    values = numbers(site[3])
    if rows := re.search(r"candidates=\[([-\d, ]+)\]", site[2]):  # take another row of the candidates
        all_rows, width = numbers(rows[1]), len(values)
        begin = width * rng.randrange(len(all_rows) // width)
        values = all_rows[begin:begin + width]
    elif len(values) > 1:  # move a factor of a tile to another level
        source, goal = rng.sample(range(len(values)), 2)
        factor = next((f for f in (2, 3, 5, 7) if values[source] % f == 0), 1)
        values[source] //= factor
        values[goal] *= factor
    return trace[:site.start(3)] + ", ".join(map(str, values)) + trace[site.end(3):]


def search(job: hone.Job, rng: random.Random) -> None:
    """Proposes until the job no longer takes proposals."""
    changes = 1  # of a trace; more while everything near the fastest schedules is known
    while not job.refresh().has_ended:
        fastest = sorted((one for one in job.measured() if one.ok and SITE.search(one.trace)), key=lambda one: one.latency_ns)
        traces = [one.trace for one in fastest[:8]] or [job.draft()]  # nothing is measured yet: the estimate's choice
        for _ in range(changes):
            traces = [mutate(trace, rng) for trace in rng.choices(traces, k=BATCH)]
        verdicts = job.propose(traces, PROPOSER)
        accepted = {one.trial for one in verdicts if one.accepted}
        if not accepted and any(one.refusal == "full" for one in verdicts):
            return
        changes = 1 if accepted else changes % 16 + 1
        for trial in job.outcomes(accepted):
            print(f"{trial.trial}: {f'{trial.latency_ns / 1e3:.1f} us' if trial.ok else trial.detail}")


if __name__ == "__main__":
    tuned = hone.tune(sys.argv[1], trials=int(sys.argv[2]), time="600s", strategy=(sys.argv[3:] or ["portfolio"])[0], wait=False)
    try:
        search(tuned, random.Random(1))
    except hone.Failed as over:  # the job no longer searches
        print(over)
    tuned.wait()
    print(tuned, f"proposed by {PROPOSER}: {len(list(tuned.outcomes(proposer=PROPOSER)))} measurements", sep="\n")
