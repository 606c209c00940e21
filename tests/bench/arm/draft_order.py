#!/usr/bin/env python3
"""How well the draft orders candidates for ARM, compared with a static cost of their code. No time is measured.

  tests/bench/arm/draft_order.py [--candidates 60] [--program build/release/bench/arm_candidates] [--list FILE]

The cost of a candidate is the sum over the basic blocks of its kernel: how often the block runs, counted under QEMU's
emulation, times its cycles per run by LLVM's model of the core (llvm-mca) when it runs again and again. It knows no caches.
Pairs whose costs differ by less than 5 % do not count. --list writes the drafts and the costs."""
import argparse
import collections
import itertools
import json
import pathlib
import re
import tempfile

from loops import cycles, run

HERE = pathlib.Path(__file__).resolve().parent
EMULATED = {"neoverse-v1": "max,sve-max-vq=2"}
CORES = ["cortex-a72", "cortex-a76", "neoverse-n1", "neoverse-v1"]
# The data fits into the L2 caches of these cores.
OPERATORS = ["matmul m=128 n=128 k=128", "conv2d n=1 h=14 w=14 ci=32 co=32 k=3 s=1 p=1"]
LEAST_DIFFERENCE = 0.05
# Of QEMU's translated blocks.
MOST_INSTRUCTIONS, PAGE_BYTES = 512, 4096


def kernel_functions(objdump, path):
    """The instructions of the kernel: lists of (address, text)."""
    functions = []
    for line in run([objdump, "-d", "--no-show-raw-insn", path]).splitlines():
        if header := re.match(r"[0-9a-f]+ <(\w+)>:", line):
            if is_kernel := re.match(r"hone_(main|parallel)", header[1]):
                functions.append([])
        elif (code := re.match(r"\s*([0-9a-f]+):\s+(.*)", line)) and is_kernel:
            functions[-1].append((int(code[1], 16), code[2].split("//")[0].strip()))
    return functions


def is_branch(text):
    return re.match(r"(b|bl|br|blr|ret|b\.\w+|cbn?z|tbn?z)(\s|$)", text)


def basic_blocks(functions):
    """The first address of each block, with its instructions except the branch."""
    targets = {int(target, 16) for function in functions for _, text in function if is_branch(text)
               for target in re.findall(r"0x([0-9a-f]+)", text)}
    blocks = {}
    for function in functions:
        start = None
        for address, text in function:
            if start is None or address in targets:
                start = address
                blocks[start] = []
            if is_branch(text):
                start = None
            else:
                blocks[start].append("\t" + text)
    return blocks


def executions(functions, starts, log):
    """How often each block ran, from QEMU's log of translated blocks. One of these may cover several basic blocks."""
    translated = collections.Counter(int(address, 16) for address in re.findall(r"\[\w+/(\w+)/", log))
    counts = collections.Counter()
    for function in functions:
        for at, (begin, _) in enumerate(function):
            if begin not in translated:
                continue
            for address, text in function[at:at + MOST_INSTRUCTIONS]:
                if address // PAGE_BYTES != begin // PAGE_BYTES:
                    break
                if address in starts:
                    counts[address] += translated[begin]
                if is_branch(text):
                    break
    return counts


def cost(options, harness, core, assembly):
    """Cycles of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        code, program, log = (pathlib.Path(folder) / name for name in ("kernel.s", "kernel", "log"))
        code.write_text(assembly)
        run([options.compiler, "-static", "-Wa,-march=armv8.6-a+sve2", "-o", str(program), harness, str(code)])
        functions = kernel_functions(options.objdump, str(program))
        first, last = (pick(address for function in functions for address, _ in function) for pick in (min, max))
        run([options.emulator, "-cpu", EMULATED.get(core, "max,sve=off"), "-d", "exec,nochain", "-D", str(log),
             "-dfilter", f"{first:#x}..{last:#x}", str(program)])
        blocks = basic_blocks(functions)
        counts = executions(functions, blocks, log.read_text())
    run_blocks = [start for start in blocks if counts[start] and blocks[start]]
    costs = cycles(options.mca, core, [blocks[start] for start in run_blocks])
    return sum(counts[start] * each for start, each in zip(run_blocks, costs))


def agreement(candidates):
    """The share of pairs that the draft orders as the costs do, and the number of pairs."""
    right = pairs = 0
    for one, other in itertools.combinations(candidates, 2):
        if max(one["cost"], other["cost"]) < (1 + LEAST_DIFFERENCE) * min(one["cost"], other["cost"]):
            continue
        pairs += 1
        right += (one["draft_cycles"] < other["draft_cycles"]) == (one["cost"] < other["cost"])
    return right / pairs if pairs else float("nan"), pairs


def compare(options, harness):
    print(f"{'operator':46} {'core':12} {'pairs':>6} {'agree':>6}")
    for operator, core in itertools.product(OPERATORS, CORES):
        lines = run([options.program, "--core", f"arm/{core}", "--operator", operator,
                     "--candidates", str(options.candidates)]).splitlines()
        drawn = [json.loads(line) for line in lines]
        for candidate in drawn:
            candidate["cost"] = cost(options, harness, core, candidate.pop("assembly"))
            if options.list:
                print(json.dumps({"operator": operator, "core": core, **candidate}), file=options.list, flush=True)
        share, pairs = agreement(drawn)
        print(f"{operator:46} {core:12} {pairs:6} {100 * share:5.1f}%", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--program", default="build/release/bench/arm_candidates")
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--objdump", default="llvm-objdump-19")
    parser.add_argument("--compiler", default="aarch64-linux-gnu-gcc")
    parser.add_argument("--emulator", default="qemu-aarch64")
    parser.add_argument("--list", type=argparse.FileType("w"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        harness = f"{folder}/run_kernel.o"
        run([options.compiler, "-O1", f"-I{HERE.parents[2]}", "-c", "-o", harness, str(HERE / "run_kernel.c")])
        compare(options, harness)


if __name__ == "__main__":
    main()
