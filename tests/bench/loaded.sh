#!/usr/bin/env bash
# Tunes operators with 8, 64 and 256 trials while other processes keep every core busy half of the time, then times each result on the
# quiet machine. Prints a Markdown table. More trials should not give a slower kernel, and the best that is shown should not get worse: the
# largest loss from one line of progress to the next, or to the result, is in the table.
#   tests/bench/loaded.sh [OPERATOR key=value… as one word]…      default: a convolution, a capsule convolution and a matrix product
# Each run has a store of its own in a temporary folder. Nothing else should run on the machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
hone=$(realpath "${HONE_BUILD_DIR:-build/release}/bin/hone")
operators=("$@")
[ ${#operators[@]} -gt 0 ] || operators=(
  "capsule_conv2d n=1 h=8 w=8 ci=32 co=32 k=3 s=1 p=1"
  "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1"
  "matmul m=256 n=256 k=256"
)
trials=(8 64 256)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT

# Computes and sleeps in turns of 5 to 50 ms.
busy_half='
import random, time
while True:
    turn = random.uniform(0.005, 0.05)
    end = time.perf_counter() + turn
    while time.perf_counter() < end: pass
    time.sleep(turn)'

load=()
for _ in $(seq "$(nproc)"); do
  python3 -c "$busy_half" &
  load+=($!)
done
for n in "${!operators[@]}"; do
  for t in "${trials[@]}"; do
    # shellcheck disable=SC2086
    XDG_DATA_HOME=$work/$n-$t "$hone" tune ${operators[n]} --trials "$t" --json >"$work/$n-$t.json" 2>"$work/$n-$t.log" ||
      { tail -3 "$work/$n-$t.log" >&2; exit 1; }
  done
done
kill "${load[@]}"
sleep 5

field() { python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); print(eval(sys.argv[2]), end="")' "$@"; }
# The largest loss of the GFLOP/s that the log shows, and that the result reports after it, in percent.
worst_loss='
import json, re, sys
shown = [float(number) for number in re.findall(r"best ~?([0-9.]+) GFLOP/s", open(sys.argv[1]).read())]
shown.append(json.load(open(sys.argv[2]))["best"]["gflops"])
losses = [100 * (1 - after / before) for before, after in zip(shown, shown[1:])]
print("%.0f" % max([0] + losses), end="")'

echo "| operator | trials | seconds | disturbed | reported µs | quiet µs | against the best row | worst loss shown % |"
echo "|---|---|---|---|---|---|---|---|"
for n in "${!operators[@]}"; do
  best=
  for round in 1 2 3; do  # interleaved
    for t in "${trials[@]}"; do
      field "$work/$n-$t.json" 'it["best"]["trace"]' >"$work/best.trace"
      XDG_DATA_HOME=$work/quiet "$hone" schedule "$work/best.trace" --check --json >"$work/check.json" 2>/dev/null
      field "$work/check.json" 'it["latency_ns"] / 1000' >>"$work/$n-$t.quiet"
      echo >>"$work/$n-$t.quiet"
    done
  done
  median() { sort -g "$work/$n-$1.quiet" | sed -n 2p; }
  for t in "${trials[@]}"; do
    best=$(printf '%s\n%s\n' "${best:-inf}" "$(median "$t")" | sort -g | head -1)
  done
  for t in "${trials[@]}"; do
    json=$work/$n-$t.json
    printf '| %s | %d | %.0f | %d | %.1f | %.1f | %.2f | %s |\n' "${operators[n]}" "$t" "$(field "$json" 'it["wall_s"]')" \
      "$(field "$json" 'it.get("disturbed", 0)')" "$(field "$json" 'it["best"]["latency_ns"] / 1000')" "$(median "$t")" \
      "$(python3 -c "print($(median "$t") / $best)")" "$(python3 -c "$worst_loss" "$work/$n-$t.log" "$json")"
  done
done
