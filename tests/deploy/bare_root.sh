#!/usr/bin/env bash
# Runs the bundle of deploy/bundle-worker.sh for this architecture in a root that has nothing else: no C library, no shell.
#   sudo tests/deploy/bare_root.sh BUNDLE
set -euo pipefail
bundle=$(cd "$1" && pwd)
[ "$(id -u)" -eq 0 ] || { echo "bare_root: run it as root: it changes the root folder" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/proc" "$root/tmp" "$root/state"
cp -r "$bundle" "$root/hone"
run() { unshare --mount bash -ec 'mount -t proc proc "$1/proc"; exec chroot "$@"' bare_root "$root" "$@"; }
doctor=$(run /hone/hone-worker --doctor --state-dir /state)
echo "$doctor"
grep -q 'C library .*that of the bundle' <<< "$doctor" || { echo "bare_root: the bundle's C library is not used" >&2; exit 1; }
run /hone/hone-worker --list-devices
