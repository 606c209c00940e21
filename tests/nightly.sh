#!/usr/bin/env bash
# Runs what is too slow for every change: the tests of RPC, the stores and the fleet with AddressSanitizer and ThreadSanitizer, and the test of
# a full disk and a lost database for five minutes each instead of 20 seconds.
#   tests/nightly.sh [asan | tsan | outage]      default: all, one after the other. Ends with ctest's summary of each.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/install-deps.sh
tests=(rpc_test fleet_test store_test store_conformance_test store_fault_test store_open_test store_postgres_test)
regex="^($(IFS='|'; echo "${tests[*]}"))$"
code=0
for preset in ${1:-asan tsan outage}; do
  echo "nightly: $preset"
  if [ "$preset" = outage ]; then
    cmake --preset ci >/dev/null
    cmake --build --preset ci --target integration_outage_test hone hone-server hone-worker hone-builder hone-runner
    HONE_OUTAGE_SECONDS=300 ctest --preset ci --no-tests=error -R '^integration_outage_test$' || code=1
    continue
  fi
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" --target "${tests[@]}"
  ctest --preset "$preset" --no-tests=error -R "$regex" || code=1
done
exit "$code"
