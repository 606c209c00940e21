"""Every message that docs/troubleshooting.md quotes exists in the sources, so that a reader finds what was printed."""

import re

from pages import REPOSITORY

PAGE = REPOSITORY / "docs/troubleshooting.md"


def sources():
    """The sources without comments. Literals that C++ joins are joined."""
    text = ""
    for folder in ("client", "common", "server", "worker"):
        for path in sorted((REPOSITORY / folder).rglob("*")):
            if path.suffix in (".c", ".cc", ".h"):
                source = re.sub(r"(?m)^\s*//.*$", "", path.read_text())
                text += re.sub(r'"\s*"', "", source).replace('\\"', "'") + "\n"
    return text


def parts(message):
    """What a message consists of beside names and numbers."""
    return [part for part in re.split(r"\s*…\s*", message.replace('"', "'")) if part]


def test_quoted_messages_exist():
    known = sources()
    quoted = re.findall(r"(?m)^> (.+)$", PAGE.read_text())
    assert len(quoted) > 25
    assert [message for message in quoted if not all(part in known for part in parts(message))] == []


def test_a_message_that_is_gone_is_found():
    assert parts("it is …, expected …") == ["it is", ", expected"]
    known = sources()
    assert "cannot reach the server at" in known and "no such message exists here" not in known
