#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test. Ends with ctest's summary.
#   tests/run.sh [ctest arguments]      e.g.  tests/run.sh -L unit
# HONE_PRESET chooses another preset: ci (warnings are errors), dev, asan, tsan. Without it, the build of quickstart.sh is used.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/install-deps.sh
preset=${HONE_PRESET:-release}
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" -- -k 0
# The workers for boards. A test runs that for AArch64 under emulation. The first time, libraries are downloaded; without
# them, the test is skipped.
deploy/bundle-worker.sh --arch aarch64 -o build/bundle/aarch64 ||
  echo "run: there is no bundle for boards, so its test will be skipped" >&2
deploy/bundle-worker.sh --arch armv7 -o build/bundle/armv7 || echo "run: there is no bundle for ARMv7" >&2
exec ctest --preset "$preset" --output-on-failure "$@"
