"""The connection to a server: one that was named, or the private server of this user, which starts by itself."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
import weakref
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Iterator

import grpc

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from . import _programs, _protocol, errors
from ._private_server import PrivateServer, user_folder

_ERRORS: dict[grpc.StatusCode, type[errors.Error]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidArgument,
    grpc.StatusCode.NOT_FOUND: errors.NothingKnown,
    grpc.StatusCode.PERMISSION_DENIED: errors.PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: errors.PermissionDenied,
    grpc.StatusCode.UNAVAILABLE: errors.ServerUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.ServerUnavailable,
}
_OPTIONS: list[tuple[str, str | int]] = [
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.max_send_message_length", 16 << 20),
    ("grpc.per_message_decompression", 0),  # gRPC would decompress without a limit; servers compress nothing
    ("grpc.min_reconnect_backoff_ms", 5000),  # of an attempt to connect, in spite of its name
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.use_local_subchannel_pool", 1),
]
# Calls go to the servers that say that they serve: of a leader and its standbys, the leader.
_TO_THE_LEADER = json.dumps(
    {
        "loadBalancingConfig": [{"round_robin": {}}],
        "healthCheckConfig": {"serviceName": "hone.v1.TuningService"},
    }
)
# Of a leader that hangs, the kernel still answers, so that only pings find it out (common/rpc/channel.h).
_PINGS_TO_THE_LEADER: list[tuple[str, str | int]] = [
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 6000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]
_LOCAL = ("unix:", "localhost:", "127.", "[::1]")
_TAKE_OVER_S = 20.0  # of several servers, none may lead for so long
_WORKER_S = 120.0  # a worker measures this machine's peak before it registers
_WATCH_S = 600.0
_RESTART_S = 30.0  # a server may need this long until it answers again


@dataclass
class Settings:
    """Which server to use, and how. An empty field is not set. `ca`, `certificate` and `key` are paths or PEM texts."""

    server: str = ""  # "": the private server of this user; of a leader and its standbys: "a:7070,b:7070"
    ca: str = ""
    certificate: str = ""
    key: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    server_name: str = ""
    insecure: bool = False

    def as_config(self) -> str:
        """The same as the text of a configuration file."""
        lines = []
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, bool):
                lines.append(f"{one.name} = {str(value).lower()}")
            elif value:
                quoted = f"'''\n{value}'''" if "\n" in value else json.dumps(value, ensure_ascii=False)
                lines.append(f"{one.name.replace('_', '-')} = {quoted}")
        return "\n".join(lines) + "\n"

    def completed(self, config: str = "") -> Settings:
        """Adds $HONE_SERVER, $HONE_CA, $HONE_TOKEN_FILE and a configuration file, by the rules of the `hone` command."""
        done = Settings(**vars(self))
        done.server = done.server or os.environ.get("HONE_SERVER", "")
        done.ca = done.ca or os.environ.get("HONE_CA", "")
        if not done.token:
            done.token_file = done.token_file or os.environ.get("HONE_TOKEN_FILE", "")
        named = config or os.environ.get("HONE_CONFIG", "")
        path = Path(named) if named else user_folder("XDG_CONFIG_HOME", ".config") / "client.conf"
        if not named and not path.exists():
            return done
        stored = read_config(path)
        if done.server and done.server != stored.server:
            return done  # the secrets of the file are for its own server
        has_token = bool(done.token or done.token_file)
        for one in fields(Settings):
            if not getattr(done, one.name) and not (has_token and one.name.startswith("token")):
                setattr(done, one.name, getattr(stored, one.name))
        return done


def read_config(path: Path) -> Settings:
    """The settings in a file such as client.conf of `hone-server init`."""
    try:
        entries = tomllib.loads(path.read_text())
    except OSError as error:
        raise errors.InvalidArgument(f"cannot read the configuration {path}: {error.strerror}") from None
    except ValueError as error:
        raise errors.InvalidArgument(f"{path}: {error}") from None
    entries = {key.replace("-", "_"): value for key, value in entries.items()}
    known = {one.name for one in fields(Settings)}
    if unknown := sorted(set(entries) - known):
        names = ", ".join(sorted(name.replace("_", "-") for name in known))
        raise errors.InvalidArgument(f"{path}: there is no key {unknown[0]!r}; the keys are {names}")
    secret = "token" in entries or "-----BEGIN" in str(entries.get("key", ""))
    if secret and path.stat().st_mode & 0o007:
        raise errors.PermissionDenied(
            f"{path} contains a secret, and other users of this machine can read it; run: chmod 600 {path}"
        )
    return Settings(**entries)


class Connection:
    """The calls of a server. Used by any number of threads. It is made by the first call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.private = None if settings.server else PrivateServer()
        self._lock = threading.RLock()
        self._channel: grpc.Channel | None = None
        self._address = settings.server
        self._metadata: tuple[tuple[str, str], ...] = ()
        self._config: Any = None  # the file of words()
        self._forked = False
        self._closed = False
        _connections.add(self)

    @property
    def address(self) -> str:
        self.channel()
        return self._address

    def words(self) -> list[str]:
        """Options that lead `hone` to this server. Its secrets are in a file that only this user can read."""
        self.channel()
        with self._lock:
            if self._config is None:
                self._config = tempfile.NamedTemporaryFile("w", prefix="hone-", suffix=".conf")
                self._config.write(Settings(**{**vars(self.settings), "server": self._address}).as_config())
                self._config.flush()
        return ["--server", self._address, "--config", self._config.name]

    def channel(self) -> grpc.Channel:
        if self._forked:
            raise errors.Forked(
                "this process was forked from one that was connected to Hone, and gRPC does not survive a fork; start "
                "processes with multiprocessing's method spawn, or make a new hone.Client before the fork is needed"
            )
        with self._lock:
            if self._closed:
                raise errors.Failed("this client is closed; make a new one with hone.Client or hone.connect")
            if self._channel is None:
                if self.private is not None:
                    self._address = self.private.attach()
                self._channel = self._open()
            return self._channel

    def _open(self) -> grpc.Channel:
        settings = self.settings
        token = settings.token
        if token and settings.token_file:
            raise errors.InvalidArgument("give a token or a token file, not both")
        if settings.token_file:
            path = Path(settings.token_file).expanduser()
            token = _read(path)
            if path.stat().st_mode & 0o007:
                raise errors.PermissionDenied(f"other users can read the token in {path}; run: chmod 600 {path}")
        if token.strip():
            self._metadata = (("authorization", f"Bearer {token.strip()}"),)
        options = list(_OPTIONS)
        addresses = [one.strip() for one in self._address.split(",")]
        local = all(one.startswith(_LOCAL) for one in addresses)
        if local:
            options.append(("grpc.enable_http_proxy", 0))
        target, server_name = addresses[0], settings.server_name
        if len(addresses) > 1:
            target = _target(addresses)
            hosts = {one.rpartition(":")[0] for one in addresses}
            if settings.ca and not server_name and len(hosts) > 1 and not target.startswith("unix:"):
                raise errors.InvalidArgument(
                    f"{self._address}: give server_name=, a name that the certificates of all these servers contain"
                )
            server_name = server_name or addresses[0].rpartition(":")[0].strip("[]")
        if len(addresses) > 1 or not local:
            options += [("grpc.service_config", _TO_THE_LEADER), ("grpc.dns_min_time_between_resolutions_ms", 1000)]
            options += _PINGS_TO_THE_LEADER
        if not settings.ca or self._address.startswith("unix:"):
            if not local and not settings.insecure:
                raise errors.PermissionDenied(
                    f"the connection to {self._address} would not be encrypted; give ca= with the server's authorities, "
                    "or insecure=True"
                )
            return grpc.insecure_channel(target, options)
        if server_name and (settings.server_name or len(addresses) > 1):
            options.append(("grpc.ssl_target_name_override", server_name))
        credentials = grpc.ssl_channel_credentials(
            None if settings.ca == "system" else _pem(settings.ca),
            _pem(settings.key) if settings.key else None,
            _pem(settings.certificate) if settings.certificate else None,
        )
        return grpc.secure_channel(target, credentials, options)

    def call(self, name: str, /, timeout: float = 20.0, **arguments: Any) -> Any:
        """Makes a call and returns its answer. Only an unavailable server is asked again."""
        method = _protocol.method(name)
        return self._retried(lambda: self._start(method, method.request(**arguments), timeout))

    def stream(self, name: str, /, timeout: float = 120.0, **arguments: Any) -> Iterator[Any]:
        """The messages of a call that answers with a stream."""
        method = _protocol.method(name)
        call = self._start(method, method.request(**arguments), timeout)
        try:
            yield from call
        except grpc.RpcError as error:
            raise self._converted(error) from None
        finally:
            call.cancel()

    def watch(self, job: str) -> Iterator[Any]:
        """The states of a job until it has ended, across restarts of the server."""
        patience = time.monotonic() + _RESTART_S
        while True:
            answered = False
            try:
                for state in self.stream("WatchJob", _WATCH_S, id=job):
                    answered = True
                    yield state
                return
            except errors.ServerUnavailable:
                if self.private is not None:
                    self.private.check()
                # The server sends the current state and then changes, so a quiet job reaches the deadline of the call.
                if answered:
                    patience = time.monotonic() + _RESTART_S
                if time.monotonic() > patience:
                    raise
                time.sleep(0.2)

    def start_worker(self, device: str) -> None:
        """Starts a worker of the private server for a device of this machine, and waits until it has registered."""
        if self.private is None:
            return
        with self._lock:
            self.channel()
            self.private.attach(f"attach worker {device}")
        key = _programs.device("native" if device == "cpu" else device)[1]
        deadline = time.monotonic() + _WORKER_S
        while not any(one.connected and one.target == key for one in self.call("ListWorkers").workers):
            self.private.check()
            if time.monotonic() > deadline:
                raise errors.Failed(f"the worker did not register; its log is in {self.private.folder}/run")
            time.sleep(0.02)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._channel is not None:
                self._channel.close()
                self._channel = None
            if self._config is not None:
                self._config.close()
                self._config = None
            if self.private is not None:
                self.private.close()

    def _start(self, method: _protocol.Method, request: Any, timeout: float) -> Any:
        channel = self.channel()
        kind = channel.unary_stream if method.streams else channel.unary_unary
        serialize, parse = method.request.SerializeToString, method.response.FromString
        try:
            return kind(method.path, serialize, parse)(request, timeout=timeout, metadata=self._metadata)
        except ValueError:  # another thread has closed the channel
            self.channel()
            raise

    def _retried(self, attempt: Any) -> Any:
        give_up = time.monotonic() + (
            _RESTART_S if self.private is not None else _TAKE_OVER_S if "," in self._address else 3
        )
        wait = 0.05
        while True:
            try:
                return attempt()
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > give_up:
                    raise self._converted(error) from None
                if self.private is not None:
                    self.private.check()
            time.sleep(wait * random.uniform(0.5, 1))
            # gRPC connects only while something waits for the channel.
            ready = grpc.channel_ready_future(self.channel())
            with contextlib.suppress(grpc.FutureTimeoutError):
                ready.result(timeout=wait)
            ready.cancel()
            wait = min(2 * wait, 1.0)

    def _converted(self, error: Any) -> errors.Error:
        code, details = error.code(), error.details() or ""
        kind = _ERRORS.get(code, errors.Failed)
        if kind is errors.ServerUnavailable:
            details = f"the server at {self._address} does not answer ({details}); check that it runs, or try again"
        return kind(details or str(code))

    def _after_fork(self) -> None:
        self._forked = self._channel is not None
        self._lock = threading.RLock()
        self._channel = None  # closing it here would wait for threads that do not exist
        if self.private is not None:
            self.private.close()


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _forget_connections() -> None:
    for connection in list(_connections):
        connection._after_fork()


os.register_at_fork(after_in_child=_forget_connections)


def _target(addresses: list[str]) -> str:
    """The addresses in the form of gRPC's resolver of lists, which looks up no names. Unknown hosts are left out."""
    if all(one.startswith("unix:") for one in addresses):
        return "unix:" + ",".join(one.removeprefix("unix:") for one in addresses)
    found: list[str] = []
    problem = ""
    for one in addresses:
        host, _, port = one.rpartition(":")
        if one.startswith("unix:") or not host or not port.isdecimal():
            raise errors.InvalidArgument(f"{one!r} in a list of servers is not host:port")
        try:
            resolved = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        except OSError as error:
            problem = f"unknown host {host}: {error.strerror}"
            continue
        for family, *_, address in resolved:
            # A list has only one kind, so an IPv4 address gets the form of IPv6.
            mapped = "::ffff:" if family == socket.AF_INET else ""
            found.append(f"[{mapped}{address[0]}]:{port}")
    if not found:
        raise errors.ServerUnavailable(problem)
    return "ipv6:" + ",".join(found)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise errors.InvalidArgument(f"cannot read {path}: {error.strerror}") from None


def _pem(source: str) -> bytes:
    return (source if "-----BEGIN" in source else _read(Path(source).expanduser())).encode()
