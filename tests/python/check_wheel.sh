#!/usr/bin/env bash
# Installs a wheel of deploy/build-wheel.sh in an empty virtual environment, with the packages that it needs from PyPI, and
# tunes, looks up, exports and runs with it, without any program on the PATH but the wheel's: tests/python/check_wheel.sh WHEEL
# Also fails if the wheel is larger than 150 MiB, has not the tag of this machine's C library, or if a program needs a library that
# is neither in the wheel nor in every distribution. tests/python/bare_root.sh does the same in a root that has nothing else.
set -euo pipefail
[ $# -eq 1 ] && [ -f "$1" ] || { echo "check_wheel: name one file: tests/python/check_wheel.sh dist/hone-….whl" >&2; exit 2; }
wheel=$(realpath "$1")
cd "$(dirname "$0")/../.."
tests/python/wheel_facts.sh "$wheel"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"
use=$PWD/tests/python/use_wheel.py model=$PWD/tests/client/network/onnx/testdata/mnist-8.onnx
cd "$work"
env -i HOME="$work" PATH="$work/venv/bin" python "$use" "$model" "$work/venv"
