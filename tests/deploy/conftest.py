"""Real programs for the tests of deploy/, with simulated latencies (tests/fault/README.md)."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = Path(os.environ.get("HONE_PROGRAMS", REPOSITORY / "build/release/simulated"))
POSTGRES = next(Path("/usr/lib/postgresql").glob("*/bin"), None)
MATMUL = ["matmul", "m=32", "n=48", "k=16"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what, seconds=90):
    """Polls until the condition holds, and returns its value; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not after {seconds} s"
        time.sleep(0.05)
    return value


class Site:
    """A folder with the programs that a test starts; they end with the test."""

    def __init__(self, folder):
        self.folder = folder
        self.running = {}
        for name in ("run", "data", "config", "cache"):
            (folder / name).mkdir(mode=0o700)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("HONE_")} | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(folder / "run"),
            **{f"XDG_{name.upper()}_HOME": str(folder / name) for name in ("data", "config", "cache")}}

    def run(self, *words, code=0, **options):
        """Runs a program to its end and returns its output; fails if the exit code is another one."""
        words = [str(word) for word in words]
        options = {"env": self.environment, "timeout": 240} | options
        done = subprocess.run(words, capture_output=True, text=True, **options)
        assert done.returncode == code, f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    def start(self, name, *words, ready=None, **options):
        """Starts a program, with its output in a file; waits until the file `ready` exists."""
        log = self.folder / f"{name}.log"
        with open(log, "w") as out:
            process = subprocess.Popen([str(word) for word in words], env=self.environment, stdout=out, stderr=out, **options)
        self.running[name] = process
        if ready:
            wait_until(lambda: ready.exists() or process.poll() is not None, f"{name} is ready")
            assert process.poll() is None, f"{name} ended: {log.read_text()}"
        return process

    def stop(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(how)
        return process.wait(timeout=60)

    def start_server(self, *words, store=None):
        ready = self.folder / "server.ready"
        ready.unlink(missing_ok=True)
        self.address = f"unix:{self.folder}/hone.sock"
        self.start("server", "hone-server", "--listen", self.address, "--store", store or self.folder / "hone.db",
                   "--ready-file", ready, *words, ready=ready)

    def start_worker(self, *words):
        ready = self.folder / "worker.ready"
        ready.unlink(missing_ok=True)
        self.start("worker", "hone-worker", "--server", self.address, "--state-dir", self.folder / "worker", "--name", "one",
                   "--ready-file", ready, *words, ready=ready)

    def hone(self, *words, code=0):
        """What `hone --json` printed."""
        return json.loads(self.run("hone", "--server", self.address, *words, "--json", code=code))

    def close(self):
        for name in list(self.running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stop(name)
                continue
            self.running[name].kill()


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.fixture
def database(tmp_path_factory):
    """A PostgreSQL server of the test alone; its URI without the name of a database."""
    if POSTGRES is None:
        pytest.skip("PostgreSQL is not installed; deploy/install-deps.sh installs it")
    folder = Path("/tmp") / f"hone_deploy_{os.getpid()}"  # the path of a socket must be short
    folder.mkdir(mode=0o755)
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses root
        user = {"user": "postgres"}
        os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
    run = lambda *words: subprocess.run(words, check=True, cwd="/", stdout=subprocess.DEVNULL, **user)
    try:
        run(POSTGRES / "initdb", "-D", folder / "data", "-E", "UTF8", "--locale=C", "-A", "trust", "-U", "hone", "--no-sync")
        run(POSTGRES / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o",
            f"-k {folder} -c listen_addresses= -c fsync=off", "start")
        yield lambda name: f"postgresql://hone@/{name}?host={folder}"
        run(POSTGRES / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
