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
# The workers for GPU machines and boards. Tests run the one for GPU machines in an empty root, and those for boards under emulation.
# Without the libraries, which are downloaded the first time, the tests are skipped. If a bundle cannot be built, its folder is
# empty and its test fails.
arches=(aarch64 armv7)
[ "$(uname -m)" != x86_64 ] || arches=(x86_64 "${arches[@]}")
for arch in "${arches[@]}"; do
  bundle=build/bundle/$arch
  made=0
  deploy/bundle-worker.sh --arch "$arch" -o "$bundle" || made=$?
  [ $made = 0 ] && continue
  rm -rf "$bundle"
  [ $made = 3 ] || mkdir -p "$bundle"
  echo "run: there is no bundle for $arch" >&2
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
ctest --preset "$preset" --output-on-failure "$@" | tee "$log" || code=$?
[ $code = 0 ] && exit
# The output of a failed test can be long, and a CI system may keep only the beginning and the end: its failed checks come again, with the
# summary.
echo "run: what failed:"
grep -aE -A 12 ': Failure$|^\[  FAILED  \]|Sanitizer: |Assertion .* failed|\*\*\*(Failed|Timeout|Exception)' "$log" | cut -c 1-300 | head -n 200 || true
sed -n '/ tests passed, /,$p' "$log"
exit $code
