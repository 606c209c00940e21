"""Every command of every page works: it runs in a session, or at least its options exist. See CONTRIBUTING.md.

The programs are those of the build with simulated latencies (tests/fault/README.md): a page must work on a busy machine.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

import pages
import session

PROGRAMS = Path(os.environ["HONE_PROGRAMS"]).resolve()
PAGES = pages.pages()
# The most blocks of commands that may not be run, of all.
MOST_NOT_RUN = 0.3
LIMIT_S = 200


def commands_of(page):
    return [block for block in pages.blocks(page) if block.is_commands]


def selected():
    """Pages with something to run. DOCS_PART=1/3 selects every third of them, so that ctest can run parts at a time."""
    part, count = map(int, os.environ.get("DOCS_PART", "1/1").split("/"))
    runnable = [page for page in PAGES if any(not block.not_run and (block.is_commands or block.is_doctest) for block in pages.blocks(page))]
    return runnable[part - 1::count]


@pytest.mark.parametrize("page", selected())
def test_the_commands_run(page):
    blocks = pages.blocks(page)
    with session.Session(PROGRAMS) as one:
        code, output = one.run_blocks(blocks, LIMIT_S)
        places = re.findall(r"^@ (\S+)$", output, flags=re.M)
        assert code == 0, f"{code} at {places[-1] if places else page}\n{output}"
        if any(block.is_doctest and not block.not_run for block in blocks):
            program = ("import doctest, sys; found = doctest.testfile(sys.argv[1], module_relative=False); "
                       "sys.exit(found.failed > 0 or found.attempted == 0)")
            code, output = one.run(["/usr/bin/python3", "-c", program, str(pages.REPOSITORY / page)], LIMIT_S)
            assert code == 0, f"{page}\n{output}"


def test_few_blocks_are_not_run(capsys):
    every = [block for page in PAGES for block in commands_of(page)]
    left_out = [block for block in every if block.not_run]
    with capsys.disabled():
        print(f"\n{len(left_out)} of {len(every)} blocks of commands are not run:")
        for block in left_out:
            print(f"  {block.place}: {block.not_run}")
    assert len(every) > 60
    assert len(left_out) <= MOST_NOT_RUN * len(every)


class Programs:
    """What the programs of the build understand."""

    def __init__(self, folder):
        subprocess.run([PROGRAMS / "hone", "help", "--man", folder], check=True)
        # By the words of the command: ("records", "query").
        self.options = {}
        for path in folder.glob("*.1"):
            self.options[path.stem] = self.options_of(path.read_text().replace("\\-", "-"))
        for name, *words in (("hone-server",), ("hone-server", "init"), ("hone-server", "restore"), ("hone-server", "merge"), ("hone-server", "revoke"), ("hone-worker",)):
            done = subprocess.run([PROGRAMS / name, *words, "--help"], capture_output=True, text=True, check=True)
            self.options["-".join([name, *words])] = self.options_of(done.stdout)

    @staticmethod
    def options_of(text):
        return {"-h", "--help", "-V", "--version", *re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", text, flags=re.I)}

    def problem(self, words):
        """What is wrong with a command, or None."""
        program = words[0].rsplit("/", 1)[-1]
        if words[0].startswith(("deploy/", "tests/", "./deploy/", "./tests/")) and program.endswith(".sh"):
            path = pages.REPOSITORY / words[0]
            if not path.exists():
                return f"there is no {words[0]}"
            known = self.options_of(path.read_text())
        elif program in self.options:
            name = program
            for word in words[1:]:
                if f"{name}-{word}" in self.options:
                    name += f"-{word}"
            if name == "hone" and re.fullmatch(r"[a-z][a-z-]*", "".join(words[1:2])):
                return f"there is no command '{words[1]}'"
            # The options of a command may come before it.
            known = self.options[name] | self.options[program]
        else:
            return None
        for word in words[1:]:
            option = re.match(r"--?[a-z][a-z0-9-]*", word)
            if option and option.group() not in known:
                return f"there is no option {option.group()}"
        return None


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("man"))


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_exist(page, programs):
    """Also those of blocks that are not run, and of the text."""
    problems = []
    for block in commands_of(page):
        if block.language == "python":
            continue
        for words in pages.simple_commands(block.commands()):
            problems.append((block.place, words, programs.problem(words)))
    for words in pages.mentions(page):
        problems.append((page, words, programs.problem(words)))
    assert [f"{place}: {' '.join(words)}: {problem}" for place, words, problem in problems if problem] == []


def test_wrong_commands_are_found(programs):
    for words in ("hone tune matmul m=4 --trials 4", "hone --server a:1 records query --csv", "hone-server init team --host a",
                  "hone tune OP key=value… OR FILE.hone", "deploy/build-wheel.sh -o dist/"):
        assert programs.problem(words.split()) is None
    for words in ("hone tune --trails 4", "hone tuen matmul", "hone records query --sign k", "deploy/nope.sh",
                  "hone-server --colour red", "deploy/build-wheel.sh --nope"):
        assert programs.problem(words.split()) is not None, words


def test_replacements_are_needed():
    everything = "".join(block.commands() for page in PAGES for block in commands_of(page) if not block.not_run)
    assert [pattern for pattern, _, _ in session.REPLACED if not re.search(pattern, everything)] == []
    assert [name for name in session.FILES if name not in everything] == []
    assert [page for page in session.PREPARED if page not in PAGES] == []


def test_blocks_are_read():
    text = ("```\na\n```\n<!-- not run: because -->\n```sh\nb\n```\n<!-- exit code: 3 -->\n```console\n$ c\nd\n```\n"
            "<!-- file: x.py -->\n```python\ne\n```\n<!-- background until: ready now -->\n```server\nf\n```\n```text\ng\n```\n")
    found = pages.blocks("p.md", text)
    assert [block.commands() for block in found] == ["a\n", "b\n", "c\n", "e\n", "f\n", "g\n"]
    assert [block.is_commands for block in found] == [True, True, True, False, True, False]
    assert [found[1].not_run, found[2].exit_code, found[3].file, found[4].ready] == ["because", 3, "x.py", "ready now"]
    for wrong in ("<!-- not ran: x -->\n```\na\n```\n", "```\na\n", "  ```\n  a\n  ```\n"):
        with pytest.raises(ValueError):
            pages.blocks("p.md", wrong)


def test_a_script_stops_at_the_first_failure():
    def result(text):
        with session.Session(PROGRAMS) as one:
            return one.run_blocks(pages.blocks("p.md", text), 30)

    code, output = result("```\nfalse\n```\n```\necho never\n```\n")
    assert code == 1 and "never" not in output and "@ p.md:2" in output
    code, output = result("<!-- exit code: 3 -->\n```\nexit 3\n```\n```\necho then\n```\n")
    assert code == 0 and "then" in output
    assert result("<!-- exit code: 3 -->\n```\ntrue\n```\n")[0] == 1
    assert result("```\nfalse | true\n```\n")[0] == 1
    code, output = result("<!-- background until: up -->\n```\nX=up\nsh -c 'echo up; sleep 60'\n```\n```\necho $X again\n```\n")
    assert code == 0 and "up again" in output
    assert result("<!-- background until: up -->\n```\nfalse\n```\n")[0] == 1


def test_simple_commands_are_taken_apart():
    text = 'A=1 hone x | jq . && exec hone-worker \\\n  --a b &\ntoken=$(openssl rand 3)  # hone no\necho "$(printf %s x)" >> f\n'
    found = [words[0] for words in pages.simple_commands(text)]
    assert "hone" in found and "hone-worker" in found and "jq" in found and "openssl" in found
    assert ["hone-worker", "--a", "b"] in list(pages.simple_commands(text))
