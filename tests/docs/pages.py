"""Reads pages: their code blocks, with the comments that say how a test runs them, and the commands in them.

A comment on the line above a block says what is special about it:

    <!-- not run: it needs a GPU -->                       the reason why the test does not run the block
    <!-- exit code: 3 -->                                  the exit code of the block, if it is not 0
    <!-- background until: serving on -->                  the last command keeps running; the text says that it is ready
    <!-- file: main.c -->                                  the block is the content of this file, which the page needs
"""

import dataclasses
import re
import shlex
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

# Blocks in these languages are not commands. Blocks without a language, and in others, are commands of a shell: the
# names that other tests look for (server, opencl) are languages, too.
NO_COMMANDS = {"text", "workload", "trace", "c", "cpp", "cmake", "toml", "yaml", "json", "html"}

# Between backquotes like a command: the first line of a file format.
NO_MENTIONS = {"hone kernels 1"}

MARKS = re.compile(r"<!-- (?:(not run): (.+)|(exit code): (\d+)|(background until): (.+)|(file): (\S+)) -->$")


@dataclasses.dataclass
class Block:
    page: str
    line: int  # of the first line inside
    language: str
    text: str
    not_run: str = ""
    exit_code: int = 0
    ready: str = ""  # what the last command prints when it is ready, and keeps running
    file: str = ""

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_doctest(self):
        return self.language == "python" and ">>> " in self.text

    @property
    def is_commands(self):
        return not self.file and self.language not in NO_COMMANDS and not self.is_doctest

    def commands(self):
        """The text that a shell runs. A console shows commands after `$ ` and what they print."""
        if self.language != "console":
            return self.text
        return "".join(line[2:] + "\n" for line in self.text.splitlines() if line.startswith("$ "))


def pages():
    """Every page that users read, from the repository's folder."""
    found = ["README.md", "CONTRIBUTING.md", "deploy/README.md", "deploy/board.md", "client/python/README.md",
             "client/lookup/README.md", "server/service/metrics.md"]
    return found + sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs").rglob("*.md"))


def blocks(page, text=None):
    """The code blocks of a page. ValueError: a fence or a comment is not understood."""
    lines = ((REPOSITORY / page).read_text() if text is None else text).splitlines()
    found, block, above = [], None, ""
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            if block is None:
                block = Block(page, number + 1, line[3:].strip(), "")
                if above.startswith("<!--"):
                    mark(block, above)
            else:
                found.append(block)
                block = None
        elif block is not None:
            block.text += line + "\n"
        elif line.lstrip().startswith("```"):
            raise ValueError(f"{page}:{number}: a block must not be indented, so that the test finds it")
        above = line
    if block is not None:
        raise ValueError(f"{block.place}: the block has no end")
    return found


def mark(block, comment):
    found = MARKS.fullmatch(comment.strip())
    if found is None:
        raise ValueError(f"{block.page}:{block.line - 2}: tests/docs/pages.py does not know the comment {comment}")
    words = [word for word in found.groups() if word is not None]
    if words[0] == "not run":
        block.not_run = words[1]
    elif words[0] == "exit code":
        block.exit_code = int(words[1])
    elif words[0] == "file":
        block.file = words[1]
    else:
        block.ready = words[1]


def simple_commands(text):
    """The words of each simple command of a shell text: pipes, lists and substitutions are taken apart."""
    text = re.sub(r"<<'?(\w+)'?.*?\n\1\n", "\n", text, flags=re.S).replace("\\\n", " ")
    text = re.sub(r"(?m)(^|\s)# .*$", "", text)  # comments
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    words = []
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;()$\n"):
            if words:
                yield words
            words = []
        elif words or not (re.match(r"\w+=", word) or word in ("exec", "sudo", "time", "if", "then", "do", "!")):
            words.append(word)


def mentions(page):
    """The commands that the text of a page names between backquotes: `hone tune OP --trials 9`."""
    text = re.sub(r"^```.*?^```", "", (REPOSITORY / page).read_text(), flags=re.S | re.M)
    for found in re.findall(r"`(hone [^`]+)`", text):
        if found not in NO_MENTIONS:
            yield found.replace("\\|", "OR").split()
