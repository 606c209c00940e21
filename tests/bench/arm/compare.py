#!/usr/bin/env python3
"""Inner loops of Hone beside those of published libraries with the same tile, both costed by llvm-mca. Nothing runs.

  tests/bench/arm/compare.py [--builder build/release/bin/hone-builder] [--mca llvm-mca-19] [--objdump llvm-objdump-19]

Downloads OpenBLAS and XNNPACK for arm64 from Debian's archive and extracts them into a temporary folder. Nothing is installed."""
import argparse
import os
import pathlib
import tempfile

from loops import CORES, accumulators, disassemble, hottest_loop, innermost_loops, multiply_adds, rate, run

TRACE = pathlib.Path(__file__).with_name("matmul.trace")
# OpenBLAS's kernels for the cores, and the tiles of these kernels: rows, and vectors of 4 columns.
OPENBLAS = {
    "cortex-a53": ("CORTEXA53", 8, 2),
    "cortex-a55": ("CORTEXA55", 8, 2),
    "cortex-a72": ("CORTEXA72", 4, 4),
    "neoverse-v1": ("NEOVERSEV1", 4, 4),
    "neoverse-v2": ("NEOVERSEN2", 4, 4),
}
OPENBLAS_ELSE = ("NEOVERSEN1", 4, 4)
# The tile of XNNPACK's kernels for large matrices. The library has no symbols, so its best loop with this tile counts.
XNNPACK_ROWS, XNNPACK_VECTORS = 6, 2


def fetch(package, folder):
    """Extracts a package for arm64, with lists of packages of its own."""
    options = [f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}/cache", "-oAPT::Architecture=arm64",
               "-oAPT::Architectures=arm64", "-oAPT::Sandbox::User="]
    os.makedirs(f"{folder}/lists/partial", exist_ok=True)
    os.makedirs(f"{folder}/cache/archives/partial", exist_ok=True)
    if not list(pathlib.Path(folder).glob("lists/*Packages*")):
        run(["apt-get", *options, "update"])
    run(["apt-get", *options, "download", package], folder)
    file = next(pathlib.Path(folder).glob(f"{package}_*.deb"))
    run(["dpkg-deb", "-x", str(file), folder])


def find(folder, name):
    return str(next(pathlib.Path(folder).rglob(name)))


def hone_loop(builder, core, rows, vectors, steps):
    """The inner loop of matmul.trace with another tile."""
    text = TRACE.read_text()
    for old, new in [("i / 8, k, i % 8", f"i / {rows}, k, i % {rows}"),
                     ("j / 12, k, j % 12", f"j / {4 * vectors}, k, j % {4 * vectors}"),
                     ("k, 8, 3, 4, 4)", f"k, {rows}, {vectors}, 4, {steps})")]:
        assert old in text, f"{TRACE.name} has no '{old}'"
        text = text.replace(old, new)
    with tempfile.NamedTemporaryFile("w", suffix=".trace") as file:
        file.write(text)
        file.flush()
        return hottest_loop(run([builder, "code", "--target", f"arm/{core}", file.name]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builder", default="build/release/bin/hone-builder")
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--objdump", default="llvm-objdump-19")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        fetch("libopenblas-pthread-dev", folder)
        fetch("libxnnpack0", folder)
        run(["ar", "x", find(folder, "libopenblas*.a")], folder)
        tile = XNNPACK_ROWS * XNNPACK_VECTORS
        xnnpack = [loop for loop in innermost_loops(disassemble(options.objdump, find(folder, "libXNNPACK.so.0")))
                   if accumulators(loop) == tile and multiply_adds(loop) % tile == 0]
        print(f"{'core':12} {'library':8} {'tile':>5} {'FMLA/cycle':>10} {'Hone':>6} {'ratio':>6}")
        for core in CORES:
            kernel, rows, vectors = OPENBLAS.get(core, OPENBLAS_ELSE)
            openblas = hottest_loop(disassemble(options.objdump, f"{folder}/sgemm_kernel_{kernel}.o"))
            assert accumulators(openblas) == rows * vectors, f"OpenBLAS's kernel {kernel} has another tile"
            best = max(xnnpack, key=lambda loop: rate(options.mca, core, loop))
            for library, theirs, rows, vectors in [("OpenBLAS", openblas, rows, vectors),
                                                   ("XNNPACK", best, XNNPACK_ROWS, XNNPACK_VECTORS)]:
                ours = hone_loop(options.builder, core, rows, vectors, multiply_adds(theirs) // (rows * vectors))
                tile = f"{rows}x{4 * vectors}"
                rates = [rate(options.mca, core, loop) for loop in (theirs, ours)]
                print(f"{core:12} {library:8} {tile:>5} {rates[0]:10.2f} {rates[1]:6.2f} {rates[1] / rates[0]:6.3f}")


main()
