"""Runs the commands of a page in order, as a reader would type them, in a folder of its own with a private server."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from pages import REPOSITORY

NETWORKS = REPOSITORY / "tests/client/network/onnx/testdata"

# What is replaced in the commands of all pages, with the reason. A reader sees the original.
REPLACED = [
    (r"--trials 700", "--trials 8", "a search of hundreds of trials takes minutes; each task of the network needs one"),
    (r"\b1, 3, 224, 224\b", "1, 1, 28, 28", "the input of the network below"),
    (r"--trials (?!8\b)\d+", "--trials 4", "as above"),
    (r"\b([mnk]|ci|co)=(1024|768|512)\b", r"\1=64", "the latency is simulated, and that of a large operator would be impossible"),
    (r"hone\.internal", "localhost", "the server is on this machine"),
    (r"old\.internal:7070", "localhost:{port}", "as above"),
    (r"new\.internal:7070", "localhost:{other_port}", "as above"),
    (r"\b7070\b", "{port}", "other tests may use the port at the same time"),
    (r"\b7080\b", "{web_port}", "as above"),
    (r"\b9070\b", "{metrics_port}", "as above"),
    (r"/etc/hone/", "./", "a test does not write there"),
    (r"\b4711\b", "$slow", "the numbers of records differ"),
    (r"\b4702\b", "$fast", "as above"),
    (r"build/release/bin", "$HONE_PROGRAMS", "the tests use the programs with simulated latencies"),
]

# What a page takes for granted: commands that run before its first one, with the reason.
PREPARED = {
    "client/lookup/README.md": ("printf 'matmul m=64 n=48 k=32\\nsoftmax m=16 n=64\\n' >network.txt", "a list of the reader's operators"),
    "docs/ci.md": ("hone tune model.onnx --trials 8; hone tune matmul m=64 n=64 k=64 softmax m=64 n=64 --trials 4", "what its first block, which is not run, tunes"),
    "docs/datasets.md": ("hone tune relu m=16 n=16 softmax m=4 n=4 matmul m=8 n=8 k=8 --trials 4; hone records export -o a.jsonl; "
                         "hone dataset build -o b.h5; cp \"$ANSOR_LOG\" ansor.json", "the measurements and logs of the reader"),
    "docs/explain.md": ("hone tune matmul m=64 n=64 k=64 --trials 4; hone show matmul m=64 n=64 k=64 --trace >mine.trace; "
                        "slow=$(hone records query --limit 1 --json | jq '.records[0].record'); "
                        "fast=$(hone records query --limit 2 --json | jq '.records[1].record')", "measured schedules"),
    "docs/models.md": ("hone tune relu m=16 n=16 softmax m=4 n=4 matmul m=8 n=8 k=8 --trials 4; hone models train --model residual",
                       "a server that has learned, which takes 64 results"),
    "docs/python.md": ("hone tune matmul m=64 n=64 k=64 --trials 4; ln -s \"$PYTHONPATH/..\" client", "a kernel, in the repository"),
}

# Files that a page expects its reader to have.
FILES = {
    "model.onnx": NETWORKS / "mnist-8.onnx",
    "squeezenet.onnx": NETWORKS / "mnist-8.onnx",  # a network of 50 layers takes minutes
}

DRIVER = """\
set -euo pipefail
background=()
trap 'code=$?; for pid in "${background[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; exit $code' EXIT
# ready LOG TEXT PID: waits until a program in the background has printed the text.
ready() {
  local i
  for ((i = 0; i < 600; ++i)); do
    grep -qF -- "$2" "$1" && return
    kill -0 "$3" 2>/dev/null || { cat "$1" >&2; echo "it ended before it printed '$2'" >&2; return 1; }
    sleep 0.1
  done
  cat "$1" >&2
  echo "it did not print '$2' within a minute" >&2
  return 1
}
"""


def replace(text, ports):
    for pattern, replacement, _ in REPLACED:
        text = re.sub(pattern, re.sub(r"\{(\w+)\}", lambda found: str(ports[found[1]]), replacement), text)
    return text


def free_ports(*names):
    probes = [socket.socket() for _ in names]
    for probe in probes:
        probe.bind(("localhost", 0))
    ports = {name: probe.getsockname()[1] for name, probe in zip(names, probes)}
    for probe in probes:
        probe.close()
    return ports


def script(blocks, ports):
    """The commands of the blocks as a script for bash. A line `@ PLACE` says where it is."""
    parts = [DRIVER, PREPARED.get(blocks[0].page, [""])[0]]
    for number, block in enumerate(blocks):
        if block.not_run or not (block.is_commands or block.file):
            continue
        parts.append(f"echo '@ {block.place}'")
        if block.file:
            parts.append(f"mkdir -p -- \"$(dirname '{block.file}')\"")
            parts.append(f"cat >'{block.file}' <<'END_OF_THE_FILE'\n{block.text}END_OF_THE_FILE")
            continue
        text = replace(block.commands(), ports)
        if block.language == "python":
            text = f"python3 - <<'END_OF_THE_PROGRAM'\n{text}END_OF_THE_PROGRAM\n"
        if block.ready:
            *first, last = re.sub(r"\s# .*|\\\n", " ", text).strip().splitlines()
            log = f"$XDG_RUNTIME_DIR/{number}.log"
            parts += [*first, f"{last} >\"{log}\" 2>&1 &", "background+=($!)", f"ready \"{log}\" '{block.ready}' $!"]
        elif block.exit_code:
            parts.append(f"set +e; (set -e\n{text}); code=$?; set -e")
            parts.append(f"[ $code = {block.exit_code} ] || {{ echo \"exit code $code instead of {block.exit_code}\"; exit 1; }}")
        else:
            parts.append(text)
    return "\n".join(parts) + "\n"


class Session:
    """The folders of a user, who has the programs of the build and the files that pages expect."""

    def __init__(self, programs):
        # A short path, because the names of sockets are limited.
        self.folder = Path(tempfile.mkdtemp(prefix="hone-docs-"))
        self.work = self.folder / "work"
        self.work.mkdir()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("HONE_", "XDG_")) or name == "HONE_SIMULATED_DRAW"}
        for name in ("DATA_HOME", "CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR"):
            folder = self.folder / name.lower()
            folder.mkdir(mode=0o700)
            self.environment[f"XDG_{name}"] = str(folder)
        # /usr/bin/python3 is the one with the packages of install-deps.sh.
        self.environment.update(HOME=str(self.folder), PATH=f"{programs}:/usr/bin:/bin", HONE_PROGRAMS=str(programs),
                                PYTHONPATH=str(REPOSITORY / "client/python"), PYTHONDONTWRITEBYTECODE="1",
                                ANSOR_LOG=str(REPOSITORY / "tests/integration/testdata/dataset_ansor.json"))
        nvrtc = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hone/nvrtc"
        if nvrtc.exists():
            (self.folder / "cache_home/hone").mkdir()
            (self.folder / "cache_home/hone/nvrtc").symlink_to(nvrtc)
        for name, source in FILES.items():
            shutil.copy(source, self.work / name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, words, limit):
        """Returns the exit code and everything that was printed. All processes of the command end with it."""
        log = self.folder / "log"
        with open(log, "w") as out:
            process = subprocess.Popen(words, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                code = f"no exit code within {limit} s"
            finally:
                try:
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait(timeout=10)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass
        return code, log.read_text(errors="replace")

    def run_blocks(self, blocks, limit):
        path = self.folder / "commands.sh"
        path.write_text(script(blocks, free_ports("port", "other_port", "web_port", "metrics_port")))
        return self.run(["bash", str(path)], limit)
