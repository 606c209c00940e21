"""A private server of its own for the tests, with simulated latencies (tests/fault/README.md)."""

import fcntl
import time
from pathlib import Path

import pytest

import hone

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Folders of the user; the server must have stopped at the end."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CONFIG", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        for name in ("HONE_SERVER", "HONE_CONFIG", "HONE_CA", "HONE_TOKEN_FILE"):
            patch.delenv(name, raising=False)
        yield folder
        hone.client().close()
        deadline = time.monotonic() + 20
        while server_runs(folder) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not server_runs(folder), "the private server still runs"


@pytest.fixture(scope="session")
def client(home):
    return hone.connect(local=True)


def server_runs(folder):
    """Whether a keeper holds the lock of the user's data."""
    path = folder / "data" / "hone" / "private.lock"
    if not path.exists():
        return False
    with open(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
