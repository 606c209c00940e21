#!/usr/bin/env bash
# Runs tests of the Python package with the programs in HONE_PROGRAMS: tests/python/run.sh FILE…
# Uses $HONE_PYTHON, or else a python3 with the packages that it needs. Exits with 77, which ctest reports as skipped, if
# there is none. Tests of optional packages, such as PyTorch, are skipped one by one, with the reason.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONPATH=$PWD/client/python PYTHONDONTWRITEBYTECODE=1
for python in ${HONE_PYTHON:-python3 /usr/bin/python3}; do
  if "$python" -c "import grpc, google.protobuf, numpy, pytest" 2>/dev/null; then
    status=0
    "$python" -m pytest -q -ra -p no:cacheprovider --rootdir tests/python "$@" || status=$?
    [ "$status" -ne 5 ] || status=77  # pytest has skipped a whole file
    exit "$status"
  fi
done
echo "tests/python/run.sh: skipped, because no python3 has grpcio, protobuf, numpy and pytest; deploy/install-deps.sh installs them"
exit 77
