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
# The workers for boards, which tests run under emulation. The first time, libraries are downloaded; without them, the tests
# are skipped. An old bundle must not stand for one that cannot be made.
for arch in aarch64 armv7; do
  deploy/bundle-worker.sh --arch "$arch" -o "build/bundle/$arch" && continue
  rm -rf "build/bundle/$arch"
  echo "run: there is no bundle for $arch, so its test will be skipped" >&2
done
exec ctest --preset "$preset" --output-on-failure "$@"
