#!/usr/bin/env bash
# Compares the default search with the same search without Gaussian processes and descent, and without the model that learns during the job,
# with 256 trials on every held-out task of the sample. The machine must be quiet. A run takes 10 to 30 s on a CPU, and there are 141 of them;
# -m ends it after some minutes, and the same command continues. The table is printed, and kept in OUT/summary.md, once all runs are there.
# SAMPLE names the dataset of this machine, whose fastest candidates are known. The default is that of a Zen 3 with two cores.
#   tests/bench/search/portfolio_parts.sh OUT [-m MINUTES] [-t TRIALS] [-s SEEDS] [-o TEXT]      -o: only tasks whose name contains TEXT
set -euo pipefail
cd "$(dirname "$0")/../../.."
lab=${HONE_BUILD_DIR:-build/release}/bin/hone-lab
[ $# -ge 1 ] || { sed -n 2,5p "$0" >&2; exit 2; }
out=$1
shift
minutes=0
trials=256
seeds=1
only=""
while getopts m:t:s:o: option; do
  case $option in
    m) minutes=$OPTARG ;;
    t) trials=$OPTARG ;;
    s) seeds=$OPTARG ;;
    o) only=$OPTARG ;;
    *) exit 2 ;;
  esac
done
variants=(
  --variant portfolio
  --variant drafted=evolutionary-drafted
  --variant no-model=portfolio,random
)
sample=${SAMPLE:-tests/bench/sample/x86_64-znver3-avx2-2c.h5}
code=0
timeout --signal=INT $((60 * minutes)) "$lab" compare --held-out --only "$only" --trials "$trials" --seeds "$seeds" --sample "$sample" \
  "${variants[@]}" --out "$out" || code=$?
finished=$(find "$out/runs" -name finished 2>/dev/null | wc -l)
if [ "$code" = 124 ]; then
  echo "$finished runs are finished; the same command continues" >&2
fi
exit "$code"
