"""The programs of Hone on this machine, and what they answer as JSON."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

from . import errors

# The exceptions for the exit codes of `hone`.
_EXIT_CODES: dict[int, type[errors.Error]] = {
    2: errors.InvalidArgument,
    3: errors.NothingKnown,
    4: errors.ServerUnavailable,
}


def folder() -> Path:
    """The folder of the programs: $HONE_PROGRAMS, that of the wheel, or that of `hone` on the PATH."""
    named = os.environ.get("HONE_PROGRAMS")
    packaged = Path(__file__).parent / "native" / "bin"
    found = shutil.which("hone")
    if named:
        chosen = Path(named)
    elif packaged.is_dir():
        chosen = packaged
    elif found:
        chosen = Path(found).resolve().parent
    else:
        raise errors.Failed(
            "the programs of Hone were not found; install the wheel, add the folder of `hone` to PATH, "
            "or set HONE_PROGRAMS to it"
        )
    if not os.access(chosen / "hone", os.X_OK):
        raise errors.Failed(
            f"{chosen} has no program hone; set HONE_PROGRAMS to the folder with all of Hone's programs"
        )
    return chosen


def file(name: str) -> Path:
    """A file that is installed beside the folder of the programs."""
    path = folder().parent / name
    if not path.exists():
        raise errors.Failed(f"{path} is missing; build the target python_package, or install the wheel")
    return path


def call(words: Sequence[str], text: str | None = None) -> dict[str, Any]:
    """Runs `hone WORDS --json` with `text` as its standard input, and returns its answer."""
    command = [str(folder() / "hone"), *words, "--json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip() or f"exit code {done.returncode}"
        raise errors.Failed(f"hone {words[0]} printed no JSON: {last}") from None
    if done.returncode != 0:
        kind = _EXIT_CODES.get(done.returncode, errors.Failed)
        raise kind(answer.get("error", f"hone {words[0]}: exit code {done.returncode}"))
    return dict(answer)


@functools.lru_cache(maxsize=None)
def _devices(programs: Path) -> dict[str, str]:
    command = [str(programs / "hone-worker"), "--list-devices"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (line.split() for line in done.stdout.splitlines())
    devices = {words[0]: words[1] for words in lines if len(words) > 2 and words[0] != "no"}
    if "cpu" not in devices:
        raise errors.Failed(f"hone-worker --list-devices failed: {done.stderr.strip()}")
    return devices


def device(target: str) -> tuple[str, str]:
    """The name of the device that a target names, and its key: ("cpu", …) for "native" and "" .

    The name is "" for the key of a target, which may be on another machine."""
    devices = _devices(folder())
    name = {"": "cpu", "native": "cpu", "opencl": "opencl:0", "cuda": "cuda:0"}.get(target, target)
    if name in devices and (name != "cpu" or target != "cpu"):
        return name, devices[name]
    for here, key in devices.items():
        if key == target:
            return here, key
    if "-" in target:
        return "", target
    known = ", ".join(["native", *(one for one in devices if one != "cpu")])
    raise errors.InvalidArgument(
        f"the target {target!r} is unknown; this machine has {known}; otherwise give the key of a target"
    )


def main() -> None:
    """The commands hone, hone-server and hone-worker of the wheel."""
    name = Path(sys.argv[0]).name
    program = str(folder() / name)
    os.execv(program, [program, *sys.argv[1:]])
