#!/usr/bin/env python3
"""Compares operators and networks of Hone with the newest releases of oneDNN, OpenBLAS, ONNX Runtime, OpenVINO and PyTorch.

  rivals.py install VENV                           makes a Python environment with the libraries (7 GB, of which PyTorch needs most)
  VENV/bin/python rivals.py prepare FOLDER         writes the models, exports Hone's networks, and lets the libraries compile theirs
  VENV/bin/python rivals.py measure FOLDER         times all of them; can be interrupted, and continues with the next call
  VENV/bin/python rivals.py report FOLDER          prints the Markdown of tests/bench/results/rivals.md
  rivals.py small FOLDER                           all of it with four small cases and what is installed; exits with 77 if nothing is

Hone's kernels are those of the draft; `prepare --tune 60s` tunes each case. `--onnx FOLDER` adds the ONNX files of a folder, and `--only
TEXT` takes only cases whose names contain a text. Every library runs in a process of its own, and they take turns of at least 60 ms within
a round (networks/turns.py), in an order that is reversed from round to round. A turn is the median of its runs; a ratio is that of two
turns of one round.
"""
import argparse
import collections
import datetime
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from importlib import metadata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import NETWORKS, OPERATORS, QUANTIZED, SMALL, Folder, build_operator, file_name, flops, is_held_out, is_operator, words_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PACKAGES = ["numpy==2.2.6", "onnx==1.23.2", "onnxruntime==1.32.0", "openvino==2026.4.1", "scipy-openblas64==0.3.34.481.3", "onednn==2026.1.0",
            "onednn-devel==2026.1.0", "dpcpp-cpp-rt==2026.2.0", "intel-opencl-rt==2026.2.0", "torch==2.15.0"]
# The module that a peer needs, its package, and its title. Hone needs numpy to be timed.
MODULES = {"hone": ("numpy", "", "Hone"), "onednn": ("numpy", "onednn", "oneDNN"),
           "openblas": ("scipy_openblas64", "scipy-openblas64", "OpenBLAS"), "onnxruntime": ("onnxruntime", "onnxruntime", "ONNX Runtime"),
           "openvino": ("openvino", "openvino", "OpenVINO"), "inductor": ("torch", "torch", "Inductor"),
           "torch": ("torch", "torch", "PyTorch, eager")}
# PyTorch without its compiler was slower than with it in all cases, so it is only compared with --peers.
DEFAULT_PEERS = ["hone", "onednn", "openblas", "onnxruntime", "openvino", "inductor"]
TOLERANCE, QUANTIZED_TOLERANCE = 2e-4, 0.05


def install(options):
    subprocess.run([sys.executable, "-m", "venv", options.folder], check=True)
    subprocess.run([f"{options.folder}/bin/pip", "install", "-q", *PACKAGES], check=True)
    return 0


def has_module(name):
    return importlib.util.find_spec(name) is not None


def version_of(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed(peers):
    return [peer for peer in peers if has_module(MODULES[peer][0]) and (not MODULES[peer][1] or version_of(MODULES[peer][1]))]


class Peer:
    """A process of peers.py."""

    def __init__(self, name, threads, folder):
        environment = {name: value for name, value in os.environ.items() if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        libraries = f"{sys.prefix}/lib"
        environment.update(
            OMP_NUM_THREADS=str(threads), PYTHONPATH=str(HERE.parent / "networks"), PYTHONDONTWRITEBYTECODE="1",
            TORCHINDUCTOR_CACHE_DIR=str(folder.path / "inductor"),
            # Memory that PyTorch frees and allocates again would otherwise cost a page fault each time.
            MALLOC_MMAP_THRESHOLD_=str(1 << 30), MALLOC_TRIM_THRESHOLD_=str(1 << 30), MALLOC_TOP_PAD_=str(64 << 20))
        if name == "onednn":  # its package runs on SYCL, and finds the CPU only so
            environment.update(LD_LIBRARY_PATH=libraries, OCL_ICD_FILENAMES=f"{libraries}/libintelocl.so")
        self.log = open(folder.path / f"{name}.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([sys.executable, HERE / "peers.py", name, str(threads), str(folder.path)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"failed": f"the process ended; see {self.log.name}"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


def cases_of(options, folder):
    if options.what == "small":
        cases = SMALL
    else:
        added = sorted(path.stem for path in (folder.path / "models").glob("added_*.onnx"))
        cases = OPERATORS + NETWORKS + added + QUANTIZED
    return [case for case in cases if any(text in case for text in options.only or [""])]


# Preparing

def write_models(options, folder):
    import make_models
    import onnx
    (folder.path / "models").mkdir(parents=True, exist_ok=True)
    for source in sorted(pathlib.Path(options.onnx).glob("*.onnx")) if options.onnx else []:
        (folder.path / "models" / f"added_{file_name(source.stem)}.onnx").write_bytes(source.read_bytes())
    for case in cases_of(options, folder):
        path = folder.model(case)
        if path.exists():
            continue
        if is_operator(case):
            onnx.save(build_operator(case, channels_first=False), path)
            onnx.save(build_operator(case, channels_first=True), folder.model(case, channels_first=True))
        else:
            subprocess.run([sys.executable, make_models.__file__, path.parent, case], check=True, stdout=subprocess.DEVNULL)


def export(options, folder):
    """Exports Hone's networks. Says which ones `hone` refuses, and goes on."""
    hone = os.environ.get("HONE_BUILD_DIR", str(ROOT / "build/release")) + "/bin/hone"
    home = folder.path / "home"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment = {**os.environ, **{name: str(home) for name in ("XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME")}}
    for case in cases_of(options, folder):
        if folder.export(case).is_dir():
            continue
        if options.tune:
            subprocess.run([hone, "tune", folder.model(case), "--time", options.tune], env=environment, check=False, capture_output=True)
        command = [hone, "export", folder.model(case), "-o", folder.export(case), "--name", file_name(case), *([] if options.tune else ["--draft"])]
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{case}: {done.stderr.strip()[-300:]}", file=sys.stderr)


def write_expected(options, folder):
    """The outputs of ONNX Runtime, or else of Hone, with which those of the others are compared."""
    (folder.path / "expected").mkdir(exist_ok=True)
    missing = [case for case in cases_of(options, folder) if not folder.expected(case).exists()]
    for name in installed(["onnxruntime", "hone"]):
        peer = Peer(name, 2, folder)
        for case in [case for case in missing if not folder.expected(case).exists()]:
            if "error" in peer.ask(load=case):
                peer.ask(save=str(folder.expected(case)))
        peer.close()


def write_all(options, folder):
    write_models(options, folder)
    export(options, folder)
    write_expected(options, folder)


def prepare(options):
    folder = Folder(options.folder)
    write_all(options, folder)
    for name in installed(options.peers):
        if name not in ("inductor", "onednn"):
            continue
        for threads in options.threads:
            peer, begin = Peer(name, threads, folder), time.monotonic()
            for case in cases_of(options, folder):
                answer = peer.ask(load=case)
                if "failed" in answer:
                    print(f"{MODULES[name][2]}, {case}: {answer['failed']}", file=sys.stderr)
            peer.close()
            print(f"{MODULES[name][2]} is ready for {threads} threads after {time.monotonic() - begin:.0f} s", flush=True)
    return 0


# Measuring

def read_results(folder):
    if not folder.results().exists():
        return {}
    rows = [json.loads(line) for line in folder.results().read_text(encoding="utf-8").splitlines()]
    return {(row["case"], row["threads"]): row for row in rows}


def measure(options):
    folder, begin, done = Folder(options.folder), time.monotonic(), True
    for threads in options.threads:
        known = read_results(folder)
        todo = [case for case in cases_of(options, folder) if (case, threads) not in known]
        if not todo or time.monotonic() - begin > options.seconds:
            done &= not todo
            continue
        peers = {name: Peer(name, threads, folder) for name in installed(options.peers)}
        for case in todo:
            if time.monotonic() - begin > options.seconds:
                done = False
                break
            loaded = {name: peer.ask(load=case) for name, peer in peers.items()}
            ready = [name for name, answer in loaded.items() if "error" in answer]
            turns = collections.defaultdict(list)
            for number in range(options.rounds):
                for name in ready if number % 2 == 0 else reversed(ready):
                    turns[name].append(peers[name].ask(run=options.clock)["seconds"])
            row = {"case": case, "threads": threads, "clock": options.clock, "seconds": turns, "errors": {name: loaded[name]["error"] for name in ready},
                   "why": {name: answer for name, answer in loaded.items() if name not in ready}}
            with open(folder.results(), "a", encoding="utf-8") as results:
                results.write(json.dumps(row) + "\n")
            print(f"{threads} {case}: " + ", ".join(f"{name} {1e6 * at(seconds, 0.5):.0f} us" for name, seconds in turns.items()), flush=True)
        for peer in peers.values():
            peer.close()
    print("finished" if done else "not finished; run it again")
    return 0


# The report

def at(values, share):
    values = sorted(values)
    return values[round(share * (len(values) - 1))]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def ratios_of(row, name):
    return [rival / own for rival, own in zip(row["seconds"][name], row["seconds"]["hone"])]


def family_of(case):
    if not is_operator(case):
        return "networks, int8" if "int8" in case else "networks"
    operator, keys = words_of(case)
    if operator == "conv2d":
        return "conv2d, grouped" if "groups" in keys else "conv2d, odd channels" if keys["ci"] % 2 and keys["ci"] > 3 else "conv2d"
    return operator


def machine(folder):
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")), "an unknown CPU")
    facts = next((json.loads(path.read_text(encoding="utf-8")) for path in (folder.path / "hone").glob("*/*.export.json")), {})
    kind = "virtual cores" if "hypervisor" in text else "threads"
    return f"{os.cpu_count()} {kind} of {model} (target {facts.get('target', 'unknown')})"


def title_of(case):
    return case.removeprefix("added_") if not is_operator(case) else f"{case}{' *' if is_held_out(case) else ''}"


def report(options):
    folder = Folder(options.folder)
    rows = list(read_results(folder).values())
    names = [name for name in MODULES if name != "hone" and any(name in row["seconds"] for row in rows)]
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    versions = ", ".join(f"{MODULES[name][2]} {version_of(MODULES[name][1]) or ''}".strip() for name in names if MODULES[name][1])
    print(f"Commit {commit}, {datetime.date.today():%-d %B %Y}, {machine(folder)}. {versions}. Medians of {options.rounds} rounds; in brackets the "
          "tenth and the ninetieth percentile of the rounds. A ratio is the time of a library over Hone's; above 1, Hone is faster.\n")
    print(f"| case | threads | Hone µs | GFLOP/s | {' | '.join('over ' + MODULES[name][2] for name in names)} | over the best |")
    print(f"|---|--:|--:|--:|{'--:|' * (len(names) + 1)}")
    groups, wrong = collections.defaultdict(lambda: collections.defaultdict(list)), []
    for row in rows:
        case, threads = row["case"], row["threads"]
        for name, error in row["errors"].items():
            if not error <= (QUANTIZED_TOLERANCE if "int8" in case else TOLERANCE):
                wrong.append(f"{case}, {threads} threads: {MODULES[name][2]} differs by {error:.1e}")
        rivals = [name for name in names if name in row["seconds"]]
        if "hone" not in row["seconds"] or not rivals:
            continue
        ratios = {name: ratios_of(row, name) for name in rivals}
        over = {name: at(ratios[name], 0.5) for name in rivals}
        for group in (family_of(case), *(["operators", "operators, held out"][:1 + is_held_out(case)] if is_operator(case) else [])):
            for name in rivals:
                groups[group, threads][name].append(over[name])
            groups[group, threads]["best"].append(min(over.values()))
        own = at(row["seconds"]["hone"], 0.5)
        cells = [f"{over[name]:.2f} [{at(ratios[name], 0.1):.2f}, {at(ratios[name], 0.9):.2f}]" if name in ratios else "" for name in names]
        print(f"| {title_of(case)} | {threads}{', processor time' if row['clock'] == 'processor' else ''} | {1e6 * own:.0f} | {f'{flops(case) / own / 1e9:.1f}' if flops(case) else ''} "
              f"| {' | '.join(cells)} | {min(over.values()):.2f} |")
    print(f"\nGeometric means. A star marks the operators that are held out.\n\n| group | threads | cases | "
          f"{' | '.join('over ' + MODULES[name][2] for name in names)} | over the best |")
    print(f"|---|--:|--:|{'--:|' * (len(names) + 1)}")
    for (group, threads), found in groups.items():
        cells = [f"{mean(found[name]):.2f}" if found[name] else "" for name in names]
        print(f"| {group} | {threads} | {len(found['best'])} | {' | '.join(cells)} | {mean(found['best']):.2f} |")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def small(options):
    """A ctest: everything works on small cases, with whatever is installed. PyTorch's compiler takes too long, and its threads, too, on a
    busy machine."""
    options.peers = ["hone", "onednn", "openblas", "onnxruntime", "openvino", "torch"]
    options.threads, options.rounds = [1], 2
    if len(installed(options.peers)) < 2 or not has_module("onnx"):
        print("skipped: no library is installed in this Python environment; rivals.py install makes one")
        return 77
    folder = Folder(options.folder)
    folder.results().unlink(missing_ok=True)
    write_all(options, folder)
    measure(options)
    rows = read_results(folder)
    missing = [f"{case}, {threads} threads" for case in SMALL for threads in options.threads
               if len(rows.get((case, threads), {"seconds": {}})["seconds"]) < 2 or "hone" not in rows[case, threads]["seconds"]]
    failures = [f"{case}: {name}: {why['failed']}" for (case, _), row in rows.items() for name, why in row["why"].items() if "failed" in why]
    print("\n".join(missing + failures), file=sys.stderr)
    return report(options) or int(bool(missing or failures))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["install", "prepare", "measure", "report", "small"])
    parser.add_argument("folder")
    parser.add_argument("--onnx", help="a folder of ONNX files that are compared, too")
    parser.add_argument("--tune", help="the time for which each case is tuned, such as 60s; without it, drafts are compared")
    parser.add_argument("--only", action="append", help="a part of the names of cases; may be repeated")
    parser.add_argument("--peers", nargs="+", choices=list(MODULES), default=DEFAULT_PEERS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall",
                        help="processor: time of the processor, for one thread on a machine that is shared")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time, and continue with the next call")
    options = parser.parse_args()
    return {"install": install, "prepare": prepare, "measure": measure, "report": report, "small": small}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
