"""Collects the pages of the site in a folder, and the configuration of mkdocs: make.py PROGRAMS FOLDER SITE

The folder has the layout of the repository, so links between pages work unchanged. It gets README.md, docs/, every page and
file that these link to, and the reference, which reference.py writes from what the programs print.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

import yaml

import reference

REPOSITORY = Path(__file__).resolve().parents[2]
# The languages that mkdocs colours. Other words after ``` name blocks of commands for tests.
LANGUAGES = {"text", "sh", "console", "python", "c", "cpp", "cmake", "toml", "yaml", "json", "html"}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#:\s]*)((?:#[^)\s]*)?)\)")
IMAGE = re.compile(r"(?:!\[[^\]]*\]\(|src(?:set)?=\")([^)\":\s]+)")


def without_code(text):
    """The text with its blocks of code blanked, so that nothing in them looks like a link."""
    return re.sub(r"^```.*?^```", lambda block: re.sub(r"[^\n]", " ", block.group()), text, flags=re.S | re.M)


def page_of(path, text):
    """A page as mkdocs reads it. A link to a folder leads to its README; if there is none, only its text stays."""
    folder = posixpath.dirname(path)

    def link(found):
        words, target, part = found.groups()
        place = posixpath.normpath(posixpath.join(folder, target))
        if target and (REPOSITORY / place).is_dir():
            if not (REPOSITORY / place / "README.md").exists():
                return words
            target = posixpath.join(target, "README.md")
        return f"[{words}]({target}{part})"

    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            language = line[3:].strip()
            if not inside and language not in LANGUAGES:
                line = "```text" if language in ("workload", "trace") else "```sh"
            inside = not inside
        elif not inside:
            line = LINK.sub(link, line)
            if line.startswith("|"):  # a bar in code does not end a cell here, and needs no backslash
                line = re.sub(r"`[^`]*`", lambda span: span.group().replace("\\|", "|"), line)
        lines.append(line)
    # A list may follow a line of text directly; this Markdown needs an empty line.
    spaced = []
    inside = False
    for line in lines:
        inside ^= line.startswith("```")
        is_item = re.match(r"(?:[-*]|\d+\.) ", line) is not None
        if is_item and not inside and spaced and spaced[-1] and not re.match(r"(?:[-*]|\d+\.) |  ", spaced[-1]):
            spaced.append("")
        spaced.append(line)
    return "\n".join(spaced) + "\n"


def links_of(path, text):
    """The files of the repository that a page shows or links to."""
    plain = without_code(text)
    found = [link.group(2) for link in LINK.finditer(plain)] + IMAGE.findall(plain)
    return [posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) for target in found if target]


def collect(folder, waiting):
    """Copies pages and, again and again, what they link to. Returns the paths of the pages."""
    done = set()
    while waiting:
        path = waiting.pop()
        source, target = REPOSITORY / path, folder / path
        if path in done or path.startswith("..") or not source.is_file():
            continue  # mkdocs reports links that lead nowhere
        done.add(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not path.endswith(".md"):
            shutil.copyfile(source, target)
            continue
        text = page_of(path, source.read_text())
        target.write_text(text)
        waiting += links_of(path, text)
    return {path for path in done if path.endswith(".md")}


def paths_in(nav):
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(value, list):
            yield from paths_in(value)
        else:
            yield value


def main():
    programs, folder, site = (Path(argument).resolve() for argument in sys.argv[1:])
    config = yaml.safe_load((REPOSITORY / "docs/site/site.yml").read_text())
    nav = config["nav"]
    named = set(paths_in(nav))
    written = reference.write(programs, folder / "reference")
    own = [str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs").rglob("*.md")]
    linked = [place for name in written for place in links_of(f"reference/{name}", (folder / "reference" / name).read_text())]
    found = collect(folder, [*named, *own, *linked])
    for section in nav:
        if "Reference" in section:
            section["Reference"] += [f"reference/{name}" for name in written if f"reference/{name}" not in named]
            own_pages = sorted(path.name for path in (folder / "reference").glob("command-*.md"))
            section["Reference"].append({"Commands": [f"reference/{name}" for name in own_pages]})
    more = sorted(path for path in found - named if path.startswith("docs/"))
    if more:
        nav.append({"More": more})
    # Other pages are reached by links only.
    (folder.parent / "mkdocs.yml").write_text(
        yaml.safe_dump({**config, "docs_dir": str(folder), "site_dir": str(site)}, sort_keys=False))


if __name__ == "__main__":
    main()
