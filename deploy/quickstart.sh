#!/usr/bin/env bash
# From a fresh Debian 12 machine to a table of results: installs what is missing, builds, tunes two operators through the
# real system, exports the winners, and compares them with the untiled default and with the libraries on this machine.
#   deploy/quickstart.sh [TRIALS]     candidates to measure per operator, 256 by default
# Records are stored in the user's store (~/.local/share/hone), so a second run starts from the earlier results. Kernels
# and reports are written to build/quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."

trials=${1:-256}
if ! [[ $trials =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: deploy/quickstart.sh [TRIALS]" >&2
  exit 2
fi

step() { printf '\n== %s\n' "$*"; }

step "packages"
deploy/install-deps.sh

step "build"
cmake --preset release >/dev/null
cmake --build --preset release --target hone hone-server hone-worker hone-builder hone-runner

hone=build/release/bin/hone
out=build/quickstart
mkdir -p "$out"

# tune NAME OP key=value…: tunes, keeps the report, exports the winner to $out/NAME.
tune() {
  local name=$1
  shift
  step "hone tune $* --trials $trials"
  "$hone" tune "$@" --trials "$trials" --json >"$out/$name.json"
  rm -rf "${out:?}/$name"
  "$hone" export "$@" -o "$out/$name"
}

tune matmul matmul m=1024 n=1024 k=1024
tune conv2d conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1

step "comparison, interleaved in one process"
cmake --build --preset release --target compare
build/release/tests/compare "$out/matmul" "$out/conv2d" --tuned "$out/matmul.json" --tuned "$out/conv2d.json"
