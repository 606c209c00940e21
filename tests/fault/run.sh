#!/usr/bin/env bash
# Builds and runs the chaos test.
#   tests/fault/run.sh                 the smoke test of ctest (at most two minutes)
#   tests/fault/run.sh --long [SEED]   at least 200 faults in about ten minutes; writes tests/bench/results/chaos.md
set -euo pipefail
cd "$(dirname "$0")/../.."
preset=${HONE_PRESET:-ci}
build=${HONE_BUILD_DIR:-build/release}
cmake --build --preset "$preset" --target chaos fault_chaos_smoke_test hone hone-server hone-worker hone-builder hone-runner
export HONE_BIN_DIR=$PWD/$build/bin
if [[ ${1:-} != --long ]]; then exec "$build/tests/fault_chaos_smoke_test" "$@"; fi
seed=${2:-$RANDOM}
echo "seed $seed"
summary=$(mktemp)
code=0
"$build/tests/chaos" --seed "$seed" --faults 240 --seconds 600 --settle 180 --trials 16 --long-faults --markdown "$summary" || code=$?
if [[ -s $summary ]]; then
  {
    printf '# Chaos\n\n`tests/fault/run.sh --long %s`, %s, %s cores (%s), beside other work.\n\n' \
      "$seed" "$(date -u +%F)" "$(nproc)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
    cat "$summary"
  } > tests/bench/results/chaos.md
fi
rm -f "$summary"
exit "$code"
