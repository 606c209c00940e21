#!/usr/bin/env bash
# Regenerates the table of benchmark results: every trace of tests/bench/traces against the libraries, on one core and on
# all, and the cost of candidates before they are timed. Takes about two minutes per ten traces; the machine should be idle.
#   tests/bench/run.sh [-o FOLDER] [TRACE…]      tests/bench/results/x86_core.{md,jsonl}
#   tests/bench/run.sh --smoke                   a ctest: some traces, a few rounds, on all cores, into the build folder; fails if a trace fails
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${HONE_BUILD_DIR:-build/release}
out=tests/bench/results
rounds=25 block=25 candidates=300 smoke= lock=()
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) smoke=1 rounds=3 block=1 candidates=4 out=$build/bench
             lock=(--lock "$build/bench/smoke.lock"); shift ;;  # other tests may be timing
    -o) out=$2; shift 2 ;;
    *) break ;;
  esac
done
if [ -z "$smoke" ]; then
  cmake --build "$build" --target compare bench_table candidate_benchmark
fi
if [ -n "$smoke" ] && ! grep -qw avx512_vnni /proc/cpuinfo; then
  echo "skipped: the traces are for AVX-512 with VNNI, which this CPU lacks"
  exit 77
fi
traces=("$@")
[ ${#traces[@]} -gt 0 ] || traces=(tests/bench/traces/*.trace)
if [ -n "$smoke" ]; then  # another test checks that each trace builds and is correct
  some=()
  for ((i = 0; i < ${#traces[@]}; i += 6)); do some+=("${traces[i]}"); done
  traces=("${some[@]}")
fi

mkdir -p "$out"
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
"$build/bench/bench_table" --machine > "$lines"
all=$(sed -n 's/.*"cores":\([0-9]*\).*/\1/p' "$lines")  # with a CPU quota, fewer than nproc
counts=("$all")
[ -n "$smoke" ] || [ "$all" -eq 1 ] || counts=(1 "$all")
for threads in "${counts[@]}"; do
  OMP_NUM_THREADS=$threads "$build/tests/compare" --threads "$threads" --rounds "$rounds" --block-ms "$block" --lines "${lock[@]}" \
    "${traces[@]}" >> "$lines"
done
"$build/bench/candidate_benchmark" --candidates "$candidates" >> "$lines"

notes=tests/bench/results/x86_core_notes.md
"$build/bench/bench_table" "$lines" $([ ! -f $notes ] || echo --notes $notes) > "$out/x86_core.md"
cp "$lines" "$out/x86_core.jsonl"
chmod 644 "$out/x86_core.jsonl"
echo "wrote $out/x86_core.md and $out/x86_core.jsonl"
