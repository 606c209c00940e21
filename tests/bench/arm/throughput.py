#!/usr/bin/env python3
"""Static throughput of inner loops for ARM: the assembly of hone-builder, costed by llvm-mca. Nothing runs, and no time is measured.

  tests/bench/arm/throughput.py [--builder build/release/bin/hone-builder] [--mca llvm-mca-19] [--loop]

Prints a table of the traces of this folder and some cores: multiply-adds (instructions) per cycle, the share of what the
core's model can issue (measured on a loop of independent ones), products per cycle, loads and accesses to the stack.
--loop prints the loops."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

CORES = ["cortex-a53", "cortex-a55", "cortex-a72", "cortex-a76", "cortex-x1", "neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1"]
NEED_I8MM = ["sdot", "smmla"]  # traces to compare, on the cores that run both
I8MM_CORES = ["neoverse-v1", "neoverse-v2"]
# Products of one instruction, and the operands of the i-th independent one.
MULTIPLY_ADDS = {"fmla": (4, "v{0}.4s, v30.4s, v31.s[0]"), "sdot": (16, "v{0}.4s, v30.16b, v31.16b"), "smmla": (32, "v{0}.4s, v30.16b, v31.16b")}
MULTIPLY_ADD = re.compile(rf"^\s+({'|'.join(MULTIPLY_ADDS)})\s")
BRANCH = re.compile(r"^\s+(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s.*,|b)\s+(\.LBB\w+)")
LABEL = re.compile(r"^(\.LBB\w+):")


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"throughput.py: {' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def hottest_loop(assembly):
    """The lines of the innermost loop with the most multiply-adds."""
    labels, best = {}, []
    lines = [line for line in assembly.splitlines() if not line.strip().startswith("//")]
    for at, line in enumerate(lines):
        if label := LABEL.match(line):
            labels[label[1]] = at
        branch = BRANCH.match(line)
        if not branch or branch[1] not in labels:
            continue
        body = lines[labels[branch[1]] + 1:at + 1]
        if not any(map(LABEL.match, body)) and count(body) > count(best):
            best = body
    return best


def count(lines):
    return sum(1 for line in lines if MULTIPLY_ADD.match(line))


def cycles(mca, core, lines):
    """Cycles per iteration by LLVM's model of the core."""
    body = [line for line in lines if not BRANCH.match(line)]
    iterations = 200
    with tempfile.NamedTemporaryFile("w", suffix=".s") as file:
        file.write("\n".join(body) + "\n")
        file.flush()
        text = run([mca, "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={iterations}", file.name])
    return int(re.search(r"Total Cycles:\s+(\d+)", text)[1]) / iterations


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builder", default="build/release/bin/hone-builder")
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    print(f"{'trace':8} {'core':12} {'MLA/cycle':>10} {'of bound':>9} {'products/cycle':>14} {'loads/MLA':>10} {'stack':>5}")
    for trace in sorted(pathlib.Path(__file__).parent.glob("*.trace")):
        for core in I8MM_CORES if trace.stem in NEED_I8MM else CORES:
            loop = hottest_loop(run([options.builder, "code", "--target", f"arm/{core}", str(trace)]))
            rate = count(loop) / cycles(options.mca, core, loop)
            name = next(filter(None, map(MULTIPLY_ADD.match, loop)))[1]
            products, operands = MULTIPLY_ADDS[name]
            independent = [f"\t{name}\t{operands.format(i)}" for i in range(24)]
            bound = len(independent) / cycles(options.mca, core, independent)
            loads = sum(1 for line in loop if re.match(r"^\s+ld", line))
            stack = sum(1 for line in loop if "[sp" in line)
            print(f"{trace.stem:8} {core:12} {rate:10.2f} {100 * rate / bound:8.1f}% {rate * products:14.1f} {loads / count(loop):10.2f} {stack:5}")
            if options.loop:
                print("\n".join(loop))


main()
