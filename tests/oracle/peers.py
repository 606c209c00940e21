"""The two processes of a case: oracle_kernels, which builds, and checker.py, which runs.

If one crashes or hangs, it is ended and restarted for the next case, and the case fails with the
last step that it reported.
"""
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path


class Died(Exception):
    """The message has the last step of the process. `kernel`: the kernel that it ran, if any."""

    def __init__(self, message, kernel=None):
        super().__init__(message)
        self.kernel = kernel


class _Peer:
    def __init__(self, command, environment, last_event, seconds):
        self._command, self._last_event, self._seconds = command, last_event, seconds
        self._environment = {**os.environ, **environment}
        self._process = None

    def ask(self, request):
        """Returns the messages of the answer, without the steps."""
        if self._process is None:
            self._start()
        step, kernel, messages = "start", None, []
        try:
            os.write(self._process.stdin.fileno(), (json.dumps(request) + "\n").encode())
            deadline = time.monotonic() + self._seconds
            while True:
                message = json.loads(self._line(deadline))
                if message["event"] == "step":
                    step, kernel = message["step"], message.get("kernel")
                    continue
                messages.append(message)
                if message["event"] == self._last_event:
                    return messages
        except (Died, BrokenPipeError, json.JSONDecodeError) as error:
            raise Died(f"{self._end() or error} while it was to {step}", kernel) from None

    def _start(self):
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self._environment)
        os.set_blocking(self._process.stderr.fileno(), False)
        self._buffer = b""

    def _line(self, deadline):
        stdout = self._process.stdout.fileno()
        stderr = self._process.stderr.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([stdout], [], [], max(left, 0))
            if not ready:
                raise Died(f"{Path(self._command[-1]).name} took more than {self._seconds} s")
            data = os.read(stdout, 1 << 20)
            if not data:
                raise Died("")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _end(self):
        """Ends the process. Returns how it died, or "" if it had to be killed."""
        process, self._process = self._process, None
        try:
            code = process.wait(timeout=5 if not process.stdout.closed else 0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        said = (process.stderr.read() or b"").decode(errors="replace").strip()[-400:]
        for pipe in (process.stdin, process.stdout, process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        if code is None:
            return ""
        name = Path(self._command[-1]).name
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{name} ended with {how}{': ' if said else ''}{said}"

    def close(self):
        if self._process is not None:
            self._process.stdin.close()
            self._end()


# A process that hangs is killed after this many seconds. A busy machine takes minutes for a kernel.
_PATIENCE = 600


class Builder(_Peer):
    def __init__(self, program):
        # Fills new and freed memory with a pattern, so that reads of it give wrong results.
        super().__init__([program], {"MALLOC_PERTURB_": "165"}, "done", _PATIENCE)


class Checker(_Peer):
    def __init__(self):
        # NumPy's BLAS needs only one thread; kernels state their number of threads.
        super().__init__([sys.executable, str(Path(__file__).parent / "checker.py")],
                         {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
                         "verdict", _PATIENCE)
