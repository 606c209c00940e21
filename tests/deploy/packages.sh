#!/usr/bin/env bash
# Makes the Debian packages of a build and looks into them: tests/deploy/packages.sh BUILD
# tests/deploy/packages_in_root.sh installs them in a new Debian, which takes minutes and needs root and the network.
# Exits with 77, which ctest shows as skipped, if this is not a Debian system.
set -euo pipefail
build=$(realpath "$1")
command -v dpkg-shlibdeps >/dev/null || { echo "packages: skipped, because dpkg-shlibdeps is missing" >&2; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "packages: $*" >&2
  exit 1
}
cpack --config "$build/CPackConfig.cmake" -B "$folder" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; fail "cpack failed"; }

# Every package has its files and a description, and depends on the libraries of its programs.
package() { ls "$folder/$1"_[0-9]*.deb; }
field() { dpkg-deb --field "$(package "$1")" "$2"; }
for deb in "$folder"/*.deb; do dpkg-deb --contents "$deb" >"$deb.files"; done
has() { grep -q " \./$2\$" "$(package "$1").files" || fail "$1 has no $2"; }
has hone usr/bin/hone; has hone usr/share/man/man1/hone.1; has hone usr/share/bash-completion/completions/hone
has hone-server usr/bin/hone-server; has hone-server usr/bin/hone-backup
for unit in hone-server.service hone-backup.service hone-backup.timer; do has hone-server "usr/lib/systemd/system/$unit"; done
has hone-server usr/share/doc/hone-server/alerts.yml
for program in hone-worker hone-builder hone-runner; do has hone-worker "usr/bin/$program"; done
has hone-worker usr/lib/systemd/system/hone-worker@.service
has libhone-lookup usr/include/hone_lookup.h
for name in hone hone-server hone-worker libhone-lookup; do
  [ "$(field "$name" Package)" = "$name" ] || fail "$name has another name"
  [ -n "$(field "$name" Description)" ] || fail "$name has no description"
  field "$name" Depends | grep -q 'libc6 (>=' || fail "$name does not depend on libraries"
done
field hone-server Depends | grep -q 'libxgboost' || fail "hone-server does not depend on XGBoost"
field hone-worker Depends | grep -q 'libllvm19' || fail "hone-worker does not depend on LLVM"
field hone-server Depends | grep -Eq '(^|, )hone(,|$)' || fail "hone-backup needs hone"
! field hone-worker Depends | grep -q 'libllvm19.*libxgboost' || fail "hone-worker depends on libraries of the server"
# No file is in two packages, so all can be installed.
twice=$(awk '$1 ~ /^-/ {print $6}' "$folder"/*.files | sort | uniq -d)
[ -z "$twice" ] || fail "in two packages: $twice"

# The scripts make the users of the units.
for name in hone-server hone-worker; do
  dpkg-deb --control "$(package "$name")" "$folder/$name"
  dpkg-deb --extract "$(package "$name")" "$folder/root"
  for script in postinst prerm postrm; do
    [ -x "$folder/$name/$script" ] || fail "$name has no $script"
    sh -n "$folder/$name/$script"
    ! grep -q '@[A-Z_]*@' "$folder/$name/$script" || fail "$name: $script has a variable of CMake"
  done
done
user_of() { sed -n 's/^User=//p' "$folder/root/usr/lib/systemd/system/$1"; }
for pair in hone-server:hone-server.service hone-worker:hone-worker@.service; do
  grep -q "useradd .* $(user_of "${pair#*:}")\$" "$folder/${pair%%:*}/postinst" || fail "${pair%%:*} does not make the user of its unit"
done
for unit in "$folder"/root/usr/lib/systemd/system/*.service; do
  page=$(sed -n 's#^Documentation=file://##p' "$unit")
  [ -f "$folder/root$page" ] || fail "$(basename "$unit") names $page, which no package has"
done
[ "$(user_of hone-backup.service)" = "$(user_of hone-server.service)" ] || fail "backups have another user than the server that writes them"
if command -v systemd-analyze >/dev/null; then
  sed -i "s#/usr/bin/#$folder/root/usr/bin/#" "$folder"/root/usr/lib/systemd/system/*
  systemd-analyze verify "$folder/root/usr/lib/systemd/system/hone-backup.timer" 2>"$folder/verified" || fail "$(cat "$folder/verified")"
fi
# Installed programs find each other.
export XDG_DATA_HOME=$folder/data XDG_CACHE_HOME=$folder/cache XDG_RUNTIME_DIR=$folder/run
mkdir -p -m 700 "$XDG_RUNTIME_DIR"
dpkg-deb --extract "$(package hone)" "$folder/root"
"$folder/root/usr/bin/hone" doctor >"$folder/doctor" || true
grep -Eq '^ok +programs' "$folder/doctor" || fail "hone doctor does not find the programs: $(cat "$folder/doctor")"
sizes=$(for deb in "$folder"/*.deb; do echo "$(basename "$deb") $(($(stat -c %s "$deb") >> 10)) KiB,"; done)
echo "packages: in order:" ${sizes%,}
