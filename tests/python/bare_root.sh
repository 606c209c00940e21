#!/usr/bin/env bash
# Builds the wheel of a finished build, unless its programs and the package are older than the last one, and uses it in a root
# that has only Python, the C library and libstdc++: no compiler, no LLVM, no gRPC, no shell.
#   tests/python/bare_root.sh BUILD
# Needs PyPI the first time; what it gives is kept in BUILD/wheel. Exits with 77, which ctest shows as skipped, if PyPI cannot be
# reached, or if this user may not change the root folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1")
work=$build/wheel
skip() { echo "tests/python/bare_root.sh: skipped, because $1"; exit 77; }
python=$(realpath "$(command -v /usr/bin/python3 || command -v python3)")
"$python" -c "import venv, ensurepip" 2>/dev/null || skip "$python has no venv; deploy/install-deps.sh installs it"
namespace=(unshare --mount --pid --fork --kill-child)
[ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
"${namespace[@]}" bash -c 'mount -t proc proc /proc && chroot / true' 2>/dev/null ||
  skip "this user may not make namespaces and change the root folder"
packages=$work/packages-$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
if [ ! -d "$packages" ] || [ ! -x "$work/tools/bin/auditwheel" ]; then
  rm -rf "$work/venv" "$packages" "$packages.new"
  "$python" -m venv "$work/venv"
  "$work/venv/bin/pip" download --quiet --disable-pip-version-check --only-binary :all: -d "$packages.new" \
    grpcio protobuf numpy "tomli; python_version < '3.11'" || skip "PyPI does not answer, and its packages are not in $work yet"
  mv "$packages.new" "$packages"
fi

newest=$(ls -t "$work"/dist/hone-*.whl 2>/dev/null | head -n 1 || true)
sources=("$build"/bin/hone "$build"/bin/hone-{server,worker,builder,runner} "$build/lib/libhone_lookup.so" "$build/python/protocol.binpb"
         deploy/build-wheel.sh)
mapfile -t -O ${#sources[@]} sources < <(git ls-files client/python)
is_old() {
  local source
  for source in "${sources[@]}"; do
    [ "$source" -nt "$newest" ] && return
  done
  return 1
}
if [ -z "$newest" ] || is_old; then
  rm -rf "$work/dist"
  deploy/build-wheel.sh -o "$work/dist" --build "$build" --built
  newest=$(ls "$work"/dist/hone-*.whl)
fi
tests/python/wheel_facts.sh "$newest"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{proc,sys,dev,tmp,hone}
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$packages" --target "$root/hone" "$newest"
cp tests/python/use_wheel.py tests/client/network/onnx/testdata/mnist-8.onnx "$root/hone/"
# Python with its library, and the libraries of each distribution that it and the wheel's programs may use.
stdlib=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
mkdir -p "$root$(dirname "$python")" "$root$stdlib"
cp "$python" "$root$python"
tar -C "$stdlib" --exclude=test --exclude=__pycache__ --exclude=site-packages --exclude='config-*' -c . | tar -C "$root$stdlib" -x
copy_libraries() {
  local library
  for library in $(ldd "$@" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p' | sort -u); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}
copy_libraries "$python" "$stdlib"/lib-dynload/_ctypes.*.so
for library in libc libm libdl librt libpthread libresolv libgcc_s libstdc++ libz; do
  file=$(ldconfig -p | sed -n "s/^\t$library\.so\.[0-9]* (libc6,x86-64.*=> //p" | head -n 1)
  [ -n "$file" ] || continue
  mkdir -p "$root$(dirname "$file")"
  cp -L "$file" "$root$file"
done
for name in cc gcc ld clang sh; do
  if [ -e "$root/bin/$name" ] || [ -e "$root/usr/bin/$name" ]; then
    echo "bare_root: the root has a $name" >&2
    exit 1
  fi
done
"${namespace[@]}" bash -ec '
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount -t tmpfs tmpfs "$1/dev"
  for device in null zero urandom; do
    touch "$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
  done
  ln -s /proc/self/fd "$1/dev/fd"
  ln -s /proc/self/fd/0 "$1/dev/stdin"
  env -i HOME=/tmp PATH=/hone/bin PYTHONPATH=/hone PYTHONDONTWRITEBYTECODE=1 "$(command -v chroot)" "$1" "$2" -c "
import os, sys
os.chdir(\"/tmp\")
sys.argv = [\"use_wheel.py\", \"/hone/mnist-8.onnx\", \"/hone\"]
exec(open(\"/hone/use_wheel.py\").read())"
' bare_root "$root" "$python"
