"""Writes the reference of the site. Everything in it is what the programs print about what is registered in them."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

# What `hone tune` chooses by name. For a name that it does not know, it lists the known ones.
CHOICES = [
    ("Search strategies", "--strategy", "relu m=4 n=4", "Described in [server/tuner/search](../server/tuner/search/README.md)."),
    ("Cost models", "--cost-model", "relu m=4 n=4",
     "`hone models train --model` takes the same names. Described in [server/tuner/cost_model](../server/tuner/cost_model/README.md)."),
    ("Feature sets", "--feature-set", "relu m=4 n=4",
     "`hone features --set` takes the same names. Described in [server/tuner/feature](../server/tuner/feature/README.md)."),
    ("Design spaces", "--space", "relu m=4 n=4", "Described in [server/tuner/space](../server/tuner/space/README.md)."),
    ("Schedulers of networks", "--scheduler", str(REPOSITORY / "tests/client/network/onnx/testdata/mnist-8.onnx"),
     "They decide which task of a network gets the next trials. Described in [server/job/scheduler](../server/job/scheduler/README.md)."),
]


class Programs:
    """Runs the programs of a build as a user who has measured nothing."""

    def __init__(self, folder, home):
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "XDG_"))}
        self.environment.update(HOME=home, COLUMNS="92")
        for name in ("DATA_HOME", "CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR"):
            self.environment[f"XDG_{name}"] = os.path.join(home, name.lower())
            os.mkdir(self.environment[f"XDG_{name}"], mode=0o700)

    def run(self, program, *words, code=0):
        done = subprocess.run([self.folder / program, *words], env=self.environment, capture_output=True, text=True)
        if done.returncode != code:
            raise SystemExit(f"{program} {' '.join(words)}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *words, code=0):
        return json.loads(self.run("hone", *words, "--json", code=code))

    def names(self, *words):
        """The names that an error lists after an unknown one."""
        error = self.json(*words, code=2)["error"]
        found = re.search(r"(?:there are:?|give one of|[tT]he commands are|names are) ([^(;]*)", error)
        if found is None:
            raise SystemExit(f"hone {' '.join(words)} lists no names: {error}")
        return [name for name in re.split(r", (?:and )?", found.group(1).strip().rstrip(",")) if re.fullmatch(r"[\w/-]+", name)]


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def table(head, rows):
    rows = ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows]) + "\n"


def shape(tensor):
    constant = ", constant" if tensor["constant"] else ""
    return f"`{tensor['name']}[{', '.join(tensor['layout'])}]` of {tensor['dtype']}{constant}"


def operators(programs):
    text = ("# All operators\n\nThe keys of each operator with their defaults, its inputs and its outputs. A key without a default must be given. "
            "[Operators by kind](../docs/operators.md) is a shorter list.\n\n")
    listed = programs.json("operators")
    for one in listed["operators"]:
        text += f"## {one['name']}\n\n{cell(one['meaning'])}\n\n"
        keys = [(f"`{key['name']}`", "" if key["default"] is None else f"`{key['default']}`", key["meaning"]) for key in one["keys"]]
        text += table(["key", "default", "meaning"], keys) + "\n"
        text += f"Inputs: {', '.join(map(shape, one['inputs']))}. Outputs: {', '.join(map(shape, one['outputs']))}.\n\n"
        if one["note"]:
            text += cell(one["note"]) + "\n\n"
    return text


def onnx(programs):
    rows = [(f"`{one['name']}`", one["limits"]) for one in programs.json("operators", "--onnx")["operators"]]
    return "# Operators of ONNX models\n\nWhat a network in an ONNX file may contain.\n\n" + table(["operator", "limits"], rows)


def primitives(programs):
    rows = []
    for one in programs.json("primitives")["primitives"]:
        arguments = "; ".join(f"`{argument['name']}`: {argument['meaning']}" for argument in one["arguments"] if argument["meaning"])
        rows.append((f"`{one['usage']}`", one["meaning"], arguments))
    return ("# Primitives of schedules\n\n[The language of schedules](../docs/language.md) says how they are used.\n\n"
            + table(["form", "meaning", "arguments"], rows))


def choices(programs):
    text = "# Strategies, models and spaces\n\nThe names that the options of `hone tune` take.\n\n"
    for title, option, words, description in CHOICES:
        names = programs.names("tune", *words.split(), option, "unknown-name")
        text += f"## {title}\n\n`{option}` takes {', '.join(f'`{name}`' for name in names)}. {description}\n\n"
    text += "## Cost models and what they read\n\n"
    rows = [(f"`{kind['model']}`", f"`{kind['feature_set']}`" if kind["feature_set"] else "none", "yes" if kind["any_features"] else "no")
            for kind in programs.json("models", "list")["kinds"]]
    return text + table(["model", "feature set", "takes another one"], rows)


def targets(programs):
    names = programs.names("show", "relu", "m=4", "n=4", "--target", "unknown-name", "--draft")
    return ("# Targets\n\n`--target` takes one of these names, `cuda:N` or `opencl:N` for another device of this machine, or a key that other commands "
            "print, such as `hone workers list`. The presets describe devices that this machine need not have: "
            "`hone show OP … --target PRESET --draft --code` prints code for them.\n\n"
            + "\n".join(f"- `{name}`" for name in names) + "\n")


def exit_codes(programs):
    return "# Exit codes\n\n" + table(["code", "meaning"], re.findall(r"(?m)^ +(\d+)  ((?:.|\n {7})*)", programs.run("hone", "help", "exit-codes")))


def block(text):
    return f"```text\n{text.rstrip()}\n```\n\n"


def commands(programs):
    """The page of each command, by its name."""
    pages = {}
    for name in programs.names("unknown-name"):
        if name in ("connection", "exit-codes"):
            continue
        text = f"# hone {name}\n\n" + block(programs.run("hone", name, "--help"))
        with tempfile.TemporaryDirectory() as folder:
            programs.run("hone", "help", "--man", folder)
            below = sorted(path.stem.removeprefix(f"hone-{name}-") for path in Path(folder).glob(f"hone-{name}-*.1"))
        for word in below:
            # `hone-worker-config` is not below `hone-worker`.
            if f"hone {name} {word}" in text or re.search(rf"(?m)^  {re.escape(word)}\b", text):
                text += f"## hone {name} {word}\n\n" + block(programs.run("hone", name, word, "--help"))
        pages[name] = text
    return pages


def settings(programs):
    text = ("# Settings of the programs\n\nThe options of each program; those of server and worker may also be keys of their configuration files, "
            "which [Running Hone](../deploy/README.md) describes.\n\n")
    for words in (("hone-server",), ("hone-server", "init"), ("hone-server", "restore"), ("hone-server", "merge"), ("hone-server", "revoke"), ("hone-worker",)):
        text += f"## {' '.join(words)}\n\n" + block(programs.run(*words, "--help"))
    return text


def write(programs_folder, folder):
    """Writes the pages, and returns their names in the order of the navigation."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="hone-ref-") as home:
        programs = Programs(programs_folder, home)
        pages = {
            "settings.md": settings(programs),
            "connection.md": "# Connection\n\n" + block(programs.run("hone", "help", "connection")),
            "exit-codes.md": exit_codes(programs),
            "targets.md": targets(programs),
            "choices.md": choices(programs),
            "operators.md": operators(programs),
            "onnx.md": onnx(programs),
            "primitives.md": primitives(programs),
        }
        own = commands(programs)
    rows = [(f"[hone {name}](command-{name}.md)", text.split("```text\n", 1)[1].split("\n", 1)[0]) for name, text in own.items()]
    pages["index.md"] = ("# Reference\n\nThe programs print everything on these pages; `hone help` shows it in a terminal.\n\n"
                         + "\n".join(f"- [{text[2:text.index(chr(10))]}]({name})" for name, text in pages.items())
                         + "\n\n## Commands\n\n" + table(["command", "purpose"], rows))
    for name, text in {**pages, **{f"command-{name}.md": text for name, text in own.items()}}.items():
        (folder / name).write_text(text)
    return list(pages)
