"""The site: it builds, its links lead somewhere, it loads nothing from other hosts, and its reference is complete."""

import json
import os
import re
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pages
import pytest

PROGRAMS = Path(os.environ["HONE_PROGRAMS"]).resolve()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run([pages.REPOSITORY / "deploy/build-docs.sh", "-o", folder, "--programs", PROGRAMS], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def html_of(folder):
    return {path: path.read_text() for path in folder.rglob("*.html") if path.name != "404.html"}


def text_of(html):
    return unescape(re.sub(r"<[^>]+>", "", html))


def hone(*words):
    return subprocess.run([PROGRAMS / "hone", *words], capture_output=True, text=True).stdout


def test_every_page_is_in_the_site(site):
    missing = [page for page in pages.pages()
               if not (site / re.sub(r"(README|index)\.md$", "index.html", page)).exists() and not (site / page.replace(".md", ".html")).exists()]
    assert missing == []
    navigation = (site / "index.html").read_text()
    for path in (pages.REPOSITORY / "docs").rglob("*.md"):
        assert f'href="{path.relative_to(pages.REPOSITORY)}"'.replace(".md", ".html") in navigation, f"{path} is not in the navigation"


def test_links_lead_to_headings(site):
    texts = html_of(site)
    dead = []
    for path, html in texts.items():
        for target in re.findall(r'<a [^>]*href="([^"]*)"', html):
            target, _, part = unquote(unescape(target)).partition("#")
            if re.match(r"[a-z]+:", target) or target.startswith("/"):
                continue
            place = (path.parent / target).resolve() if target else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists() or (part and place in texts and f'id="{part}"' not in texts[place] and part != "__skip"):
                dead.append(f"{path.relative_to(site)}: {target}#{part}")
    assert dead == []


def test_nothing_is_loaded_from_other_hosts(site):
    found = []
    for path, html in html_of(site).items():
        found += [f"{path.name}: {url}" for url in re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="((?:https?:)?//[^"]+)"', html)]
        found += [f"{path.name}: {link}" for link in re.findall(r"<link\b[^>]*>", html)
                  if re.search(r'href="(?:https?:)?//', link) and not re.search(r'rel="(?:canonical|next|prev)"', link)]
    for path in site.rglob("*.css"):
        found += [f"{path.name}: {url}" for url in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^)\"';]+)", path.read_text())]
    assert found == []


def test_the_reference_has_everything_that_is_registered(site):
    def says(page, words):
        text = text_of((site / "reference" / page).read_text())
        assert [word for word in words if word not in text] == [], page

    operators = json.loads(hone("operators", "--json"))["operators"]
    assert len(operators) > 40
    says("operators.html", [one["name"] for one in operators] + [key["meaning"] for one in operators for key in one["keys"]])
    says("primitives.html", [one["usage"] for one in json.loads(hone("primitives", "--json"))["primitives"]])
    says("onnx.html", [one["name"] for one in json.loads(hone("operators", "--onnx", "--json"))["operators"]])
    says("exit-codes.html", ["nothing known", "130", "interrupted with Ctrl-C"])
    says("choices.html", ["portfolio", "evolutionary", "annealing", "xgboost", "gp", "treegru", "statement", "curve-fix", "rules", "templates", "gradient"])
    says("targets.html", ["native", "cuda", "opencl", "x86-avx512", "arm/cortex-a76", "nvidia/h100", "generic/opencl"])
    says("settings.html", ["--metrics-listen", "--tokens", "--build-slots", "--cluster"])
    says("connection.html", ["HONE_TOKEN_FILE"])
    commands = re.findall(r"(?m)^  ([a-z][a-z-]*)  ", hone("--help"))
    assert len(commands) > 25
    for name in commands:
        says(f"command-{name}.html", re.findall(r"(?m)^  (--[a-z-]+)", hone(name, "--help")))
    says("command-records.html", ["hone records query", "hone records compact", "--keep-best"])


def test_a_folder_with_other_files_is_left_alone(tmp_path, site):
    (tmp_path / "mine.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "mine.txt"):
        done = subprocess.run([pages.REPOSITORY / "deploy/build-docs.sh", "-o", out, "--programs", PROGRAMS], capture_output=True, text=True)
        assert done.returncode == 1 and "has other files" in done.stderr, done.stderr
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (site / ".hone-docs").exists(), "it may be written again"


def test_a_dead_link_is_an_error(tmp_path):
    """The settings that build-docs.sh uses, with a page that links to nothing."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text("[gone](gone.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\ndocs_dir: pages\n")
    done = subprocess.run(["/usr/bin/python3", "-m", "mkdocs", "build", "--strict", "--config-file", tmp_path / "mkdocs.yml"], capture_output=True, text=True)
    if "No module named" in done.stderr:
        pytest.skip("mkdocs is not installed")
    assert done.returncode == 1 and "gone.md" in done.stderr


def test_every_command_is_in_the_table():
    """docs/commands.md, which says in a line what each command is for; README.md names them all."""
    commands = re.findall(r"(?m)^  ([a-z][a-z-]*)  ", hone("--help"))
    assert len(commands) > 25
    for page in ("docs/commands.md", "README.md"):
        text = (pages.REPOSITORY / page).read_text()
        assert [name for name in commands if not re.search(rf"(?:`|hone |, `){name}\b", text)] == [], page
