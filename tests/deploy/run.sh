#!/usr/bin/env bash
# Runs tests of deploy/ that are written in Python: HONE_PROGRAMS=FOLDER tests/deploy/run.sh FILE…
# Uses $HONE_PYTHON, or else a python3 with PyYAML and pytest. Exits with 77, which ctest reports as skipped, if there is
# none, or if all tests of the file were skipped; the reasons are printed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONDONTWRITEBYTECODE=1
for python in ${HONE_PYTHON:-python3 /usr/bin/python3}; do
  "$python" -c "import yaml, pytest" 2>/dev/null || continue
  status=0
  report=$(mktemp)
  trap 'rm -f "$report"' EXIT
  "$python" -m pytest -q -ra -p no:cacheprovider --rootdir tests/deploy "$@" | tee "$report" || status=$?
  [ "$status" -ne 5 ] || status=77
  ! tail -n 1 "$report" | grep -Eq '^[0-9]+ skipped' || status=77
  exit "$status"
done
echo "tests/deploy/run.sh: skipped, because no python3 has PyYAML and pytest; deploy/install-deps.sh installs them"
exit 77
