#!/usr/bin/env bash
# Runs the bundle of deploy/bundle-worker.sh for this architecture in a root that has nothing else: no C library, no shell.
#   sudo tests/deploy/bare_root.sh BUNDLE
# Exits with 77, which ctest shows as skipped, if there is no such folder, or if this user may not change the root folder.
set -euo pipefail
[ -d "$1" ] || { echo "bare_root: there is no folder $1; deploy/bundle-worker.sh --arch x86_64 -o $1 makes it" >&2; exit 77; }
bundle=$(cd "$1" && pwd)
unshare --mount bash -c 'mount -t proc proc /proc && chroot / true' 2>/dev/null ||
  { echo "bare_root: run it as root, because it mounts /proc and changes the root folder" >&2; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/proc" "$root/tmp" "$root/state"
cp -r "$bundle" "$root/hone"
run() { unshare --mount bash -ec 'mount -t proc proc "$1/proc"; exec chroot "$@"' bare_root "$root" "$@"; }
doctor=$(run /hone/hone-worker --doctor --state-dir /state)
echo "$doctor"
grep -q 'C library .*that of the bundle' <<< "$doctor" || { echo "bare_root: the bundle's C library is not used" >&2; exit 1; }
run /hone/hone-worker --list-devices
