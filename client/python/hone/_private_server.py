"""The private server of this user, which the first client starts and the last one ends."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from . import _programs, errors

_START_S = 40.0


def user_folder(variable: str, usual: str) -> Path:
    base = os.environ.get(variable, "")
    return (Path(base) if base.startswith("/") else Path.home() / usual) / "hone"


class PrivateServer:
    """References to the private server, which exits with its last one. See client/connection/keeper.h for the messages.

    The keeper, the process that supervises the server, is part of the `hone` command, which starts it here."""

    def __init__(self) -> None:
        self.folder = user_folder("XDG_DATA_HOME", ".local/share")
        self._references: dict[str, socket.socket] = {}
        self._failure = ""

    def attach(self, request: str = "attach") -> str:
        """Starts or joins the server, waits until it is ready, and returns its address. `request`: "attach worker DEVICE"
        also starts a worker."""
        if request not in self._references:
            self._references[request] = self._attached(request)
        return f"unix:{self._socket_path()}"

    def _attached(self, request: str) -> socket.socket:
        deadline = time.monotonic() + _START_S
        with contextlib.ExitStack() as stack:
            starter: subprocess.Popen[bytes] | None = None
            log = stack.enter_context(tempfile.TemporaryFile())
            while time.monotonic() < deadline:
                reference = self._try(request, deadline)
                if reference is not None:
                    return reference
                if starter is None or starter.poll() is not None:
                    if starter is not None and starter.returncode != 0:
                        log.seek(0)
                        raise errors.Failed(
                            "the private server cannot start: " + log.read().decode(errors="replace").strip()
                        )
                    # Any command that asks the private server starts it. It ends when the server has answered.
                    command = [str(_programs.folder() / "hone"), "--local", "jobs", "list"]
                    starter = subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
                        env={**os.environ, "XDG_DATA_HOME": str(self.folder.parent)}
                    )
                    stack.callback(starter.wait)
                time.sleep(0.005)
        raise errors.Failed(
            f"the private server of {self.folder} does not answer; its log is {self.folder}/run/server.log, and "
            f"{self.folder}/private.lock has its process id"
        )

    def _socket_path(self) -> str:
        try:
            lines = (self.folder / "private.lock").read_text().splitlines()
        except OSError:
            return ""
        return next((line[len("server unix:"):] for line in lines if line.startswith("server unix:")), "")

    def _try(self, request: str, deadline: float) -> socket.socket | None:
        """None if the keeper is starting or exiting."""
        path = self._socket_path()
        if not path:
            return None
        reference = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            reference.connect(str(Path(path).parent / "keeper.sock"))
            reference.send(request.encode())
            reference.settimeout(max(0.1, deadline - time.monotonic()))
            answer = reference.recv(4096).decode(errors="replace")
        except OSError:
            reference.close()
            return None
        except BaseException:
            reference.close()
            raise
        if answer == "ready":
            reference.setblocking(False)
            return reference
        reference.close()
        if answer.startswith("failed "):
            raise errors.Failed(answer[len("failed "):])
        return None

    def check(self) -> None:
        """Raises Failed if the server, or a worker that was asked for, has ended."""
        for reference in self._references.values():
            try:
                said = reference.recv(4096).decode(errors="replace")
            except BlockingIOError:
                continue
            except OSError as error:
                said = f"failed {error}"
            words = said.partition(" ")[2]
            self._failure = words or f"the private server has stopped; its log is {self.folder}/run/server.log"
        if self._failure:
            raise errors.Failed(self._failure)

    def close(self) -> None:
        for reference in self._references.values():
            reference.close()
        self._references.clear()
