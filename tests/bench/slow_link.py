#!/usr/bin/env python3
"""Measures a board behind a slow link: candidates per minute, how much of the time its runner has nothing to run, and bytes per candidate.

  tests/bench/slow_link.py [--build build/release] [--link 20:10] [--rounds 3] [--trials 96] [--far-builder] [OPERATOR key=value…]

A server, a worker that only builds and a worker that only runs are started in a temporary folder. The second worker reaches the server
through a proxy that delays every byte and limits the rate: --link 20:10 means 20 ms and 10 Mbit/s in each direction. netem would need a
module of the kernel. With --far-builder, both workers share the link. --build and --link may be given several times; the runs alternate.
The figures are those of the screened candidates, from the first to the last."""
import argparse
import asyncio
import json
import multiprocessing
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

READ_BYTES = 4096
QUEUED_CHUNKS = 32  # as the queue of a router
SAMPLE_SECONDS = 0.005
POLL_CALLS = ("7", "271")  # poll and ppoll on x86-64: the runner waits for a request


class Link:
    """A proxy in a process of its own."""

    def __init__(self, server, delay_s, bytes_per_s):
        self.down = multiprocessing.Value("q", 0)
        self.up = multiprocessing.Value("q", 0)
        ready = multiprocessing.Queue()
        self.process = multiprocessing.Process(
            target=lambda: asyncio.run(self.serve(server, delay_s, bytes_per_s, ready)), daemon=True)
        self.process.start()
        self.port = ready.get()

    async def serve(self, server, delay_s, bytes_per_s, ready):
        free = {"up": 0.0, "down": 0.0}  # when the line has sent what it has; shared by all connections
        loop = asyncio.get_running_loop()

        async def pump(reader, writer, way, total):
            queue = asyncio.Queue(QUEUED_CHUNKS)

            async def deliver():
                while (item := await queue.get()) is not None:
                    await asyncio.sleep(max(0, item[0] - loop.time()))
                    writer.write(item[1])
                    await writer.drain()
                writer.close()

            sender = asyncio.ensure_future(deliver())
            while data := await reader.read(READ_BYTES):
                free[way] = max(free[way], loop.time()) + len(data) / bytes_per_s
                total.value += len(data)
                await queue.put((free[way] + delay_s, data))
            await queue.put(None)
            await sender

        async def accept(reader, writer):
            server_reader, server_writer = await asyncio.open_unix_connection(server)
            pumps = (pump(reader, server_writer, "up", self.up), pump(server_reader, writer, "down", self.down))
            await asyncio.gather(*pumps, return_exceptions=True)

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        ready.put(listener.sockets[0].getsockname()[1])
        await listener.serve_forever()


class Observer:
    """Samples whether the worker's runner process waits for a request, and how many bytes the link has carried."""

    def __init__(self, worker, link):
        self.worker, self.link, self.pid, self.samples = worker, link, None, []

    def find(self):
        for children in pathlib.Path(f"/proc/{self.worker}/task").glob("*/children"):
            for pid in read(children).split():
                if "hone-runner" in read(f"/proc/{pid}/cmdline"):
                    return pid
        return None

    def sample(self):
        call = read(f"/proc/{self.pid}/syscall") if self.pid else ""
        if not call:
            self.pid = self.find()
            call = read(f"/proc/{self.pid}/syscall") if self.pid else ""
        idle = call == "" or call.split()[0] in POLL_CALLS
        self.samples.append((time.time(), idle, self.link.down.value, self.link.up.value))

    def between(self, begin, end):
        return [sample for sample in self.samples if begin <= sample[0] <= end]


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:  # the process or thread has ended
        return ""


def wait_for(condition, what, seconds=60):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            sys.exit(f"slow_link.py: {what} did not happen within {seconds} s")
        time.sleep(0.05)


def measure(bin_folder, operator, options, delay_s, bytes_per_s):
    with tempfile.TemporaryDirectory(prefix="hone-link-") as name:
        folder = pathlib.Path(name)
        started = []

        def start(*words):
            log = open(folder / f"{len(started)}.log", "w")
            started.append(subprocess.Popen([bin_folder / words[0], *words[1:]], stdout=log, stderr=log))
            return started[-1]

        def hone(*words, **more):
            return subprocess.Popen([bin_folder / "hone", "--server", f"unix:{folder}/server.sock", *words],
                                    stdout=subprocess.PIPE, text=True, **more)

        link = None
        try:
            start("hone-server", "--listen", f"unix:{folder}/server.sock", "--store", folder / "hone.db", "--ready-file", folder / "ready")
            wait_for((folder / "ready").exists, "the server's start")
            link = Link(f"{folder}/server.sock", delay_s, bytes_per_s)
            # Separate locks, as on separate machines.
            near, far = f"unix:{folder}/server.sock", f"127.0.0.1:{link.port}"
            start("hone-worker", "--name", "builder", "--build-only", "--build-slots", "1", "--server", far if options.far_builder else near,
                  "--state-dir", folder / "builder", "--lock", folder / "builder.lock", "--ready-file", folder / "builder.ready")
            board = start("hone-worker", "--name", "board", "--run-only", "--server", far, "--state-dir", folder / "board",
                          "--lock", folder / "board.lock", "--ready-file", folder / "board.ready")
            wait_for(lambda: (folder / "builder.ready").exists() and (folder / "board.ready").exists(), "the workers' start")
            tune = hone("tune", *operator, "--trials", str(options.trials), "--strategy", options.strategy, "--json",
                        stderr=open(folder / "tune.log", "w"))
            observer = Observer(board.pid, link)
            while tune.poll() is None:
                observer.sample()
                time.sleep(SAMPLE_SECONDS)
            if tune.returncode != 0:
                sys.exit(f"slow_link.py: hone tune failed: {(folder / 'tune.log').read_text()}")
            lines = map(json.loads, hone("records", "export").communicate()[0].splitlines())
            records = [line["record"] for line in lines if "record" in line]
            moments = sorted(int(record["created_unix_ms"]) / 1000 for record in records if record["policy"]["name"] == "screen")
            seen = observer.between(moments[0], moments[-1])
            count = len(moments) - 1
            return {"per_minute": 60 * count / (moments[-1] - moments[0]),
                    "idle": sum(sample[1] for sample in seen) / len(seen),
                    "down_kib": (seen[-1][2] - seen[0][2]) / count / 1024,
                    "up_kib": (seen[-1][3] - seen[0][3]) / count / 1024}
        finally:
            for process in started:
                process.send_signal(signal.SIGTERM)
            for process in started:
                process.wait()
            if link is not None:
                link.process.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="append")
    parser.add_argument("--link", action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=96)
    parser.add_argument("--strategy", default="evolutionary")
    parser.add_argument("--far-builder", action="store_true")
    parser.add_argument("operator", nargs="*", default=["matmul", "m=256", "n=256", "k=256"])
    options = parser.parse_args()
    results = {}
    for _ in range(options.rounds):
        for link in options.link or ["20:10", "0:100000"]:
            delay_ms, mbit = map(float, link.split(":"))
            for build in options.build or ["build/release"]:
                measured = measure(pathlib.Path(build).resolve() / "bin", options.operator, options, delay_ms / 1000, mbit * 1e6 / 8)
                results.setdefault((build, link), []).append(measured)
                print(build, link, {key: round(value, 3) for key, value in measured.items()}, file=sys.stderr)
    print("| build | link | candidates a minute | runner idle | KiB down per candidate | KiB up |\n|---|---|---|---|---|---|")
    for (build, link), runs in results.items():
        median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        print(f"| {build} | {link} | {median['per_minute']:.0f} | {100 * median['idle']:.0f} % | {median['down_kib']:.1f} | {median['up_kib']:.1f} |")


main()
