"""deploy/kubernetes: the manifests fit together and their schemas, and their configuration and commands work."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from conftest import MATMUL, REPOSITORY, free_port, wait_until

FOLDER = REPOSITORY / "deploy/kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
FILES = KUSTOMIZATION["resources"]
OBJECTS = [thing for name in FILES for thing in yaml.safe_load_all((FOLDER / name).read_text())]
VERSIONS = {"Namespace": "v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Service": "v1", "PersistentVolumeClaim": "v1",
            "PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1", "CronJob": "batch/v1"}


def of_kind(kind):
    return [thing for thing in OBJECTS if thing["kind"] == kind]


def template(thing):
    spec = thing["spec"]["jobTemplate"]["spec"] if thing["kind"] == "CronJob" else thing["spec"]
    return spec["template"]


WORKLOADS = of_kind("StatefulSet") + of_kind("DaemonSet") + of_kind("CronJob")
PODS = [template(thing) for thing in WORKLOADS]
CONTAINERS = [container for pod in PODS for container in pod["spec"]["containers"]]


def program(container):
    """The program that a container runs: its command, or the entry point of its image."""
    return container.get("command", [container["image"]])[0]


def matches(selector, labels):
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(labels.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", []))


def selected(selector):
    return [pod for pod in PODS if matches(selector, pod["metadata"]["labels"])]


def test_all_files_are_used_and_all_kinds_are_there():
    assert {path.name for path in FOLDER.glob("*.yaml")} == set(FILES) | {"kustomization.yaml"}
    for thing in OBJECTS:
        assert VERSIONS[thing["kind"]] == thing["apiVersion"]
    assert {thing["kind"] for thing in OBJECTS} == set(VERSIONS)
    assert of_kind("Namespace")[0]["metadata"]["name"] == KUSTOMIZATION["namespace"]


def test_schemas():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hone/kubernetes-validate/bin/kubernetes-validate"
    validate = shutil.which("kubernetes-validate") or (cache if cache.exists() else None)
    if validate is None:
        pytest.skip("kubernetes-validate is missing; deploy/install-deps.sh installs it")
    for version in ("1.29", "1.33"):
        words = [validate, "--strict", "--no-warn", "-k", version, *(FOLDER / name for name in FILES)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("passed") == len(OBJECTS)


def test_selectors_match_pods():
    for thing in of_kind("StatefulSet") + of_kind("DaemonSet"):
        assert selected(thing["spec"]["selector"]) == [template(thing)]
    server = template(of_kind("StatefulSet")[0])
    for service in of_kind("Service"):
        assert selected({"matchLabels": service["spec"]["selector"]}) == [server]
    assert selected(of_kind("PodDisruptionBudget")[0]["spec"]["selector"]) == [server]
    covered = []
    for policy in of_kind("NetworkPolicy"):
        pods = selected(policy["spec"]["podSelector"])
        assert pods and set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
        covered += pods
    assert len(covered) == len(PODS), "each pod has one policy"
    affinity, = server["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert selected(affinity["podAffinityTerm"]["labelSelector"]) == [server]


def test_two_servers_share_a_database_and_can_be_replaced_one_by_one():
    servers, = of_kind("StatefulSet")
    assert servers["spec"]["replicas"] == 2
    service, = of_kind("Service")
    assert servers["spec"]["serviceName"] == service["metadata"]["name"]
    # Callers see all pods and choose the leader; a pod is ready if it listens, or an update would wait for the standby for ever.
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
    container, = template(servers)["spec"]["containers"]
    assert container["readinessProbe"]["tcpSocket"] == {"port": "grpc"}
    assert of_kind("PodDisruptionBudget")[0]["spec"]["minAvailable"] == 1
    # Server, backup and setup name the same database, whose port is open to both.
    store = re.search(r'^store = "(postgresql://hone@([\w-]+)/hone)"$', (FOLDER / "hone.toml").read_text(), re.M)
    backup, = template(of_kind("CronJob")[0])["spec"]["containers"]
    assert f"--store={store[1]}" in backup["args"]
    assert f"externalname {store[2]} " in (FOLDER / "kustomization.yaml").read_text()
    for one in (container, backup):
        variable, = one["env"]
        key = variable["valueFrom"]["secretKeyRef"]
        secret = next(made for made in KUSTOMIZATION["secretGenerator"] if made["name"] == key["name"])
        assert variable["name"] == "PGPASSWORD" and [file.split("=")[0] for file in secret["files"]] == [key["key"]]
    for name in ("hone-server", "hone-backup"):
        policy, = (one for one in of_kind("NetworkPolicy") if one["metadata"]["name"] == name)
        assert {"ports": [{"port": 5432}]} in policy["spec"]["egress"]


def test_ports_exist():
    server = of_kind("StatefulSet")[0]
    ports = {port["name"]: port["containerPort"] for port in template(server)["spec"]["containers"][0]["ports"]}
    for service in of_kind("Service"):
        for port in service["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    config = (FOLDER / "hone.toml").read_text()
    assert f'"0.0.0.0:{ports["grpc"]}"' in config and f'metrics-listen = "0.0.0.0:{ports["metrics"]}"' in config
    policy = next(one for one in of_kind("NetworkPolicy") if one["metadata"]["name"] == "hone-server")
    opened = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
    assert opened == ["grpc", "metrics"]
    annotations = template(server)["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(ports["metrics"])
    # Workers call the service by its name, at its port.
    service, = of_kind("Service")
    address = f"{service['metadata']['name']}.{KUSTOMIZATION['namespace']}.svc:{ports['grpc']}"
    worker, = template(of_kind("DaemonSet")[0])["spec"]["containers"]
    assert f"--server={address}" in worker["args"]
    assert f"--host {address.split(':')[0]}" in (FOLDER / "kustomization.yaml").read_text()


def test_volumes_exist_and_have_the_files_that_are_read():
    claims = {claim["metadata"]["name"] for claim in of_kind("PersistentVolumeClaim")}
    of_pods = {claim["metadata"]["name"]: claim for claim in of_kind("StatefulSet")[0]["spec"]["volumeClaimTemplates"]}
    generated = {kind: {one["name"]: [file.split("/")[-1] for file in one["files"]] for one in KUSTOMIZATION[kind]}
                 for kind in ("configMapGenerator", "secretGenerator")}
    for pod in PODS:
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        if pod is template(of_kind("StatefulSet")[0]):
            volumes |= of_pods
        for container in pod["spec"]["containers"]:
            mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
            assert len(mounts) == len(container["volumeMounts"]) == len(volumes)
            texts = container.get("args", []) + [(FOLDER / "hone.toml").read_text()] * (container["name"] == "server")
            for path in re.findall(r"/etc/[\w./-]+", "\n".join(texts)):
                volume = mounts[path.rsplit("/", 1)[0]]
                files = (generated["secretGenerator"][volume["secret"]["secretName"]] if "secret" in volume
                         else generated["configMapGenerator"][volume["configMap"]["name"]])
                assert path.rsplit("/", 1)[1] in files, path
        for volume in volumes.values():
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in claims
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] & 0o007 == 0, "Hone refuses secrets that everybody may read"
    for name in generated["configMapGenerator"].values():
        assert all((FOLDER / file).exists() for file in name)


def test_pods_have_few_rights():
    for pod in PODS:
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["runAsUser"] in (7070, 7071)
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["spec"]["containers"]:
            rights = container["securityContext"]
            assert rights == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert container["resources"]["limits"]["memory"]
    dockerfile = (REPOSITORY / "docker/Dockerfile").read_text()
    users = {pod["spec"]["containers"][0]["image"]: pod["spec"]["securityContext"]["runAsUser"] for pod in PODS}
    for image, user in users.items():
        assert f"--uid {user} " in dockerfile.split(f" AS {image.removeprefix('hone-')}\n")[1].split("\nFROM")[0]


def test_commands_have_existing_options(site):
    images = {image["name"] for image in KUSTOMIZATION["images"]}
    for container in CONTAINERS:
        assert container["image"] in images
        name = program(container)
        words = container.get("args", [])
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if container.get(probe, {}).get("exec", {}).get("command", [None])[0] == name:
                words = words + container[probe]["exec"]["command"][1:]
        text = site.run(REPOSITORY / "deploy/backup/hone-backup" if name == "hone-backup" else name, "--help")
        for word in words:
            assert re.search(rf"{word.partition('=')[0]}\b", text), f"{name} has no option {word}"
    worker, = template(of_kind("DaemonSet")[0])["spec"]["containers"]
    ready = next(word for word in worker["args"] if word.startswith("--ready-file=")).partition("=")[2]
    assert worker["startupProbe"]["exec"]["command"] == ["test", "-s", ready]
    assert worker["env"][0]["name"] in worker["args"][3]


def test_the_commands_of_the_setup_make_servers_that_workers_and_clients_reach(site, database):
    """Follows the comment of kustomization.yaml, and runs what the pods would run, on this machine, with one server and its successor."""
    text = (FOLDER / "kustomization.yaml").read_text()
    setup = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   ") and "kubectl" not in line]
    assert len(setup) == 4, setup
    site.run("bash", "-euc", "\n".join(setup), cwd=site.folder, env=site.environment | {"DATABASE_PASSWORD": "secret"})
    keys = site.folder / "fleet"
    assert (keys / "database-password").read_text() == "secret"
    store = database("postgres")
    metrics = free_port()

    def configure(name):
        """The configuration of a pod, and its address."""
        grpc, folder = free_port(), site.folder / name
        folder.mkdir()
        config = (FOLDER / "hone.toml").read_text()
        for old, new in (("/etc/hone-keys/", f"{keys}/"), ("/var/lib/hone/", f"{folder}/"), ("/run/hone/", f"{folder}/"), (":7070", f":{grpc}"),
                         (":9070", f":{metrics if name == 'first' else free_port()}"), ("postgresql://hone@hone-database/hone", store)):
            assert old in config
            config = config.replace(old, new)
        (folder / "hone.toml").write_text(config)
        return folder / "hone.toml", f"127.0.0.1:{grpc}"

    path, first = configure("first")
    standby_path, second = configure("second")
    health = ["hone-server", f"--config={path}", "--check-health"]
    standby_health = ["hone-server", f"--config={standby_path}", "--check-health"]
    assert "does not answer" in site.run(*health, code=1)
    ready = site.folder / "server.ready"
    site.start("first", "hone-server", f"--config={path}", "--ready-file", ready, ready=ready)
    assert "serves" in wait_until(lambda: leads(site, health), "the first server leads")
    site.start("second", "hone-server", f"--config={standby_path}")
    # Without the socket, over TLS: it trusts the authority of client-ca.
    tcp = site.folder / "tcp.toml"
    tcp.write_text(re.sub(r', "unix:[^"]*"', "", path.read_text()))
    assert "serves" in site.run("hone-server", f"--config={tcp}", "--check-health")
    required = site.folder / "required.toml"
    required.write_text(tcp.read_text().replace('"accept"', '"require"'))
    assert "listen on a Unix socket" in site.run("hone-server", f"--config={required}", "--check-health", code=1)

    # insecure is for the metrics alone.
    assert "token" in site.run("hone", "--server", first, "--ca", keys / "ca.pem", "jobs", "list", code=1)
    site.run("hone", "--server", first, "jobs", "list", code=4)

    both = f"{first},{second}"
    worker, = template(of_kind("DaemonSet")[0])["spec"]["containers"]
    words = [word.replace("$(NODE_NAME)", "rack-1.example").replace("/etc/hone-worker/", f"{keys}/") for word in worker["args"]]
    words = [re.sub(r"=/(var/lib|run)/", f"={site.folder}/", word) for word in words]
    words[0] = f"--server={both}"
    (site.folder / "hone-worker").mkdir()
    up = site.folder / "hone-worker/ready"
    site.start("worker", "hone-worker", *words, "--server-name=hone.hone.svc", ready=up)
    assert up.stat().st_size > 0, "the probe of the worker tests this"
    conf = keys / "admin.conf"
    conf.write_text(conf.read_text().replace("hone.hone.svc:7070", both) + 'server-name = "hone.hone.svc"\n')
    admin = ["hone", "--config", conf]
    assert "node-rack-1.example" in site.run(*admin, "workers", "list")
    site.run(*admin, "tune", *MATMUL, "--trials", "4")

    # An update replaces one pod after the other; the standby serves once the leader has ended.
    assert not leads(site, standby_health), "the second server stands by"
    site.stop("first")
    wait_until(lambda: leads(site, standby_health), "the second server leads")
    assert "matmul" in site.run(*admin, "best", *MATMUL)
    wait_until(lambda: "node-rack-1.example" in site.run(*admin, "workers", "list"), "the worker has found the second server")

    # The CronJob's command, with its options.
    (site.folder / "backups").mkdir()
    backup, = template(of_kind("CronJob")[0])["spec"]["containers"]
    words = [word.replace("postgresql://hone@hone-database/hone", store).replace("/var/backups/hone", f"{site.folder}/backups") for word in backup["args"]]
    site.run(REPOSITORY / "deploy/backup/hone-backup", *words)
    assert len(list((site.folder / "backups").glob("hone-*.dump"))) == 1
    site.stop("second")
    assert "does not answer" in wait_until(lambda: site.run(*standby_health, code=1), "the health check fails")


def leads(site, health):
    """What the health check says of a server that leads, or nothing."""
    done = subprocess.run(health, capture_output=True, text=True, env=site.environment, timeout=60)
    return done.stdout if done.returncode == 0 else ""
