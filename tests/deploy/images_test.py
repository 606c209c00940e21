"""docker/: the instructions name files, packages, users, options and ports that exist. deploy/check-images.py runs them."""

import importlib.util
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from conftest import REPOSITORY

DOCKER = REPOSITORY / "docker"


def load_parser():
    spec = importlib.util.spec_from_file_location("check_images", REPOSITORY / "deploy/check-images.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_images"] = module
    spec.loader.exec_module(module)
    return module


check_images = load_parser()
ARGUMENTS, STAGES = check_images.parse((DOCKER / "Dockerfile").read_text())
BY_NAME = {stage.name: stage for stage in STAGES}
TARGETS = [BY_NAME[name] for name in ("server", "worker", "board")]
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())


def help_of(site, program):
    return site.run(program.rsplit("/", 1)[-1], "--help")


def check_options(site, program, words):
    text = help_of(site, program)
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    for option in options:
        assert re.search(rf"^.*{option}\b", text, re.M), f"{program} has no option {option}"
    return options


def test_stages_are_based_on_a_pinned_debian_or_on_earlier_stages():
    assert re.fullmatch(r"debian:12\.\d+-slim", ARGUMENTS["DEBIAN"])
    for at, stage in enumerate(STAGES):
        assert stage.base == "${DEBIAN}" or stage.base in {earlier.name for earlier in STAGES[:at]}, stage.name


def test_what_is_copied_exists():
    earlier = set()
    for stage in STAGES:
        for one in stage.instructions:
            if one.name != "COPY":
                continue
            flags, text = one.flags()
            if "from" in dict(flags):
                assert dict(flags)["from"] in earlier, f"line {one.line}"
            else:
                assert check_images.Roots.context(text.split()[:-1])
        earlier.add(stage.name)
    # The packages that the images install are those that cpack makes.
    made = re.findall(r"set\(CPACK_DEBIAN_\w+_PACKAGE_NAME (\S+)\)", (REPOSITORY / "cmake/install.cmake").read_text())
    for name in re.findall(r"/packages/([a-z-]+)_\*\.deb", (DOCKER / "Dockerfile").read_text()):
        assert name in made


@pytest.mark.skipif(not shutil.which("apt-cache"), reason="this is not a Debian system: apt-cache is missing")
def test_every_package_exists():
    text = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
    packages = {word for line in re.findall(r"apt-get install ([^&]+)", text) for word in line.split() if word[0] not in "-/"}
    assert "postgresql-client" in packages
    listed = re.search(r"^packages=\(\n(.*?)^\)", (REPOSITORY / "deploy/install-deps.sh").read_text(), re.M | re.S)[1]
    packages |= set(listed.split())
    assert len(packages) > 20
    known = set(subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split())
    if len(known) < 10000:
        pytest.skip("apt has no lists of packages here (apt-get update)")
    assert packages <= known


@pytest.mark.parametrize("stage", TARGETS, ids=lambda stage: stage.name)
def test_images_run_as_another_user_than_root_and_are_healthy(site, stage):
    user = stage.last("USER").text
    made = " ".join(one.text for one in stage.instructions if one.name == "RUN")
    assert user != "root" and re.search(rf"useradd [^&]*--uid \d+ [^&]*\b{user}\b", made)
    entry = stage.last("ENTRYPOINT").words()
    options = check_options(site, entry[0], stage.last("CMD").words())
    assert "--config" in options
    health = stage.last("HEALTHCHECK").command()
    if health[0] == "hone-server":
        check_options(site, health[0], health[1:])
        ports = re.findall(r":(\d+)", stage.last("CMD").text)
        assert set(ports) <= set(stage.last("EXPOSE").text.split())
    else:
        ready = stage.last("CMD").words()[stage.last("CMD").words().index("--ready-file") + 1]
        assert health == ["test", "-s", ready]


def test_servers_and_workers_are_different_users():
    assert BY_NAME["server"].last("USER").text != BY_NAME["worker"].last("USER").text == BY_NAME["board"].last("USER").text


def test_the_parser_finds_mistakes():
    for text, message in (("FROM a AS b\nADD x y\n", "unknown instruction ADD"), ("RUN true\n", "RUN before FROM"),
                          ("FROM a b\n", "another form")):
        with pytest.raises(check_images.Failure, match=message):
            check_images.parse(text)
    _, (stage,) = check_images.parse('FROM a AS b\n# note\nRUN --mount=type=cache,target=/c one && \\\n    # inside\n    two\nCMD ["x", "--y"]\n')
    assert stage.last("RUN").flags() == ([("mount", "type=cache,target=/c")], "one && two")
    assert stage.last("CMD").words() == ["x", "--y"]
    with pytest.raises(check_images.Failure, match="no such file"):
        check_images.Roots.context(["no/such/file"])


def test_stages_inherit_environment_and_folder_but_no_arguments():
    roots = check_images.Roots(None, ARGUMENTS, STAGES, {}, None)
    below = roots.inherited("bundle")
    assert below["DEBIAN_FRONTEND"] == "noninteractive" and "/src" in below.values() and "PRESET" not in below
    assert roots.inherited("${DEBIAN}") == ARGUMENTS


def services():
    return COMPOSE["services"].items()


def test_services_use_images_files_and_volumes_that_exist():
    for name, service in services():
        image = service["image"]
        if "build" in service:
            assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).exists()
            assert image == "hone-" + service["build"]["target"] and service["build"]["target"] in BY_NAME
        else:
            assert image in ("hone-server", "hone-worker") or re.fullmatch(r"[a-z/]+:v?\d[\w.-]*", image), f"{name}: {image} is not pinned"
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./fleet/"):
                made = [one.split(":")[0] for one in COMPOSE["services"]["init"]["volumes"]]
                assert source in made, f"{name}: init does not make {source}"
            elif source.startswith("."):
                assert (DOCKER / source).exists(), f"{name}: there is no {source}"
            else:
                assert source in COMPOSE["volumes"], f"{name}: the volume {source} is not declared"
        for other in service.get("depends_on", {}):
            assert other in COMPOSE["services"]


def test_commands_of_services_have_existing_options(site):
    server, second, worker, backup = (COMPOSE["services"][name] for name in ("server-1", "server-2", "worker", "backup"))
    assert server["command"] == second["command"] and server["ports"] != second["ports"]
    assert server["volumes"] != second["volumes"], "each server has an audit log of its own"
    options = check_options(site, "hone-server", server["command"])
    assert {"--metrics-listen", "--store", "--listen"} <= set(options)
    listens = [word for word in server["command"] if word.startswith("--listen=")]
    assert any(word.endswith(":" + server["ports"][0].split(":")[1]) for word in listens)
    socket = BY_NAME["server"].last("HEALTHCHECK").command()
    assert f"--listen={socket[socket.index('--listen') + 1]}" in listens, "the health check of the image uses another socket"
    assert "command" not in worker
    text = site.run(REPOSITORY / "deploy/backup/hone-backup", "--help")
    assert all(word in text for word in backup["command"] if word.startswith("--"))
    # Prometheus scrapes the server's port, and knows the alerts and the job as the dashboard does.
    scrape = yaml.safe_load((DOCKER / "prometheus.yml").read_text())["scrape_configs"][0]
    port = next(word for word in server["command"] if "metrics" in word).rsplit(":", 1)[1]
    assert scrape["static_configs"][0]["targets"] == [f"server-1:{port}", f"server-2:{port}"] and scrape["job_name"] == "hone"


def test_init_makes_what_the_services_read(site):
    """The script of init, run here with other folders; the server accepts the configuration."""
    script = COMPOSE["services"]["init"]["command"][0].replace("$$", "$")
    targets = [volume.split(":")[1] for volume in COMPOSE["services"]["init"]["volumes"]]
    for target in sorted(targets, key=len, reverse=True):
        (site.folder / target.strip("/")).mkdir(parents=True)
        script = re.sub(rf"(?<![\w/]){target}\b(?!-)", str(site.folder / target.strip("/")), script)
    script = re.sub(r"^chown .*$", "", script, flags=re.M)
    site.run("bash", "-euc", script, env=site.environment | {"HONE_HOST": "localhost"})
    server = site.folder / "etc/hone"
    assert (server / "pgpass").read_text().startswith("postgres:5432:hone:hone:")
    assert (server / "pgpass").stat().st_mode & 0o077 == 0
    assert not (server / "ca-key.pem").exists() and (site.folder / "authority/ca-key.pem").exists()
    words = [word.replace("/etc/hone/", f"{server}/").replace("/var/lib/hone/", f"{site.folder}/") for word in
             COMPOSE["services"]["server-1"]["command"]]
    assert "in order" in site.run("hone-server", *words, "--check-config")
    # The name that both servers have.
    assert COMPOSE["services"]["server-1"]["networks"] == {"default": {"aliases": ["hone"]}}
    for path in (site.folder / "etc/hone-worker/worker.conf", server / "admin.conf"):
        assert "hone:7070" in path.read_text()
