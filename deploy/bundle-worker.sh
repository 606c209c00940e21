#!/usr/bin/env bash
# Makes one folder with hone-worker and hone-runner for a board or a GPU machine:
#   deploy/bundle-worker.sh --arch aarch64|armv7|x86_64 -o DIR [--build DIR] [--jobs N]
# The folder needs only Linux on the machine: copy it there and follow its README.txt. It has no compiler, so another
# machine of the fleet must build (hone-worker with hone-builder). Prints the bundle's size and the memory of an idle worker,
# for which programs of another architecture run under QEMU's user-mode emulation.
# The build needs the cross compiler, and the network the first time, to download libraries (board-packages.sh).
# Exit codes: 1 failed, 2 usage, 3 the libraries could not be downloaded.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "bundle-worker: $1; usage: deploy/bundle-worker.sh --arch aarch64|armv7|x86_64 -o DIR [--build DIR] [--jobs N]" >&2
  exit 2
}
arch= out= build= jobs=$(nproc)
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage "$1 needs a value"
  case $1 in
    --arch) arch=$2;;
    -o) out=$2;;
    --build) build=$2;;
    --jobs) jobs=$2;;
    *) usage "unknown option $1";;
  esac
  shift 2
done
[ -n "$out" ] || usage "-o is missing"
# Debian's name, the compiler's prefix, the program loader, its package, the emulator, and the largest size in MiB.
case $arch in
  aarch64) debian=arm64 tools=aarch64-linux-gnu- libs=/usr/aarch64-linux-gnu/lib loader=ld-linux-aarch64.so.1 qemu=qemu-aarch64 most=25;;
  armv7) debian=armhf tools=arm-linux-gnueabihf- libs=/usr/arm-linux-gnueabihf/lib loader=ld-linux-armhf.so.3 qemu=qemu-arm most=25;;
  x86_64) debian=amd64 tools= libs=/usr/lib/x86_64-linux-gnu loader=ld-linux-x86-64.so.2 qemu= most=50;;
  "") usage "--arch is missing";;
  *) usage "unknown architecture $arch";;
esac
build=${build:-build/worker-$arch}
for program in "${tools}g++" $qemu; do
  command -v "$program" >/dev/null || { echo "bundle-worker: $program is missing; deploy/install-deps.sh installs it" >&2; exit 1; }
done
if [ "$arch" = x86_64 ] && [ "$(uname -m)" != x86_64 ]; then
  echo "bundle-worker: the bundle for x86_64 is made on an x86-64 machine" >&2
  exit 1
fi

deploy/board-packages.sh "$debian" "$build/packages" || exit 3
options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-Os" "-DCMAKE_CXX_FLAGS_RELEASE=-Os" -DHONE_WORKER_ONLY=ON
         "-DHONE_PACKAGES=$(cd "$build/packages" && pwd -P)" -DHONE_WERROR=ON)
[ "$arch" = x86_64 ] || options+=("-DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/$arch.cmake")
cmake -S . -B "$build" -G Ninja "${options[@]}" >"$build/configure.log" ||
  { tail -n 20 "$build/configure.log" >&2; exit 1; }
cmake --build "$build" --target hone-worker hone-runner -- -j "$jobs" >"$build/build.log" ||
  { tail -n 40 "$build/build.log" >&2; exit 1; }

mkdir -p "$out/libc"
install -m 755 "$build/bin/hone-worker" "$build/bin/hone-runner" "$out/"
# GPU drivers may need the old names of libraries that are now in the C library.
install -m 755 "$libs/$loader" "$out/libc/ld.so"
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  install -m 644 "$libs/$library" "$out/libc/$library"
done
install -m 644 deploy/systemd/hone-worker@.service deploy/bundle/README.txt "$out/"

bytes=$(du -sb "$out" | cut -f1)
printf '%s: %d.%d MiB (limit %d)\n' "$arch" $((bytes >> 20)) $(((bytes & 1048575) * 10 >> 20)) "$most"
[ "$bytes" -le $((most << 20)) ] || { echo "bundle-worker: the bundle is too large" >&2; exit 1; }
deploy/bundle/idle-memory.sh "$out" $qemu
