#!/usr/bin/env bash
# Tunes a shape of each common family of workloads, and prints a Markdown table: trials, share of invalid candidates (the target is at
# most 2 %), rate, share of peak, speed-up over the default schedule, and trials per minute with the confirmation. Results are stored like
# those of any tuning.
#   tests/bench/families.sh [-t TRIALS] [-T TARGET] [OPERATOR key=value… as one word]…      default: 32 trials of every family on the CPU
set -euo pipefail
cd "$(dirname "$0")/../.."
hone=${HONE_BUILD_DIR:-build/release}/bin/hone
trials=32
target=native
while getopts t:T: option; do
  case $option in
    t) trials=$OPTARG ;;
    T) target=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
families=("$@")
[ ${#families[@]} -gt 0 ] || families=(
  "conv1d n=1 l=256 ci=64 co=128 k=3 s=2 p=1"
  "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1"
  "conv3d n=1 d=16 h=56 w=56 ci=64 co=64 k=1 s=1 p=0"
  "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=2 dil=2"
  "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1 groups=4"
  "batch_matmul b=1 m=512 n=32 k=512"
  "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1"
  "conv2d_transpose n=1 h=8 w=8 ci=256 co=128 k=4 s=2 p=1"
  "capsule_conv2d n=1 h=8 w=8 ci=32 co=32 k=3 s=1 p=1"
  "norm b=1 m=512 n=512"
  "softmax m=512 n=512"
  "conv2d_bn_relu n=1 h=28 w=28 ci=128 co=256 k=1 s=2 p=0"
  "transpose_batch_matmul b=1 s=128 h=12 d=64"
  "winograd_conv2d n=1 h=14 w=14 ci=128 co=128"
)

# Prints a number from a line of JSON, or 0 if it is missing.
number() { grep -o "\"$1\":[0-9.e+-]*" <<<"$2" | head -1 | cut -d: -f2 | grep . || echo 0; }

echo "| workload | trials | invalid | other failures | GFLOP/s | share of peak | × default | trials/min |"
echo "|---|---|---|---|---|---|---|---|"
for family in "${families[@]}"; do
  # The words of an operator must be split.
  # shellcheck disable=SC2086
  line=$("$hone" tune $family --target "$target" --trials "$trials" --json 2>/dev/null) || true
  outcomes=$(grep -o '"outcomes":{[^}]*}' <<<"$line" || true)
  total=$(number trials "$line") ok=$(number ok "$outcomes") invalid=$(number invalid "$outcomes")
  best=$(grep -o '"best":{.*' <<<"$line" || true)
  default=$(grep -o '"default":{[^}]*}' <<<"$line" || true)
  awk -v d="$(number latency_ns "$default")" -v b="$(number latency_ns "$best")" -v w="$(number wall_s "$line")" -v f="$family" -v t="$total" -v ok="$ok" -v i="$invalid" -v g="$(number gflops "$best")" -v p="$(number peak_gflops "$line")" \
    'BEGIN { printf "| %s | %d | %.1f %% | %d | %.1f | %s | %.1f | %.0f |\n", f, t, t ? 100 * i / t : 0, t - ok - i, g,
      (p > 0 ? sprintf("%.0f %%", 100 * g / p) : ""), (b > 0 ? d / b : 0), (w > 0 ? 60 * t / w : 0) }'
done
