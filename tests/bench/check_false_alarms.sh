#!/usr/bin/env bash
# Measures how often `hone check` fails although nothing has changed: it checks the same kernels again and again, against baselines of
# themselves (an A/A test). Prints a Markdown table with a row for each operator or network and each limit.
#   tests/bench/check_false_alarms.sh [OPERATOR key=value… or FILE.onnx as one word]…     default: two products and a convolution
#   RUNS=200 checks for each limit, LIMITS="3% 5% 10%", TRIALS=64 for tuning, TIME=1s for each measurement
#   BUSY=1 keeps one core busy with an endless loop during the checks, but not while a baseline is saved
#   WORK=DIR keeps the store and the results, so that a run continues where one before it stopped; SECONDS_MAX=280 stops it after this time
# A new baseline is saved after every 20 checks, so that the rate is not that of one lucky baseline. The checks of the limits take turns.
# Everything is in a store of its own in a folder. Nothing else should run on the machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
hone=$(realpath "${HONE_BUILD_DIR:-build/release}/bin/hone")
runs=${RUNS:-200} time=${TIME:-1s} trials=${TRIALS:-64}
read -ra limits <<<"${LIMITS:-3% 5% 10%}"
subjects=("$@")
[ ${#subjects[@]} -gt 0 ] || subjects=(
  "matmul m=256 n=256 k=256"
  "matmul m=1024 n=1024 k=1024"
  "conv2d n=1 h=56 w=56 ci=64 co=64 k=3 s=1 p=1"
)
loop=
if [ -n "${WORK:-}" ]; then
  mkdir -p "$WORK"
  work=$(realpath "$WORK")
  trap '[ -z "$loop" ] || kill "$loop"' EXIT
else
  work=$(mktemp -d)
  trap '[ -z "$loop" ] || kill "$loop"; rm -rf "$work"' EXIT
fi
touch "$work/results"
export XDG_DATA_HOME=$work/data
# Whether this call has used its time.
is_over() { [ "$SECONDS" -ge "${SECONDS_MAX:-999999}" ]; }

# save WORDS…: a new baseline, again if other work disturbed it.
save() {
  local try code
  [ -z "$loop" ] || kill -STOP "$loop"
  for try in 1 2 3 4 5; do
    code=0
    "$hone" check "$@" --baseline "$work/speed.json" --save --time "$time" >"$work/save.log" 2>&1 || code=$?
    if [ $code -eq 0 ]; then
      [ -z "$loop" ] || kill -CONT "$loop"
      return
    fi
    [ $code -eq 5 ] || break
  done
  echo "no baseline of $* after $try tries:" >&2
  tail -3 "$work/save.log" >&2
  exit 1
}

for n in "${!subjects[@]}"; do
  read -ra words <<<"${subjects[n]}"
  "$hone" best "${words[@]}" >/dev/null 2>&1 ||
    "$hone" tune "${words[@]}" --trials "$trials" >"$work/tune.log" 2>&1 || { tail -3 "$work/tune.log" >&2; exit 1; }
done
if [ -n "${BUSY:-}" ]; then
  while :; do :; done &
  loop=$!
fi
for n in "${!subjects[@]}"; do
  read -ra words <<<"${subjects[n]}"
  for ((run = $(grep -c "^${subjects[n]}	" "$work/results" || true) / ${#limits[@]}; run < runs; run++)); do
    if is_over; then
      echo "$(wc -l <"$work/results") checks are done; run it again to continue" >&2
      exit 0
    fi
    ((run % 20 > 0)) || save "${words[@]}"
    for limit in "${limits[@]}"; do
      code=0
      "$hone" check "${words[@]}" --baseline "$work/speed.json" --max-regression "$limit" --time "$time" --json >"$work/check.json" \
        2>"$work/check.log" || code=$?
      case $code in
        0 | 1 | 5) ;;
        *) tail -3 "$work/check.log" >&2; exit 1 ;;
      esac
      printf '%s\t%s\t%s\t' "${subjects[n]}" "$limit" "$code" >>"$work/results"
      python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["regression"])' "$work/check.json" >>"$work/results"
    done
  done
done

# The bound is that of Clopper and Pearson: with a higher rate, so few failures would have a probability of less than 5 %.
python3 - "$work/results" <<'EOF'
import collections, math, statistics, sys

def upper_bound(failures, runs):
    low, high = failures / runs, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        so_few = sum(math.comb(runs, i) * rate**i * (1 - rate) ** (runs - i) for i in range(failures + 1))
        low, high = (rate, high) if so_few > 0.05 else (low, rate)
    return high

checks = collections.defaultdict(list)
for line in open(sys.argv[1]):
    subject, limit, code, regression = line.rstrip("\n").split("\t")
    checks[subject, limit].append((int(code), float(regression)))
print("| operator or network | limit | checks | false alarms | rate | rate at most (95 %) | inconclusive | median change | largest change |")
print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
for (subject, limit), results in checks.items():
    runs = len(results)
    alarms = sum(code == 1 for code, _ in results)
    unsure = sum(code == 5 for code, _ in results)
    changes = [change for _, change in results]
    print(f"| {subject} | {limit} | {runs} | {alarms} | {100 * alarms / runs:.1f} % | {100 * upper_bound(alarms, runs):.1f} % | {unsure} "
          f"| {100 * statistics.median(changes):+.1f} % | {100 * max(changes):+.1f} % |")
EOF
