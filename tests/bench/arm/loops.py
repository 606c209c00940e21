"""Loops of AArch64 assembly, and their cost by LLVM's models of the cores (llvm-mca). Nothing runs."""
import re
import subprocess
import sys
import tempfile

CORES = ["cortex-a53", "cortex-a55", "cortex-a72", "cortex-a76", "cortex-x1", "neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1"]
MULTIPLY_ADD = re.compile(r"^\s+(?:fmla|fmadd|sdot|smmla)\s+(\w+)\S*\.4s,")
LOAD = re.compile(r"^\s+ld")
BRANCH = re.compile(r"^\s+(?:b(?:\.\w+)?|cbn?z\s+\w+,|tbn?z\s.*,)\s+(\.L\w+)\s*$")
LABEL = re.compile(r"^(\.L\w+):")


def run(command, folder=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def disassemble(objdump, path):
    """The code of a file as assembly with labels."""
    lines, targets = [], set()
    for line in run([objdump, "-d", "--no-show-raw-insn", path]).splitlines():
        code = re.match(r"\s*([0-9a-f]+):\s+(.*)", line.split("//")[0])
        if not code:
            continue
        if branch := re.match(r"(?:b|b\.\w+|cbn?z|tbn?z)\s(?:.*\s)?0x([0-9a-f]+)\s", code[2]):
            targets.add(branch[1])
        lines.append((code[1], re.sub(r"0x([0-9a-f]+)\s+<.*>", r".L\1", code[2]).rstrip()))
    return "\n".join((f".L{at}:\n" if at in targets else "") + "\t" + code for at, code in lines)


def innermost_loops(assembly):
    """The bodies of the loops without a label inside, each with its branch."""
    labels, loops = {}, []
    lines = [line for line in assembly.splitlines() if not line.strip().startswith("//")]
    for at, line in enumerate(lines):
        if label := LABEL.match(line):
            labels[label[1]] = at
        branch = BRANCH.match(line)
        if branch and branch[1] in labels:
            body = lines[labels[branch[1]] + 1:at + 1]
            if not any(map(LABEL.match, body)):
                loops.append(body)
    return loops


def hottest_loop(assembly):
    return max(innermost_loops(assembly), key=multiply_adds)


def multiply_adds(lines):
    """The number of multiply-adds of 128 bits."""
    return sum(1 for line in lines if MULTIPLY_ADD.match(line))


def accumulators(lines):
    return len({found[1] for found in map(MULTIPLY_ADD.match, lines) if found})


def cycles(mca, core, bodies):
    """Cycles per iteration of each body once it runs steadily."""
    ends = []
    for iterations in (100, 300):
        with tempfile.NamedTemporaryFile("w", suffix=".s") as file:
            for body in bodies:
                lines = [line for line in body if not BRANCH.match(line)]
                file.write("\n".join(["# LLVM-MCA-BEGIN", *lines, "# LLVM-MCA-END", ""]))
            file.flush()
            text = run([mca, "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={iterations}", file.name])
        ends.append([int(count) for count in re.findall(r"Total Cycles:\s+(\d+)", text)])
    return [(last - first) / 200 for first, last in zip(*ends)]


def rate(mca, core, loop):
    """Multiply-adds of 128 bits per cycle."""
    return multiply_adds(loop) / cycles(mca, core, [loop])[0]
