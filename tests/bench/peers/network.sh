#!/usr/bin/env bash
# Tunes a network with Hone, in an empty store, and with MetaSchedule; prints the wall time of both, and times both networks alternately in
# one process.
#   TVM_NUM_THREADS=2 tests/bench/peers/network.sh -p PYTHON -m MCPU -n TRIALS -l TIME [-e TOLERANCE] [-o FOLDER] MODEL.onnx
# TRIALS: of MetaSchedule, for all tasks together. TIME: of Hone, such as 5m. TOLERANCE allows Hone other algorithms: 1e-3 allows
# Winograd's convolutions. PYTHON and MCPU (LLVM's name of this machine's CPU) are described in README.md.
set -euo pipefail
here=$(dirname "$0")
hone=${HONE_BUILD_DIR:-$here/../../../build/release}/bin/hone
usage="usage: tests/bench/peers/network.sh -p PYTHON -m MCPU -n TRIALS -l TIME [-e TOLERANCE] [-o FOLDER] MODEL.onnx"
python='' mcpu='' trials='' limit='' tolerance=() out=build/peers
while getopts "p:m:n:l:e:o:" option; do
  case $option in
    p) python=$OPTARG ;;
    m) mcpu=$OPTARG ;;
    n) trials=$OPTARG ;;
    l) limit=$OPTARG ;;
    e) tolerance=(--tolerance "$OPTARG") ;;
    o) out=$OPTARG ;;
    *) echo "$usage" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
if [ $# != 1 ] || [ -z "$python" ] || [ -z "$mcpu" ] || [ -z "$trials" ] || [ -z "$limit" ]; then echo "$usage" >&2; exit 2; fi
fail() { tail -n 5 "$1" >&2; exit 1; }
folder=$out/$(basename "$1" .onnx)
rm -rf "${folder:?}"
mkdir -p "$folder/hone" "$folder/tvm"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
export XDG_DATA_HOME=$data
begin=$SECONDS
"$hone" tune "$1" --time "$limit" "${tolerance[@]}" >"$folder/hone.log" 2>&1 || fail "$folder/hone.log"
echo "Hone: $((SECONDS - begin)) s"
"$hone" export "$1" -o "$folder/hone" "${tolerance[@]}" >/dev/null
"$python" "$here/tvm_tune_network.py" "$1" --trials "$trials" --out "$folder/tvm" --mcpu "$mcpu" 2>"$folder/tvm.log" ||
  fail "$folder/tvm.log"
"$python" "$here/network_duel.py" "$folder/hone" "$folder/tvm"
