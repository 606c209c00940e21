"""The cases: the files in the folder cases/, and cases drawn from a seed."""
import random
import re
from pathlib import Path

import onnx_text
import operators
import random_text

_FOLDER = Path("tests/oracle/cases")  # relative to the source root, the working directory
_SOURCES = {".op": "operator", ".hone": "workload", ".trace": "trace"}
# A comment with options in a file: "# oracle: threads=2 fillings=ones,whole candidates=8".
_DIRECTIVE = re.compile(r"^# oracle:(.*)$", re.M)

_SAME_TYPES = ("f32",) * 6 + ("f64", "f16", "bf16")
_FLOAT_TYPES = (*_SAME_TYPES, "f16 acc=f32", "bf16 acc=f32", "f32 acc=f64", "i8 acc=f32",
                "f8e4m3 acc=f32", "f8e5m2 acc=f32")
_NUMBER_TYPES = (*_FLOAT_TYPES, "i8", "u8", "i32", "i64", "i8 acc=i32", "u8 acc=i64")


def from_file(path):
    """Each line of an .op file is an operator and a case; any other file is one case."""
    path = Path(path)
    text = path.read_text()
    options = {"threads": 2, "fillings": ["normal", "whole"], "candidates": 4, "random_traces": 1,
               "target": "native", "seed": 1, "tolerance": 0.0, "text_too": True}
    for words in _DIRECTIVE.findall(text):
        for key, value in (word.split("=", 1) for word in words.split()):
            kind = type(options[key])
            options[key] = value.split(",") if kind is list else kind(value)
    base = {**options, "source": _SOURCES[path.suffix]}
    if path.suffix != ".op":
        return [{**base, "id": str(path), "name": "text", "text": text}]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [{**base, "id": f"{path}:{n}" if len(lines) > 1 else str(path),
             "name": line.split()[0], "text": line} for n, line in enumerate(lines, start=1)]


def network_files():
    """The files of special.py."""
    return [path for path in sorted(_FOLDER.iterdir()) if path.suffix == ".net"]


def all_files():
    return [case for path in sorted(_FOLDER.iterdir()) if path.suffix in _SOURCES
            for case in from_file(path)]


def drawn(seed, number):
    """The case with this number, independent of all other cases."""
    rng = random.Random(f"{seed}/{number}")
    case = {"id": str(number), "seed": rng.getrandbits(32), "threads": rng.randint(1, 7),
            "target": "native" if rng.random() < 0.85 else "x86-avx2", "candidates": 2,
            "random_traces": 1, "tolerance": 0.0}
    if number % 3 == 0:
        fillings = rng.sample(("normal", "whole", "uniform", "any", "ends", "far", "wide"), 2)
        if number % 12 == 0:
            text, node = onnx_text.draw(rng)
            return {**case, "source": "workload", "name": node["op"], "text": text,
                    "fillings": fillings, "node": node}
        return {**case, "source": "workload", "name": "text", "text": random_text.draw(rng),
                "fillings": fillings}
    names = sorted(operators.OPERATORS)
    # The operators take turns, so that a short run covers all of them.
    name = names[(number - number // 3 - 1 + seed) % len(names)]
    operator = operators.OPERATORS[name]
    words = [f"{key}={value}" for key, value in operator.draw(rng).items()]
    types = "f32"
    if not operator.fixed_types:
        types = rng.choice(_FLOAT_TYPES if operator.floats_only else _NUMBER_TYPES)
        words.append(f"dtype={types}")
    fillings = list(rng.sample(operator.fillings, min(2, len(operator.fillings))))
    if types[0] in "iu" or operator.fixed_types:
        fillings = rng.sample(("whole", "any", "ends", "far"), 2)
        if "acc=f" in types:
            fillings = ["whole", "any"]
    return {**case, "source": "operator", "name": name, "text": " ".join([name, *words]),
            "fillings": fillings, "text_too": rng.random() < 0.4}
