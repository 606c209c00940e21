#!/usr/bin/env bash
# Runs the tests of RPC, the stores and the fleet with AddressSanitizer and ThreadSanitizer, which is too slow for every change.
#   tests/nightly.sh [asan | tsan]      default: both, one after the other. Ends with ctest's summary of each.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/install-deps.sh
tests=(rpc_test fleet_test store_test store_conformance_test store_fault_test store_open_test store_postgres_test)
regex="^($(IFS='|'; echo "${tests[*]}"))$"
code=0
for preset in ${1:-asan tsan}; do
  echo "nightly: $preset"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" --target "${tests[@]}"
  ctest --preset "$preset" --no-tests=error -R "$regex" || code=1
done
exit "$code"
