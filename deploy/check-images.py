#!/usr/bin/env python3
"""Runs the instructions of docker/Dockerfile without Docker, in roots that debootstrap makes:

    sudo deploy/check-images.py --roots DIR [--arg NAME=VALUE]… [--cache DIR] [TARGET…]     server worker board

Each stage becomes a folder in DIR: FROM copies the root of a new Debian of the same release or that of an earlier stage, RUN
is run in it with chroot as the stage's user, and COPY copies. At the end, the program of each target is started with
--version as the image's user, the program of its health check with --help, and the server until its health check succeeds. Roots of stages that are complete are kept
until their instructions change; remove DIR to begin again. --cache: the folder of compiler results, for RUN --mount=type=cache.
The mirror and the keys are those of this machine's apt. What Docker itself does (layers, networks, the time of health checks)
is not tested.
Exit codes: 1 an instruction failed, 2 usage. tests/deploy/images_test.py uses the parser to check the file.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DOCKERFILE = REPOSITORY / "docker/Dockerfile"
KNOWN = {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


class Failure(Exception):
    """An instruction that failed, or that this script does not know."""


@dataclass
class Instruction:
    line: int
    name: str
    text: str

    def words(self):
        """Its arguments: a JSON list, or words as a shell reads them."""
        return json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)

    def flags(self):
        """The --name=value before its arguments, and the rest of the text."""
        flags, text = [], self.text
        while found := re.match(r"--([a-z-]+)=(\S+)\s+", text):
            flags.append((found[1], found[2]))
            text = text[found.end():]
        return flags, text

    def command(self):
        """The words of a HEALTHCHECK's command."""
        _, text = self.flags()
        return Instruction(self.line, "CMD", text.removeprefix("CMD").strip()).words()


@dataclass
class Stage:
    name: str
    base: str
    instructions: list = field(default_factory=list)

    def last(self, name):
        found = [one for one in self.instructions if one.name == name]
        return found[-1] if found else None


def parse(text):
    """The ARGs before the first stage as a dictionary, and the stages in their order."""
    arguments, stages, pending, start = {}, [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (line.strip() or pending):
            continue
        start = start if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        name, _, rest = pending.partition(" ")
        pending = ""
        if name not in KNOWN:
            raise Failure(f"Dockerfile:{start}: unknown instruction {name}")
        one = Instruction(start, name, rest.strip())
        if name == "FROM":
            found = re.fullmatch(r"(\S+)(?: AS ([a-z]+))?", one.text)
            if not found:
                raise Failure(f"Dockerfile:{start}: FROM has another form than FROM IMAGE AS NAME")
            stages.append(Stage(found[2] or str(len(stages)), found[1]))
        elif not stages:
            if name != "ARG":
                raise Failure(f"Dockerfile:{start}: {name} before FROM")
            key, _, value = one.text.partition("=")
            arguments[key] = value
        else:
            stages[-1].instructions.append(one)
    return arguments, stages


def expand(text, variables):
    return re.sub(r"\$\{([A-Z_]+)\}", lambda found: variables[found[1]], text)


def tracked_files():
    """The files of the context: what git tracks or would track."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=REPOSITORY, check=True, capture_output=True)
    return [name for name in listed.stdout.decode().split("\0") if name and (REPOSITORY / name).exists()]


class Roots:
    def __init__(self, folder, arguments, stages, given, cache):
        self.folder, self.arguments, self.cache = folder, arguments, cache
        self.stages = {stage.name: stage for stage in stages}
        self.given = given

    def run(self, root, words, user="root", directory="/", variables=None, mounts=(), network=True):
        """Runs a command in the root, in its own mount namespace. Without `network`, the command has no network."""
        script = 'root=$1; shift; mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; '
        for target, source in mounts:
            script += f'mkdir -p "$root{target}"; mount --bind {shlex.quote(str(source))} "$root{target}"; '
        account = ["--userspec", user] if user != "root" else []
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
        environment |= variables or {}
        inside = ["chroot", *account, str(root), "env", "-i", "-C", directory, *(f"{k}={v}" for k, v in environment.items()), *words]
        spaces = ["--mount"] if network else ["--mount", "--net"]
        return subprocess.run(["unshare", *spaces, "bash", "-euc", script + 'exec "$@"', "check-images", str(root), *inside]).returncode

    def debian(self, image):
        """The root of a new Debian of the release of the image, debian:12.12-slim."""
        release = re.fullmatch(r"debian:(\d+)(?:\.\d+)?-slim", image)
        suite = {"12": "bookworm", "13": "trixie"}.get(release[1] if release else "")
        if suite is None:
            raise Failure(f"{image} is not a Debian image that this script knows")
        root = self.folder / suite
        if not (root / "complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            sources = [*Path("/etc/apt").glob("sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
            debian = [source for source in sources if re.search(r"debian(-security)?\b", source.read_text()) and suite in source.read_text()]
            mirror = next((found[0] for source in debian if (found := re.search(r"https?://\S+/debian(?=/?\s)", source.read_text()))), None)
            print(f"=== debootstrap {suite}", flush=True)
            words = ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, str(root), *([mirror] if mirror else [])]
            if subprocess.run(words, stdout=subprocess.DEVNULL).returncode != 0:
                raise Failure(f"debootstrap {suite} failed; its log is in {root}/debootstrap")
            (root / "etc/apt/sources.list").unlink(missing_ok=True)
            for source in debian:  # with security updates
                target = root / "etc/apt" / ("sources.list" if source.name == "sources.list" else f"sources.list.d/{source.name}")
                shutil.copy(source, target)
            # As in Docker's image: packages start no services.
            policy = root / "usr/sbin/policy-rc.d"
            policy.write_text("#!/bin/sh\nexit 101\n")
            policy.chmod(0o755)
            (root / "complete").touch()
        return root

    def copy_tree(self, source, target):
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(target)], check=True)

    def make(self, name):
        """Makes the root of a stage, unless there is one that the same instructions made. Returns the root and a digest of them."""
        stage = self.stages[name]
        base = expand(stage.base, self.arguments | self.given)
        below, digest = self.make(base) if base in self.stages else (self.debian(base), base)
        text = digest + "".join(f"{one.name} {one.text}\n" for one in stage.instructions) + json.dumps(self.given)
        for one in stage.instructions:
            if one.name == "COPY":
                flags, words = one.flags()
                froms = dict(flags)
                if "from" in froms:
                    text += self.make(froms["from"])[1]
                else:
                    text += "".join(self.digest_of(file) for file in self.context(words.split()[:-1]))
        digest = hashlib.sha256(text.encode()).hexdigest()
        root, stamp = self.folder / f"stage-{name}", self.folder / f"stage-{name}.digest"
        variables = self.inherited(base)
        if root.exists() and stamp.exists() and stamp.read_text() == digest:
            return root, digest
        stamp.unlink(missing_ok=True)
        self.copy_tree(below, root)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        for one in stage.instructions:
            print(f"=== {name}, Dockerfile:{one.line}: {one.name} {one.text[:100]}", flush=True)
            self.execute(one, root, variables)
        stamp.write_text(digest)
        return root, digest

    def inherited(self, name):
        """The environment, the folder and the user that a stage has from the one below, with all ARGs."""
        variables = dict(self.arguments)
        if name in self.stages:
            variables |= self.inherited(expand(self.stages[name].base, self.arguments | self.given))
            for one in self.stages[name].instructions:
                if one.name in ("ENV", "WORKDIR", "USER"):
                    self.set_variable(one, variables)
        return variables

    @staticmethod
    def set_variable(one, variables):
        if one.name == "ENV":
            variables.update(word.split("=", 1) for word in shlex.split(one.text))
        else:
            variables["\0directory" if one.name == "WORKDIR" else "\0user"] = one.text

    @staticmethod
    def digest_of(name):
        return hashlib.sha256((REPOSITORY / name).read_bytes()).hexdigest()

    @staticmethod
    def context(sources):
        files = tracked_files()
        chosen = [name for name in files for source in sources if source == "." or name == source or name.startswith(source.rstrip("/") + "/")]
        if not chosen:
            raise Failure(f"COPY {' '.join(sources)}: there is no such file in the source tree")
        return chosen

    def execute(self, one, root, variables):
        flags, text = one.flags()
        if one.name == "ARG":
            key, _, value = text.partition("=")
            variables[key] = self.given.get(key, value)
        elif one.name in ("ENV", "WORKDIR", "USER"):
            self.set_variable(one, variables)
            if one.name == "WORKDIR":
                (root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
            if one.name == "USER":
                self.check_user(root, text)
        elif one.name == "COPY":
            self.copy(dict(flags), text.split(), root, variables)
        elif one.name == "RUN":
            mounts = []
            for flag, value in flags:
                options = dict(option.split("=") for option in value.split(","))
                if flag != "mount" or options.get("type") != "cache":
                    raise Failure(f"Dockerfile:{one.line}: RUN --{flag}={value} is not known here")
                mounts.append((options["target"], self.cache))
            plain = {key: value for key, value in variables.items() if not key.startswith("\0")}
            code = self.run(root, ["sh", "-c", expand(text, variables | plain)], variables.get("\0user", "root"),
                            variables.get("\0directory", "/"), plain, mounts)
            if code != 0:
                raise Failure(f"Dockerfile:{one.line}: RUN failed with exit code {code}")
        elif one.name in ("HEALTHCHECK", "ENTRYPOINT") and Path(self.program(one)).is_absolute():
            if not (root / self.program(one).lstrip("/")).exists():
                raise Failure(f"Dockerfile:{one.line}: the image has no {self.program(one)}")

    @staticmethod
    def program(one):
        return one.command()[0] if one.name == "HEALTHCHECK" else one.words()[0]

    def check_user(self, root, user):
        if not any(line.startswith(f"{user}:") for line in (root / "etc/passwd").read_text().splitlines()):
            raise Failure(f"USER {user}: the image has no such user")

    def copy(self, flags, words, root, variables):
        *sources, target = words
        directory = variables.get("\0directory", "/")
        place = root / os.path.join(directory, target).lstrip("/")
        if "from" not in flags:
            for name in self.context(sources):
                file = place / name if "." in sources else place
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPOSITORY / name, file, follow_symlinks=False)
            return
        origin = self.folder / f"stage-{flags['from']}"
        for source in sources:
            found = sorted(origin.glob(source.lstrip("/")))
            if not found:
                raise Failure(f"COPY --from={flags['from']} {source}: the stage has no such file")
            for one in found:
                if one.is_dir():
                    shutil.copytree(one, place, symlinks=True, dirs_exist_ok=True)
                else:
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(one, place)

    def try_target(self, name):
        """Makes the stage, and starts what its image would run."""
        root, _ = self.make(name)
        stage = self.stages[name]
        user = stage.last("USER").text
        for instruction, option in (("ENTRYPOINT", "--version"), ("HEALTHCHECK", "--help")):
            program = self.program(stage.last(instruction))
            if self.run(root, [program, option], user) != 0:
                raise Failure(f"{name}: {program} {option} failed as {user}")
        if name == "server":
            self.try_server(root, stage)
        size = subprocess.run(["du", "-sm", "--exclude=./proc", "--exclude=./dev", "."], cwd=root, capture_output=True, text=True).stdout.split()[0]
        print(f"=== {name}: complete, {size} MiB with Debian", flush=True)


    def try_server(self, root, stage):
        """Runs the server as the container would, with a new configuration, until its health check succeeds."""
        print("=== server: start and health check", flush=True)
        user = stage.last("USER").text
        setup = ("rm -rf /etc/hone /var/lib/hone/*; hone-server init /etc/hone --host localhost --store /var/lib/hone/hone.db >/dev/null; "
                 f"chgrp -R {user} /etc/hone; chmod -R u=rwX,g=rX,o= /etc/hone")
        start = shlex.join(stage.last("ENTRYPOINT").words() + stage.last("CMD").words())
        health = shlex.join(stage.last("HEALTHCHECK").command())
        script = (f"{start} & server=$!; for i in $(seq 60); do {health} && healthy=yes && break; sleep 1; done; "
                  'kill $server; wait $server; [ "$healthy" = yes ]')
        if self.run(root, ["bash", "-euc", setup]) != 0 or self.run(root, ["bash", "-c", script], user, network=False) != 0:
            raise Failure("server: the health check failed")
        self.run(root, ["bash", "-c", "rm -rf /etc/hone/* /var/lib/hone/*"])


def main():
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--roots", type=Path, required=True)
    command.add_argument("--arg", action="append", default=[])
    command.add_argument("--cache", type=Path, default=Path.home() / ".cache/ccache")
    command.add_argument("targets", nargs="*", default=["server", "worker", "board"])
    given = command.parse_args()
    for program in ("debootstrap", "unshare", "chroot"):
        if not shutil.which(program):
            command.error(f"{program} is missing; install its package")
    if os.geteuid() != 0:
        command.error("run it as root: it makes root file systems")
    try:
        arguments, stages = parse(DOCKERFILE.read_text())
        roots = Roots(given.roots.resolve(), arguments, stages, dict(one.split("=", 1) for one in given.arg), given.cache.resolve())
        roots.folder.mkdir(parents=True, exist_ok=True)
        roots.cache.mkdir(parents=True, exist_ok=True)
        for target in given.targets:
            if target not in roots.stages:
                raise Failure(f"the Dockerfile has no stage {target}")
            roots.try_target(target)
    except (Failure, subprocess.CalledProcessError) as failure:
        print(f"check-images: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
