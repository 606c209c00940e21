#!/usr/bin/env bash
# Compares kernels with an independent oracle, see README.md.
#   tests/oracle/run.sh [--cases 10000] [--seed 7] [--jobs 2] [--case NUMBER|FILE] [--help]
#   tests/oracle/run.sh --special [--cases 10000]    nodes of ONNX models at special values
#   tests/oracle/run.sh --decoders         language models decode the same tokens as with ONNX Runtime
#   tests/oracle/run.sh --networks         networks are tuned, exported and run, as with ONNX Runtime
#   tests/oracle/run.sh --self-test        the oracle's own tests
# HONE_BUILD_DIR: the build folder with oracle_kernels (default build/release). Python packages are
# installed into a virtual environment in it.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${HONE_BUILD_DIR:-build/release}
environment=$build/oracle-python
export PYTHONDONTWRITEBYTECODE=1

# NumPy comes from Debian's python3-numpy or else from PyPI; ONNX Runtime comes from PyPI if possible.
install_packages() {
  # Two tests may start at the same time.
  exec 9>"$build/oracle-python.lock"
  flock 9
  [ -e "$environment/complete" ] && return
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  "$python" -m venv --clear --system-site-packages "$environment"
  local pip=("$environment/bin/python" -m pip install --quiet --disable-pip-version-check)
  "$environment/bin/python" -c 'import numpy' 2>/dev/null || "${pip[@]}" numpy
  "${pip[@]}" onnx onnxruntime 2>"$build/oracle-python.log" ||
    echo "oracle: pip could not install ONNX Runtime, see $build/oracle-python.log" >&2
  touch "$environment/complete"
}

mkdir -p "$build"
install_packages
exec 9>&-
if [ "${1:-}" = --self-test ]; then
  exec "$environment/bin/python" -m unittest discover -q -s tests/oracle -p '*_test.py'
fi
for models in decoders networks; do
  [ "${1:-}" != "--$models" ] || exec "$environment/bin/python" "tests/oracle/$models.py" --hone "$build/bin/hone"
done
mkdir -p "$build/oracle"
exec "$environment/bin/python" tests/oracle/oracle.py --program "$build/tests/oracle_kernels" --work "$build/oracle" "$@"
