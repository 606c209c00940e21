#!/usr/bin/env python3
"""Static throughput of inner loops for ARM: the assembly of hone-builder, costed by llvm-mca. Nothing runs, and no time is measured.

  tests/bench/arm/throughput.py [--builder build/release/bin/hone-builder] [--mca llvm-mca-19] [--loop]

Prints a table of the traces of this folder and some cores: multiply-adds (instructions) per cycle, the share of what the
core's model can issue (measured on a loop of independent ones), products per cycle, loads and accesses to the stack.
--loop prints the loops."""
import argparse
import pathlib

from loops import CORES, LOAD, hottest_loop, multiply_adds, rate, run

# The instruction of a trace, its products, and the operands of the i-th independent one.
FMLA = ("fmla", 4, "v{0}.4s, v30.4s, v31.s[0]")
OF_BYTES = {"sdot": ("sdot", 16, "v{0}.4s, v30.16b, v31.16b"), "smmla": ("smmla", 32, "v{0}.4s, v30.16b, v31.16b")}
I8MM_CORES = ["neoverse-v1", "neoverse-v2"]  # run both


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builder", default="build/release/bin/hone-builder")
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    print(f"{'trace':13} {'core':12} {'MLA/cycle':>10} {'of bound':>9} {'products/cycle':>14} {'loads/MLA':>10} {'stack':>5}")
    for trace in sorted(pathlib.Path(__file__).parent.glob("*.trace")):
        name, products, operands = OF_BYTES.get(trace.stem, FMLA)
        independent = [f"\t{name}\t{operands.format(i)}" for i in range(24)]
        for core in I8MM_CORES if trace.stem in OF_BYTES else CORES:
            loop = hottest_loop(run([options.builder, "code", "--target", f"arm/{core}", str(trace)]))
            done = rate(options.mca, core, loop)
            bound = rate(options.mca, core, independent)
            loads = sum(1 for line in loop if LOAD.match(line)) / multiply_adds(loop)
            stack = sum(1 for line in loop if "[sp" in line)
            print(f"{trace.stem:13} {core:12} {done:10.2f} {100 * done / bound:8.1f}% {done * products:14.1f} {loads:10.2f} {stack:5}")
            if options.loop:
                print("\n".join(loop))


main()
