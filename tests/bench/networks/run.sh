#!/usr/bin/env bash
# Tunes networks, each in an empty store, exports them, and compares them with ONNX Runtime and OpenVINO in one process. Prints a
# Markdown table.
#   tests/bench/networks/run.sh [-t TRIALS] [-l TIME] [-e TOLERANCE] [-o FOLDER] [-p PYTHON] [-- OPTION...] MODEL.onnx...
# TRIALS 0: nothing is measured; every task gets the schedule that the draft chooses. Without -t and -l, 32 trials a task. TOLERANCE
# allows other algorithms: 1e-3 allows Winograd's convolutions. PYTHON needs onnxruntime, numpy and, for OpenVINO, openvino. The
# OPTIONs are those of compare.py, such as --threads 1 --processor-time. make_models.py writes networks.
set -euo pipefail
here=$(dirname "$0")
hone=${HONE_BUILD_DIR:-$here/../../../build/release}/bin/hone
usage="usage: tests/bench/networks/run.sh [-t TRIALS] [-l TIME] [-e TOLERANCE] [-o FOLDER] [-p PYTHON] [-- OPTION...] MODEL.onnx..."
limits=() tolerance=() out=build/networks python=python3 draft=()
while getopts "t:l:e:o:p:" option; do
  case $option in
    t) if [ "$OPTARG" = 0 ]; then draft=(--draft); else limits+=(--trials "$OPTARG"); fi ;;
    l) limits+=(--time "$OPTARG") ;;
    e) tolerance=(--tolerance "$OPTARG") ;;
    o) out=$OPTARG ;;
    p) python=$OPTARG ;;
    *) echo "$usage" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
options=() models=()
for word; do
  if [[ $word == *.onnx ]]; then models+=("$word"); else options+=("$word"); fi
done
if [ ${#models[@]} = 0 ]; then echo "$usage" >&2; exit 2; fi
mkdir -p "$out"
"$python" "$here/compare.py" --header
for model in "${models[@]}"; do
  name=$(basename "$model" .onnx)
  data=$(mktemp -d)
  if [ ${#draft[@]} = 0 ]; then
    XDG_DATA_HOME=$data "$hone" tune "$model" "${limits[@]}" "${tolerance[@]}" >"$out/$name.log" 2>&1
  fi
  XDG_DATA_HOME=$data "$hone" export "$model" -o "$out/$name" "${draft[@]}" "${tolerance[@]}" >/dev/null
  rm -rf "$data"
  "$python" "$here/compare.py" "$model" "$out/$name" "${options[@]}"
done
