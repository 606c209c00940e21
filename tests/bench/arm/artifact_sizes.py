#!/usr/bin/env python3
"""What a board downloads: the parts of artifacts, and what compression or linking several candidates together would save.

  tests/bench/arm/artifact_sizes.py [--benchmark build/release/bench/candidate_benchmark] [--target arm/cortex-a72] [--candidates 50]

Prints KiB per candidate for each operator. "K together" is one stream for K candidates; "K linked" is one shared object made of their
object files, whose functions get a prefix each, without the other parts. Needs llvm-objcopy, ld.lld and zstd."""
import argparse
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

OPERATORS = ["matmul m=256 n=256 k=256", "matmul m=1024 n=1024 k=1024", "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1"]
SECTIONS = ["shared object", "object", "workload", "trace", "program", "target"]
TOGETHER = 8
# The flags of worker/builder/link.cc; undefined functions stay undefined, for want of its stubs.
LINK = ["ld.lld", "-shared", "--threads=1", "--build-id=none", "--gc-sections", "-z", "now", "-z", "noexecstack"]
KERNEL_PREFIX = "hone_kernel"


def run(command, data=None):
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"artifact_sizes.py: {' '.join(map(str, command))}: {done.stderr.decode().strip()}")
    return done.stdout


def parse(artifact):
    """The sections, as common/record/artifact.h describes them."""
    count = struct.unpack_from("<I", artifact, 12)[0]
    lengths = struct.unpack_from(f"<{count}Q", artifact, 16)
    at, sections = 16 + 8 * count, []
    for length in lengths:
        sections.append(artifact[at:at + length])
        at += length
    return dict(zip(SECTIONS, sections))


def gzip(data):
    return len(zlib.compress(data, 6))  # the level of gRPC


def zstd(data):
    return len(run(["zstd", "-q", "-3", "--long=27", "-c"], data))


def groups(items):
    return [b"".join(items[at:at + TOGETHER]) for at in range(0, len(items), TOGETHER)]


def link(objects, more=()):
    with tempfile.TemporaryDirectory() as name:
        folder, files = pathlib.Path(name), []
        for number, data in enumerate(objects):
            file = folder / f"{number}.o"
            file.write_bytes(data)
            if len(objects) > 1:
                defined = run(["llvm-nm", "--defined-only", "--extern-only", "--format=just-symbols", file]).decode().split()
                run(["llvm-objcopy", *[f"--redefine-sym={symbol}={KERNEL_PREFIX}{number}_{symbol}" for symbol in defined], file])
            files.append(file)
        (folder / "visible").write_text("{ global: hone_*; local: *; };")
        run([*LINK, *more, "--version-script", folder / "visible", "-o", folder / "out.so", *files])
        return (folder / "out.so").read_bytes()


def report(title, artifacts):
    parts = [parse(artifact) for artifact in artifacts]
    shared = [part["shared object"] for part in parts]
    objects = [part["object"] for part in parts]
    stripped = [link([data], ["-s"]) for data in objects]
    linked = [link(objects[at:at + TOGETHER]) for at in range(0, len(objects), TOGETHER)]
    forms = {
        "artifact": artifacts,
        f"artifact, {TOGETHER} together": groups(artifacts),
        "shared object": shared,
        "shared object, stripped": stripped,
        f"shared object, {TOGETHER} together": groups(shared),
        f"shared object, {TOGETHER} linked": linked,
    }
    sizes = ", ".join(f"{name} {sum(len(part[name]) for part in parts) / len(parts) / 1024:.1f}" for name in SECTIONS)
    print(f"\n{title}, {len(artifacts)} candidates; KiB each: {sizes}\n")
    print("| | raw | gzip | zstd |\n|---|---|---|---|")
    for name, data in forms.items():
        raw, gzipped, zstandard = (sum(map(size, data)) / len(artifacts) / 1024 for size in (len, gzip, zstd))
        print(f"| {name} | {raw:.1f} | {gzipped:.1f} | {zstandard:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", default="build/release/bench/candidate_benchmark")
    parser.add_argument("--target", default="arm/cortex-a72")
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--operator", action="append")
    options = parser.parse_args()
    for operator in options.operator or OPERATORS:
        with tempfile.TemporaryDirectory() as folder:
            run([options.benchmark, "--candidates", str(options.candidates), "--target", options.target, "--operator", operator, "--keep", folder])
            artifacts = [file.read_bytes() for file in sorted(pathlib.Path(folder).iterdir())]
        report(operator, artifacts)


main()
