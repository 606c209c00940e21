#!/usr/bin/env bash
# Compares the default search with the same search without each of its parts, with 256 trials on every held-out task of the sample. The
# machine must be quiet. A run of a variant on a task should take 10 to 20 s, and there are 235 of them (47 tasks, 5 variants), so about an hour;
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
# The part that each variant lacks: none; the Gaussian processes; the descent; both; the model that learns during the job.
variants=(
  --variant portfolio
  --variant no-bayesian=portfolio-no-bayesian
  --variant no-droplet=portfolio-no-droplet
  --variant neither=evolutionary-drafted
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
