#!/usr/bin/env bash
# Installs a wheel of deploy/build-wheel.sh in an empty virtual environment, with the packages that it needs from PyPI, and
# tunes, looks up, exports and runs with it, without any program on the PATH but the wheel's: tests/python/check_wheel.sh WHEEL
# Also fails if a program needs a library that is neither in the wheel nor in every distribution.
set -euo pipefail
[ $# -eq 1 ] && [ -f "$1" ] || { echo "check_wheel: name one file: tests/python/check_wheel.sh dist/hone-….whl" >&2; exit 2; }
wheel=$(realpath "$1")
[ "$(stat -c %s "$wheel")" -le $((150 << 20)) ] || { echo "check_wheel: $wheel is larger than 150 MiB" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"
for program in "$work"/venv/lib/python3*/site-packages/hone/native/bin/*; do
  if ldd "$program" | grep -v 'hone\.libs\|linux-vdso\|ld-linux\|lib\(c\|m\|gcc_s\|stdc++\|pthread\|resolv\|dl\|rt\|z\)\.so'; then
    echo "check_wheel: $program needs these libraries of this machine" >&2
    exit 1
  fi
done
cat >"$work/use.py" <<'PYTHON'
import os, shutil, sys
import hone, numpy
assert shutil.which("cc") is None and shutil.which("hone").startswith(sys.prefix), os.environ["PATH"]
kernel = hone.tune("matmul m=64 n=64 k=64", trials=4)
A = numpy.random.rand(64, 64).astype("float32")
assert numpy.allclose(kernel(A, A), A @ A, rtol=1e-4, atol=1e-4)
print("tuned:", kernel)
if kernel.best.confirmed:
    print("known:", hone.best("matmul m=64 n=64 k=64"))
    print("exported:", len(hone.export("matmul m=64 n=64 k=64", "kernel")), "files")
if len(sys.argv) > 1:
    network = hone.load(sys.argv[1])
    print("run:", [one.shape for one in network.outputs], network(*[numpy.ones(one.shape, "float32") for one in network.inputs]).shape)
PYTHON
cd "$(dirname "$0")/../.."
model=$PWD/tests/client/network/onnx/testdata/mnist-8.onnx
cd "$work"
env -i HOME="$work" PATH="$work/venv/bin" python use.py "$model"
