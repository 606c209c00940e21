#!/usr/bin/env bash
# Installs the build in a folder, as a package does, and uses what is there: tests/deploy/install.sh BUILD PROGRAMS
# PROGRAMS: the folder of the programs that tune, which may be the simulated ones.
set -euo pipefail
build=$(realpath "$1") programs=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "install.sh: $*" >&2
  exit 1
}
cmake --install "$build" --prefix "$folder/usr" --component lookup >"$folder/log"
for component in client server worker; do
  cmake --install "$build" --prefix "$folder/usr" --component "$component" >>"$folder/log"
done

# The programs and what describes them.
"$folder/usr/bin/hone" --version | grep -q '^hone [0-9]' || fail "hone does not start"
for program in hone-server hone-worker hone-builder hone-runner; do
  [ -x "$folder/usr/bin/$program" ] || fail "$program is missing"
done
for page in hone hone-tune hone-records-export hone-completion; do
  [ -s "$folder/usr/share/man/man1/$page.1" ] || fail "the manual page $page is missing"
done
if command -v groff >/dev/null; then
  warnings=$(groff -k -man -Tutf8 -ww -z "$folder"/usr/share/man/man1/*.1 2>&1)
  [ -z "$warnings" ] || fail "groff warns of the manual pages: $warnings"
fi
bash -n "$folder/usr/share/bash-completion/completions/hone"
grep -q compdef "$folder/usr/share/zsh/site-functions/_hone" || fail "the completion of zsh is missing"
grep -q complete "$folder/usr/share/fish/vendor_completions.d/hone.fish" || fail "the completion of fish is missing"

# The library, found by CMake and by pkg-config; the second finds it in a folder that was moved.
cmake -S client/lookup/example -B "$folder/example" -DCMAKE_PREFIX_PATH="$folder/usr" >>"$folder/log"
cmake --build "$folder/example" >>"$folder/log"
loops="three loops: c[1][2] = 380"
[ "$("$folder/example/example" "$folder/none")" = "$loops" ] || fail "the example does not compute"
[ "$("$folder/example/example_static" "$folder/none")" = "$loops" ] || fail "the static example does not compute"
mv "$folder/usr" "$folder/moved"
library=$(dirname "$(find "$folder/moved" -name hone_lookup.pc)")
read -r -a flags < <(PKG_CONFIG_PATH=$library pkg-config --cflags --libs hone_lookup)
cc -std=c11 client/lookup/example/main.c "${flags[@]}" -o "$folder/by_pkg_config"
export LD_LIBRARY_PATH=${library%/pkgconfig}
[ "$("$folder/by_pkg_config" "$folder/none")" = "$loops" ] || fail "the example of pkg-config does not compute"

# With a tuned kernel.
export XDG_DATA_HOME=$folder/data XDG_CACHE_HOME=$folder/cache XDG_RUNTIME_DIR=$folder/run
mkdir -p -m 700 "$XDG_RUNTIME_DIR"
"$programs/hone" tune matmul m=64 n=64 k=64 --trials 4 >"$folder/log" 2>&1 || fail "$(cat "$folder/log")"
"$programs/hone" export matmul m=64 n=64 k=64 -o "$folder/kernels" >"$folder/log" 2>&1 || fail "$(cat "$folder/log")"
[ "$("$folder/by_pkg_config" "$folder/kernels")" = "a tuned kernel: c[1][2] = 380" ] || fail "the kernel does not compute"
echo "install.sh: everything that is installed works"
