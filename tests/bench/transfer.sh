#!/usr/bin/env bash
# Measures the gain from another workload's records: tunes a source, then the target with and without transfer from a copy of that
# store. Prints a Markdown table of the best latency after 16, 32 and 64 trials (median over the seeds; ratio without / with).
#   tests/bench/transfer.sh [-t TRIALS] [-s SEEDS] [-r "PREFIX"] [conv | matmul]…     default: 64 trials, seeds 1 2 3, both
# conv: Zheng's C12 → C7; matmul: a matrix product → a convolution. PREFIX is put before every command that measures, e.g. a lock.
set -euo pipefail
cd "$(dirname "$0")/../.."
hone=$PWD/${HONE_BUILD_DIR:-build/release}/bin/hone
trials=64 seeds="1 2 3" prefix=""
while getopts t:s:r: option; do
  case $option in
    t) trials=$OPTARG ;;
    s) seeds=$OPTARG ;;
    r) prefix=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- conv matmul
declare -A source=(
  [conv]="conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1"
  [matmul]="matmul m=512 n=512 k=512"
)
declare -A target=(
  [conv]="conv2d n=1 h=28 w=28 ci=128 co=256 k=3 s=2 p=1"
  [matmul]="conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1"
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Tunes in the data folder $1 and writes the job's screened latencies in ns, in trial order, to the file $2.
tune() {
  local home=$1 out=$2
  shift 2
  local job
  job=$(XDG_DATA_HOME=$home $prefix "$hone" tune "$@" --json 2>/dev/null | sed 's/.*"job":"\([^"]*\)".*/\1/')
  XDG_DATA_HOME=$home "$hone" records query --job "$job" --limit 0 --json |
    python3 -c '
import json, sys
records = [r for r in json.load(sys.stdin)["records"] if r["policy"].startswith("screen") and not r["is_default"]]
for r in sorted(records, key=lambda r: r["trial"]):
    print(r["latency_ns"] if r["outcome"] == "ok" else 0)' >"$out"
}

echo "| source → target | seed | | best of 16 | of 32 | of $trials |"
echo "|---|---|---|---|---|---|"
for pair in "$@"; do
  # shellcheck disable=SC2086  # words of an operator
  tune "$work/$pair" "$work/$pair.source" ${source[$pair]} --trials "$trials" --seed 1
  for seed in $seeds; do
    for how in with without; do
      cp -r "$work/$pair" "$work/run"
      rm -rf "$work/run/hone/run" "$work/run/hone/"*.lock
      flag=$([ $how = without ] || echo --transfer)
      # shellcheck disable=SC2086
      tune "$work/run" "$work/$pair.$seed.$how" ${target[$pair]} --trials "$trials" --seed "$seed" $flag
      rm -rf "$work/run"
      awk -v p="${source[$pair]%% *} → ${target[$pair]%% *}" -v s="$seed" -v h=$how -v n="$trials" '
        $1 > 0 && (best == 0 || $1 < best) { best = $1 }
        NR == 16 { a = best } NR == 32 { b = best }
        END { printf "| %s | %s | %s | %.1f us | %.1f us | %.1f us |\n", p, s, h, a / 1e3, b / 1e3, best / 1e3 }' "$work/$pair.$seed.$how"
    done
  done
  python3 - "$work/$pair" "$trials" $seeds <<'PY'
import statistics, sys
stem, trials, seeds = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
def best(how, seed, count):
    values = [float(line) for line in open(f"{stem}.{seed}.{how}")][:count]
    return min(value for value in values if value > 0)
cells = [statistics.median(best("without", s, n) / best("with", s, n) for s in seeds) for n in (16, 32, trials)]
print(f"| {stem.split('/')[-1]} | median | without by with | " + " | ".join(f"**{c:.3f}**" for c in cells) + " |")
PY
done
