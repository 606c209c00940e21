#!/usr/bin/env bash
# Tunes every distinct convolution of ResNet-50 at batch 1 (those of tests/bench/traces), each in an empty store, exports the kernels,
# and compares them with oneDNN's direct ones, interleaved in one process. Prints a Markdown table.
#   tests/bench/resnet50.sh [-t TRIALS] [-r TOLERANCE] [-o FOLDER]     256 trials, strict, kernels into build/resnet50
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${HONE_BUILD_DIR:-build/release}
trials=256 tolerance=0 out=build/resnet50
while [ $# -gt 0 ]; do
  case $1 in
    -t) trials=$2; shift 2 ;;
    -r) tolerance=$2; shift 2 ;;
    -o) out=$2; shift 2 ;;
    *) echo "usage: tests/bench/resnet50.sh [-t TRIALS] [-r TOLERANCE] [-o FOLDER]" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
folders=() traces=()
for trace in tests/bench/traces/conv2d_*.trace; do
  [[ $trace == *winograd* ]] && continue
  words=$(sed -n '1s/^# //p' "$trace")
  name=$(basename "$trace" .trace)
  folders+=("$out/$name")
  traces+=("$trace")
  data=$(mktemp -d)
  # The words of an operator must be split.
  # shellcheck disable=SC2086
  XDG_DATA_HOME=$data "$build/bin/hone" tune $words --trials "$trials" --tolerance "$tolerance" --json >"$out/$name.json" 2>/dev/null
  # shellcheck disable=SC2086
  XDG_DATA_HOME=$data "$build/bin/hone" export $words --tolerance "$tolerance" -o "$out/$name" >/dev/null
  rm -rf "$data"
done
bound=()
[ "$tolerance" = 0 ] || bound=(--bound 1e-4)
"$build/tests/compare" "${bound[@]}" --lines "${folders[@]}" "${traces[@]}" >"$out/lines.jsonl"
python3 - "$out/lines.jsonl" <<'PYTHON'
import json, math, sys

def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))

found, by_hand = [], []
print("| operator | Hone us | oneDNN us | share of peak | over oneDNN | by hand over oneDNN |\n|---|---:|---:|---:|---:|---:|")
for line in open(sys.argv[1]):
    comparison = json.loads(line)["comparison"]
    ours, hand = comparison["rows"][:2]
    library = next(row for row in comparison["rows"] if row["name"] == "oneDNN")
    found.append(ours["over"]["oneDNN"])
    by_hand.append(hand["over"]["oneDNN"])
    print("| %s | %.0f | %.0f | %.0f %% | %.2f | %.2f |" % (
        comparison["operator"].replace("conv2d n=1 ", ""), ours["latency_ns"] / 1e3, library["latency_ns"] / 1e3,
        100 * ours["share_of_peak"], found[-1], by_hand[-1]))
for name, ratios in (("found", found), ("by hand", by_hand)):
    print("\n%s over oneDNN: geometric mean %.3f, least %.2f, best %.2f, at 1.0 or above %d of %d" % (
        name, mean(ratios), min(ratios), max(ratios), sum(r >= 1 for r in ratios), len(ratios)))
PYTHON
