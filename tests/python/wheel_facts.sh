#!/usr/bin/env bash
# Checks what a user of a wheel relies on: its size, its tag, and that its programs need no other library of the machine.
#   tests/python/wheel_facts.sh WHEEL
set -euo pipefail
wheel=$1
fail() { echo "wheel_facts: $wheel $1" >&2; exit 1; }
bytes=$(stat -c %s "$wheel")
[ "$bytes" -le $((150 << 20)) ] || fail "has $bytes bytes, which is more than 150 MiB"
glibc=$(getconf GNU_LIBC_VERSION)
tag=py3-none-manylinux_2_${glibc##*.}_$(uname -m)
[[ $(basename "$wheel") == hone-*-"$tag"*.whl ]] || fail "does not have the tag $tag"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m zipfile -e "$wheel" "$work"
grep -q "^Tag: $tag" "$work"/hone-*.dist-info/WHEEL || fail "does not name the tag $tag inside"
chmod +x "$work"/hone/native/bin/*
for program in "$work"/hone/native/bin/* "$work"/hone/native/lib/*.so; do
  if ldd "$program" | grep -v 'hone\.libs\|linux-vdso\|ld-linux\|lib\(c\|m\|gcc_s\|stdc++\|pthread\|resolv\|dl\|rt\|z\)\.so'; then
    fail "has a ${program##*/} that needs these libraries of this machine"
  fi
done
echo "$(basename "$wheel"): $(((bytes + 1048575) / 1048576)) MiB"
