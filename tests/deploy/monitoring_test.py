"""Dashboard and alerts, evaluated by a real Prometheus that scrapes a real server with a worker."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml

from conftest import MATMUL, REPOSITORY, Site, free_port, wait_until

FOLDER = REPOSITORY / "deploy/monitoring"
ALERTS = [rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
PANELS = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
README = (FOLDER / "README.md").read_text()
# Expressions of the dashboard that may have no data here, by the title of their panel.
MAY_BE_EMPTY = {"Calls with an error per second": "no call failed", "Alerts of Hone": "no alert fires"}

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="prometheus and promtool are missing; deploy/install-deps.sh installs them")


def expressions():
    """Title and expression of each query of the dashboard, with Grafana's variables replaced."""
    for panel in PANELS:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "20s").replace("$instance", ".*")


class Prometheus:
    def __init__(self, site, metrics_port):
        config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
        shutil.copy(FOLDER / "alerts.yml", site.folder)
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"localhost:{metrics_port}"]
        path = site.folder / "prometheus.yml"
        path.write_text(yaml.safe_dump(config))
        site.run("promtool", "check", "config", path)
        port = free_port()
        self.base = f"http://127.0.0.1:{port}/api/v1/"
        site.start("prometheus", "prometheus", f"--config.file={path}", f"--storage.tsdb.path={site.folder}/tsdb",
                   f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn")
        wait_until(lambda: self.answers(), "Prometheus answers")

    def answers(self):
        try:
            with urllib.request.urlopen(self.base.replace("api/v1/", "-/ready"), timeout=10) as answer:
                return answer.status == 200
        except OSError:  # it does not listen yet, or reads its files
            return False

    def get(self, path, **fields):
        try:
            with urllib.request.urlopen(f"{self.base}{path}?{urllib.parse.urlencode(fields)}", timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{fields}: {error.read().decode()}") from error

    def query(self, expression):
        """The samples of an expression now; fails if Prometheus does not accept it."""
        return self.get("query", query=expression)["result"]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("monitoring"))
    try:
        port = free_port()
        site.start_server("--metrics-listen", f"localhost:{port}")
        site.start_worker()
        made = Prometheus(site, port)
        wait_until(lambda: made.query('hone_workers{state="connected"} > 0'), "the worker is scraped")
        site.hone("tune", *MATMUL, "--trials", "8")
        backup = site.folder / "backup.db"
        site.hone("records", "backup", backup)
        site.hone("tune", "matmul", "m=64", "n=64", "k=64", "--trials", "5000", "--detach")  # runs until the end of the test
        wait_until(lambda: made.query('hone_jobs{state="running"} > 0'), "the job is scraped")
        yield made
    finally:
        site.close()


@needs_prometheus
def test_every_expression_of_the_dashboard_has_data(prometheus):
    count = 0
    for title, expression in expressions():
        count += 1
        if title in MAY_BE_EMPTY:
            prometheus.query(expression)
        else:
            wait_until(lambda: prometheus.query(expression), f"{title}: {expression} has data", seconds=15)
    assert count >= 20


@needs_prometheus
def test_every_alert_is_evaluated_without_an_error(prometheus):
    groups = wait_until(lambda: all(rule["health"] != "unknown" for group in prometheus.get("rules")["groups"]
                                    for rule in group["rules"]) and prometheus.get("rules")["groups"], "the rules are evaluated")
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(rules) == {rule["alert"] for rule in ALERTS}
    for name, rule in rules.items():
        assert rule["health"] == "ok", f"{name}: {rule.get('lastError')}"
        assert rule["state"] == "inactive", f"{name} fires although all is well"


@needs_prometheus
def test_every_metric_that_is_named_exists(prometheus):
    known = set(prometheus.get("label/__name__/values"))
    used = {name for text in [expression for _, expression in expressions()] + [rule["expr"] for rule in ALERTS]
            for name in re.findall(r"\b(?:hone|process)_[a-z_]+", text)}
    assert used - known == set() and len(used) >= 12
    # A label that no series has would make an alert silent.
    for selector in ('hone_workers{state="away"}', 'hone_workers{state="refused"}', 'hone_fleet_events_total{event="requeued"}',
                     'hone_fleet_events_total{event="granted"}', 'hone_jobs{state="running"}', 'up{job="hone"}',
                     'hone_trials_total{outcome="ok"}', 'hone_calls_total{code="0"}', 'hone_reads_waiting{lane="long"}'):
        assert prometheus.query(selector), selector


@needs_prometheus
def test_alerts_fire_when_they_should():
    path = REPOSITORY / "tests/deploy/alerts_test.yml"
    done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_and_says_what_to_do():
    tests = yaml.safe_load((REPOSITORY / "tests/deploy/alerts_test.yml").read_text())["tests"]
    fires = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    silent = {case["alertname"] for test in tests for case in test["alert_rule_test"] if not case.get("exp_alerts")}
    for rule in ALERTS:
        name = rule["alert"]
        assert name in fires and name in silent, f"{name} needs a case in which it fires, and one in which it does not"
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["runbook_url"] == f"deploy/monitoring/README.md#{name.lower()}"
        section = re.search(rf"^## {name}\n(.+?)(?=^## |\Z)", README, re.M | re.S)
        assert section and len(section.group(1)) > 100, f"README.md does not say what to do about {name}"
    assert f"{len(ALERTS)} alerts" in README


def test_the_commands_of_the_runbook_exist(site):
    commands = {tuple(found.split()) for found in re.findall(r"`hone ((?:[a-z]+ ?)+)", README)}
    assert ("workers", "resume") in commands
    for words in commands:
        site.run("hone", *words, "--help")


def test_panels_do_not_overlap():
    taken = set()
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
