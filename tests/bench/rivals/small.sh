#!/usr/bin/env bash
# The ctest rivals_small: small.sh FOLDER. Uses the Python environment $HONE_RIVALS, or else a python3 with numpy and onnx.
set -euo pipefail
here=$(dirname "$0")
for python in ${HONE_RIVALS:+"$HONE_RIVALS/bin/python"} python3 /usr/bin/python3; do
  if "$python" -c "import numpy, onnx" 2>/dev/null; then
    mkdir -p "$1"
    exec "$python" "$here/rivals.py" small "$1"
  fi
done
echo "skipped: no python3 has numpy and onnx"
exit 77
