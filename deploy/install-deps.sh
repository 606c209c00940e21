#!/usr/bin/env bash
# Installs the packages of the distribution (Debian 12) that Hone needs. Idempotent and quiet; if everything is installed,
# it does nothing and needs no root.
#   deploy/install-deps.sh [--build]       --build: only what a build needs, nothing for tests
# PoCL is an OpenCL driver for the CPU, on which tests run GPU kernels. Tests run ARM kernels under QEMU's user-mode emulation,
# in a small cross-compiled program. NVRTC, NVIDIA's compiler, is a Python package. It is installed in ~/.cache/hone/nvrtc,
# where hone-builder finds it. Without it, tests of CUDA kernels are skipped. Chromium is only for the tests of the web page,
# mkdocs for the site of the documentation, h5py, curl and jq for the commands of its pages,
# Prometheus (22 MB to download, 320 MB installed) for those of the dashboard and the alerts, and the Python package
# kubernetes-validate (23 MB to download, in ~/.cache/hone/kubernetes-validate) for those of the manifests; without them these are skipped.
set -euo pipefail

install_nvrtc() {
  local folder="${XDG_CACHE_HOME:-$HOME/.cache}/hone/nvrtc"
  compgen -G "$folder/nvidia/*/lib/libnvrtc.so.*" >/dev/null && return
  [ -n "${HONE_NVRTC:-}" ] && return
  # A virtual environment for pip, because not every Python has it.
  local work log
  work=$(mktemp -d)
  log="$work/log"
  if ! { python3 -m venv "$work/python" &&
         "$work/python/bin/pip" install --quiet --no-deps --target "$work/nvrtc" nvidia-cuda-nvrtc-cu12 &&
         mkdir -p "$(dirname "$folder")" && rm -rf "$folder" && mv "$work/nvrtc" "$folder"; } >"$log" 2>&1; then
    tail -n 3 "$log" >&2
    echo "install-deps: NVRTC (90 MB, nvidia-cuda-nvrtc-cu12) could not be installed; tests that compile CUDA are skipped" >&2
  fi
  rm -rf "$work"
}

install_kubernetes_schemas() {
  local folder="${XDG_CACHE_HOME:-$HOME/.cache}/hone/kubernetes-validate"
  [ -x "$folder/bin/kubernetes-validate" ] && return
  local log
  log=$(mktemp)
  if ! { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet kubernetes-validate; } >"$log" 2>&1; then
    tail -n 3 "$log" >&2
    rm -rf "$folder"
    echo "install-deps: kubernetes-validate (23 MB) could not be installed; the manifests are not checked against their schemas" >&2
  fi
  rm -f "$log"
}

# What a build needs, and what tests need beyond it.
packages=(
  build-essential cmake ninja-build ccache file mold pkg-config git
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  llvm-19-dev liblld-19-dev zlib1g-dev libzstd-dev
  libxgboost-dev libsqlite3-dev libcpp-httplib-dev libhdf5-dev libpq-dev libxxhash-dev nlohmann-json3-dev libcli11-dev libspdlog-dev
  libeigen3-dev libonnx-dev
  libjemalloc-dev libhwloc-dev libseccomp-dev libssl-dev prometheus-cpp-dev
  opencl-c-headers
)
test_packages=(
  clang-format-19 postgresql prometheus
  python3-numpy python3-venv python3-grpcio python3-protobuf python3-pytest python3-yaml
  ocl-icd-libopencl1 pocl-opencl-icd clang-19
  gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf g++-aarch64-linux-gnu g++-arm-linux-gnueabihf
  libc6-dev-arm64-cross libc6-dev-armhf-cross qemu-user llvm-19
  chromium chromium-driver mkdocs mkdocs-material python3-yaml python3-h5py curl jq libgtest-dev libgmock-dev libbenchmark-dev libdnnl-dev libopenblas-dev libonnx-testdata zsh fish
)
case ${1:-} in
  --build) ;;
  "") packages+=("${test_packages[@]}");;
  *) echo "install-deps: unknown option $1; usage: deploy/install-deps.sh [--build]" >&2; exit 2;;
esac
finish() { [ "${1:-}" = --build ] || { install_nvrtc; install_kubernetes_schemas; }; }

missing=()
for package in "${packages[@]}"; do
  if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
    missing+=("$package")
  fi
done
if [ ${#missing[@]} -eq 0 ]; then
  finish "$@"
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "install-deps: this is not a Debian system; install the counterparts of: ${missing[*]}" >&2
  exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    run=(sudo)
  else
    echo "install-deps: these packages are missing, and installing them needs root: ${missing[*]}" >&2
    echo "install-deps: run as root:  apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${run[@]}" apt-get update -qq &&
       "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
     >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "install-deps: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
finish "$@"
