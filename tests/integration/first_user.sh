#!/usr/bin/env bash
# Walks through the first hours of a new user with the real programs: a team server, a machine that
# compiles and a board that measures, then a private server. Checks results, messages and exit codes.
#   tests/integration/first_user.sh [BIN]      the folder with the programs, build/release/bin
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${1:-build/release/bin}")
work=$(mktemp -d)
export HOME=$work XDG_DATA_HOME=$work/data COLUMNS=120
unset XDG_CONFIG_HOME
failures=0
step=

cleanup() {
  trap - EXIT
  jobs -p | xargs -r kill 2>/dev/null
  wait
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

step() { step=$*; printf '%s\n' "$step"; }
fail() {
  printf 'FAILED (%s): %s\n' "$step" "$*"
  failures=$((failures + 1))
}
# run CODE COMMAND…: the command must end with this exit code. Sets output and errors.
run() {
  local expected=$1 code=0
  shift
  timeout 240 "$@" >"$work/output" 2>"$work/errors" </dev/null || code=$?
  output=$(<"$work/output") errors=$(<"$work/errors")
  [ "$code" -eq "$expected" ] || fail "exit code $code, not $expected: $*: $output $errors"
}
says() { [[ $output$errors == *"$1"* ]] || fail "does not say '$1': $output $errors"; }
says_not() { [[ $output$errors != *"$1"* ]] || fail "says '$1': $output $errors"; }
is() { [ "$1" = "$2" ] || fail "'$1' instead of '$2': $output $errors"; }
# json EXPRESSION: evaluates it in Python with the printed object as `it`.
json() { python3 -c 'import json, sys; it = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1" <<<"$output" 2>&1; }
# eventually SECONDS COMMAND…: waits until the command succeeds.
eventually() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { fail "never became true: $*"; return 1; }
    sleep 0.2
  done
}
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("localhost", 0)); print(s.getsockname()[1])'
}

# A machine is a folder with its programs.
for machine in "desk hone hone-server" "builder hone-worker hone-builder" "board hone-worker hone-runner"; do
  set -- $machine
  mkdir "$work/$1"
  for program in "${@:2}"; do cp "$bin/$program" "$work/$1/"; done
done
hone=$work/desk/hone
cd "$work" || exit 1
port=$(free_port)
matmul="matmul m=48 n=64 k=32"

step "10: init needs a folder, listens where --host says, and does not overwrite"
run 2 "$work/desk/hone-server" init
says "DIR is required"
run 0 "$work/desk/hone-server" init team --host localhost --port "$port" --worker builder-1
grep -Eq '^listen *= *.*(localhost|127\.0\.0\.1)' team/hone.toml || fail "$(grep listen team/hone.toml)"
before=$(sha256sum team/*)
run 1 "$work/desk/hone-server" init team --host localhost
is "$(sha256sum team/*)" "$before"

step "14: the configuration of a worker is readable by its owner only"
run 0 "$hone" worker-config --authority team --name pi-07 -o pi-07.conf
is "$(stat -c %a pi-07.conf)" 600
before=$(sha256sum pi-07.conf)
run 1 "$hone" worker-config --authority team --name pi-07 -o pi-07.conf
says "--overwrite"
is "$(sha256sum pi-07.conf)" "$before"

step "13: --name is a name"
run 2 "$hone" worker-config --authority team --name ../x -o x.conf

"$work/desk/hone-server" --config team/hone.toml 2>server.log &
server=$!
eventually 60 grep -q "serving on" server.log
grep -q "hone.db, which is new and empty$" server.log || fail "$(<server.log)"
"$work/builder/hone-worker" --config team/worker-builder-1.conf --state-dir builder-state 2>builder.log &
start_board() {
  "$work/board/hone-worker" --config pi-07.conf --state-dir board-state 2>>board.log &
  board=$!
}
start_board
team=("$hone" --config team/client.conf)
admin=("$hone" --config team/admin.conf)
both_are_ready() {
  output=$("${admin[@]}" workers list --json) && [ "$(json 'sum(w["connected"] for w in it["workers"])')" = 2 ]
}
eventually 120 both_are_ready

step "18: the first trial is the first choice of the search, beside the default"
run 0 "${team[@]}" tune $matmul --trials 1 --json
is "$(json 'it["trials"]')" 1
is "$(json 'it["default"]["latency_ns"] > 0 and it["own_best"]["latency_ns"] > 0')" True

step "1: one latency everywhere"
is "$(json 'it["state"]')" done
best=$(json 'it["best"]["latency_ns"]')
run 0 "${team[@]}" best $matmul --json
is "$(json 'it["best"]["latency_ns"]')" "$best"
run 0 "${team[@]}" jobs list --json
is "$(json 'it["jobs"][0]["best"]["latency_ns"]')" "$best"

step "2: records name the builder's versions"
run 0 "${team[@]}" records query --limit 0 --json
is "$(json 'all(r["environment"]["codegen_version"] > 0 and r["environment"]["compiler"] for r in it["records"])')" True

step "13: the trace is printed on request, and narrow terminals keep numbers whole"
COLUMNS=40 run 0 "${team[@]}" best $matmul
says_not "trace 1"
run 0 "${team[@]}" best $matmul --trace
says "trace 1"

step "16: several workloads, lists, and jobs that nobody waits for"
printf '%s\n' "$matmul" "softmax m=32 n=32" >list.txt
run 0 "${team[@]}" tune --file list.txt --trials 2 --fail-if-unconfirmed --json
is "$(json '[job["state"] for job in it["jobs"]]')" "['done', 'done']"
run 0 "${team[@]}" best --file list.txt --json
run 0 "${team[@]}" tune relu m=64 n=64 --trials 2 --detach
says "hone jobs watch"
detached=$(grep -Eo 'watch [0-9]+' <<<"$output$errors" | grep -Eo '[0-9]+' | head -1)
run 0 "${team[@]}" jobs watch "$detached"

step "8: Ctrl-C, cancelling, and their exit codes"
# Small enough that a simulated latency, which is 1 ms or more, does not exceed the simulated peak.
timeout 240 "${team[@]}" tune matmul m=256 n=256 k=256 --time 100s --json >interrupted 2>interrupted.log &
tune=$!
sleep 5
pkill -INT -P "$tune" hone
wait "$tune"
is $? 130
output=$(<interrupted) errors=$(<interrupted.log)
is "$(json 'it["state"]')" cancelled
timeout 240 "${team[@]}" tune matmul m=256 n=256 k=128 --time 100s --json >cancelled 2>cancelled.log &
tune=$!
running() { "${team[@]}" jobs list | grep -E '^[0-9]+ +(running|confirming)'; }
eventually 60 running
job=$("${team[@]}" jobs list | grep -E '^[0-9]+ +(running|confirming)' | head -1 | cut -d' ' -f1)
run 0 "${team[@]}" jobs cancel "$job"
output=$("${team[@]}" jobs list | grep "^$job ")
says cancelled
wait "$tune"
is $? 1

step "6: a second process with a worker's name does not cost the first one its work"
timeout 20 "$work/board/hone-worker" --config pi-07.conf --state-dir other-state 2>other.log
eventually 60 both_are_ready
run 0 "${team[@]}" tune add m=64 n=64 --trials 1

step "4: a wait names the missing worker, and 14: workers list after a restart"
kill -9 "$board"
wait "$board" 2>/dev/null
timeout 200 "${team[@]}" tune sigmoid m=64 n=64 --trials 1 >waiting 2>&1 &
tune=$!
eventually 120 grep -q "pi-07 was last seen" waiting
grep -q "the job fails if this lasts until" waiting || fail "$(<waiting)"
run 0 "${admin[@]}" doctor
says "pi-07 was last seen on"
says "start hone-worker on its machine"
start_board
wait "$tune"
is $? 0

step "5: a missing file is wrong usage; 3 means that nothing is known"
run 2 "$hone" --server "localhost:$port" --ca nope.pem jobs list
says "nope.pem"
run 2 "$hone" --config nope.conf jobs list
run 2 "${team[@]}" tune nope.hone --trials 1
run 2 "${team[@]}" tune $matmul --trials 1 --cost-model nope
run 3 "${team[@]}" best matmul m=7 n=7 k=7

step "9: errors are sentences, without log lines of libraries"
run 4 "$hone" --server "localhost:$port" --insecure jobs list
says_not "E0000"
says_not "ipv4:"
run 1 "$work/desk/hone-server" --listen "localhost:$port" --store other.db
says "another program listens"
says_not "E0000"

step "14: addresses that are URLs, and failures in JSON"
run 2 "$hone" --server "http://localhost:$port" jobs list
says "http"
run 3 "${team[@]}" best matmul m=7 n=7 k=7 --json
is "$(json 'len(it["error"]) > 0')" True

step "21: a drained worker, the jobs that wait for it, and how to go on"
run 0 "${team[@]}" tune matmul m=192 n=256 k=192 --time 600s --detach
job=$(grep -Eo 'watch [0-9]+' <<<"$output$errors" | grep -Eo '[0-9]+' | head -1)
run 0 "${admin[@]}" workers drain pi-07
says "so job $job waits"
says "hone workers resume pi-07"
run 0 "${admin[@]}" doctor
says "pi-07 is drained; an administrator gives it work again with hone workers resume pi-07"
says_its_end() { "${team[@]}" jobs show "$job" | grep -q "the job.s time is over at"; }
eventually 20 says_its_end
run 0 "${admin[@]}" workers resume pi-07
run 0 "${team[@]}" jobs cancel "$job" --now

step "a wrong token is one problem, with one line"
printf '%064d\n' 0 >wrong.token
chmod 600 wrong.token
run 1 "$hone" doctor --server "localhost:$port" --ca team/ca.pem --token-file wrong.token
is "$(grep -c '^problem' <<<"$output")" 1
says "1 problem"
run 0 "${team[@]}" doctor

step "20: a worker that was stopped is away at once, and a cancelled job does not wait for it"
job_has_results() {
  output=$("${team[@]}" jobs list --json) && [ "$(json 'it["jobs"][0]["outcomes"].get("ok", 0) > 1')" = True ]
}
run 0 "${team[@]}" tune matmul m=192 n=256 k=256 --time 600s --detach
job=$(grep -Eo 'watch [0-9]+' <<<"$output$errors" | grep -Eo '[0-9]+' | head -1)
eventually 120 job_has_results
kill -TERM "$board"
wait "$board"
board_is_away() {
  output=$("${admin[@]}" workers list --json) && [ "$(json '[w["connected"] for w in it["workers"] if w["stopping"]]')" = "[False]" ]
}
eventually 10 board_is_away
run 0 "${admin[@]}" workers list
says_not stopping
# The server looks for missing workers once a second.
job_waits() { "${team[@]}" jobs list | grep -q "waiting for a worker"; }
eventually 10 job_waits
run 0 "${team[@]}" jobs show "$job"
says "it waits: no worker runs target"
run 0 timeout 60 "${team[@]}" jobs cancel "$job"
says cancelled

# From here on, hone is alone with its private server, which finds the other programs beside it.
hone=$bin/hone

step "19: drafts and their code for every preset, without a device"
run 2 "$hone" show matmul m=64 n=64 k=64 --target nope --draft
presets=$(sed -n 's/.*names are native, \(.*\), cuda, opencl (.*/\1/p' <<<"$errors" | tr -d ,)
is "$(wc -w <<<"$presets")" 27
# The code for NVIDIA's GPUs needs their compiler.
[ "$("$(dirname "$hone")/hone-builder" --describe | grep -c nvrtc_problem)" = 0 ] || presets=$(tr ' ' '\n' <<<"$presets" | grep -v nvidia)
for preset in $presets; do
  run 0 "$hone" show matmul m=64 n=64 k=64 --target "$preset" --draft --code
  case $preset in
    arm/mali-* | generic/opencl) says __kernel ;;
    nvidia/*) says __global__ ;;
    arm/cortex-a7) says vfma ;;
    arm*) says fmla ;;
    x86-avx512 | intel/*) says zmm ;;
    *) says ymm ;;
  esac
done
run 3 "$hone" best matmul m=64 n=64 k=64

step "3: imported records are known"
run 0 "${admin[@]}" records export -o records.jsonl
run 0 "$hone" records import records.jsonl
run 0 "$hone" best --nearest matmul m=80 n=96 k=40 --json
run 0 "$hone" revalidate $matmul --json
run 0 "$hone" best $matmul

step "16: pins, kernels for programs, and forgetting"
run 0 "$hone" pin $matmul
run 0 "$hone" tune $matmul --trials 4 --seed 7 --json
is "$(json 'it["best"]["pinned"] is not None')" True
run 0 "$hone" pin
says "matmul"
run 0 "$hone" pin $matmul --remove
run 3 "$hone" pin $matmul --remove
run 0 "$hone" export $matmul -o kernels
python3 - "$(dirname "$bin")/lib/libhone_lookup.so" "$matmul" <<'P' || fail "the library does not find the kernel"
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
folder, kernel = ctypes.c_void_p(), ctypes.c_void_p()
assert library.hone_lookup_open(b"kernels", ctypes.byref(folder)) == 0
words = sys.argv[2].split()
for spelling in (words, words[:1] + words[:0:-1]):
    text = " ".join(spelling).encode()
    assert library.hone_lookup_find(folder, text, ctypes.c_double(0), ctypes.byref(kernel)) == 0, text
assert library.hone_lookup_find(folder, b"matmul m=7 n=7 k=7", ctypes.c_double(0), ctypes.byref(kernel)) == 1
P
run 0 "$hone" forget $matmul
run 3 "$hone" best $matmul
run 3 "$hone" forget $matmul

step "7: run computes without publishing"
python3 - <<'P'
import struct
for name, shape in (("A", (64, 80)), ("B", (80, 96))):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    count = shape[0] * shape[1]
    with open(name + ".npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%df" % count, *range(count)))
P
run 0 "$hone" run matmul m=64 n=96 k=80 --in A.npy --in B.npy --out C.npy
says "a job builds, checks and times"
says "publishes nothing"
# On a busy machine the default schedule may be the faster one.
[[ $output == *"default schedule"* ]] || says "first"
run 3 "$hone" best matmul m=64 n=96 k=80
says_not "measured candidates"
run 1 "$hone" run matmul m=64 n=96 k=80 --in A.npy --in B.npy --out nowhere/C.npy
says_not "a job builds"

step "11: the language explains itself"
run 0 "$hone" primitives split
says "split("
run 0 "$hone" operators matmul
printf 'workload w\ninput A: f32[8]\noutput B[i: 8] = product(k: 8) A[k]\n' >w.hone
run 2 "$hone" show w.hone
says "prod"

step "12: --time includes the start of the worker and the confirmation"
run 0 "$hone" tune matmul m=96 n=96 k=96 --time 10s --json
echo "  --time 10s took $(json 'round(it["wall_s"], 1)') s"

step "15: help"
run 0 "$hone" help connection
says "token-file"
run 0 "$hone" help
run 0 "$hone" -V
run 2 "$work/board/hone-worker" --nonsense
says "hone-worker:"

step "17: doctor prepares a quiet machine, and tune warns of the same disturbances"
run 0 "$hone" doctor --prepare
says "#!/bin/sh"
(while :; do :; done) & (while :; do :; done) & (while :; do :; done) &
busy=$(jobs -p | tail -3)
busy_says_doctor() { "$hone" doctor | grep -Eq "^warning +load"; }
eventually 120 busy_says_doctor
run 0 "$hone" tune matmul m=32 n=32 k=32 --trials 1
says "load of this machine"
kill $busy

kill -TERM "$server"
wait "$server"
is $? 0
echo "$failures failures"
[ "$failures" -eq 0 ]
