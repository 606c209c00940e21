#!/usr/bin/env bash
# Runs both commands of the README in a new root of another Debian release. Run it before each release of Hone.
#   sudo tests/deploy/in_root.sh [SUITE [ROOT [MIRROR]]]      trixie, build/root-SUITE, Debian's mirror
# SUITE is a suite that debootstrap knows: trixie (Debian 13), or noble (Ubuntu 24.04) with Ubuntu's MIRROR.
# The committed tree is cloned into ROOT. A ROOT that exists is used again, with its packages and compiler cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:-trixie}
root=$(realpath -m "${2:-build/root-$suite}")
mirror=${3:-}

for program in debootstrap unshare; do
  command -v "$program" >/dev/null || { echo "in_root: install $program first" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "in_root: run it as root: it makes a root file system" >&2; exit 1; }

if [ ! -e "$root/complete" ]; then
  components=main
  [[ $mirror == *ubuntu* ]] && components=main,universe
  debootstrap --variant=minbase --components="$components" --include=ca-certificates,git "$suite" "$root" $mirror
  if [[ $mirror == *ubuntu* ]]; then  # LLVM 19 came with an update
    echo "deb $mirror $suite-updates main universe" >>"$root/etc/apt/sources.list"
  fi
  touch "$root/complete"
fi
rm -rf "$root/hone"
git clone --quiet --no-hardlinks . "$root/hone"

# A separate mount namespace, so that the mounts end with this script.
exec unshare --mount bash -euo pipefail -c '
  root=$1
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # systemd does not run in the root, so packages must not start services.
  printf "#!/bin/sh\nexit 101\n" >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  run() {
    printf "\n=== %s\n" "$*"
    chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c "cd /hone && $*"
  }
  run deploy/quickstart.sh 64
  run tests/run.sh
' in_root "$root"
