#!/usr/bin/env bash
# Builds and runs the chaos test.
#   tests/fault/run.sh                 the smoke tests of ctest (at most three minutes)
#   tests/fault/run.sh --long [SEED]   at least 200 faults in about ten minutes on SQLite, and the same on PostgreSQL;
#                                      writes tests/bench/results/chaos.md
set -euo pipefail
cd "$(dirname "$0")/../.."
preset=${HONE_PRESET:-ci}
build=${HONE_BUILD_DIR:-build/release}
cmake --build --preset "$preset" --target chaos fault_chaos_smoke_test fault_postgres_smoke_test hone hone-server hone-worker hone-builder hone-runner
export HONE_BIN_DIR=$PWD/$build/bin
if [[ ${1:-} != --long ]]; then
  "$build/tests/fault_chaos_smoke_test"
  exec "$build/tests/fault_postgres_smoke_test"
fi
seed=${2:-$RANDOM}
echo "seed $seed"
summaries=$(mktemp -d)
trap 'rm -rf "$summaries"' EXIT
code=0
for store in sqlite postgresql; do
  "$build/tests/chaos" --store "$store" --seed "$seed" --faults 240 --seconds 600 --settle 180 --trials 16 --long-faults \
    --markdown "$summaries/$store" || code=$?
done
if [[ -s $summaries/sqlite && -s $summaries/postgresql ]]; then
  {
    printf '# Chaos\n\n`tests/fault/run.sh --long %s`, %s, %s cores (%s), while other programs were running.\n' \
      "$seed" "$(date -u +%F)" "$(nproc)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
    printf '\n## One server on SQLite\n\n'
    cat "$summaries/sqlite"
    printf '\n## A leader and a standby on PostgreSQL\n\n'
    cat "$summaries/postgresql"
  } > tests/bench/results/chaos.md
fi
exit "$code"
