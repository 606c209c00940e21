#!/usr/bin/env bash
# Installs the Debian packages of a build in a new Debian, and uses them as an administrator would. Run it before each release:
#   sudo tests/deploy/packages_in_root.sh [BUILD [ROOT]]       build/release, build/root-packages
# BUILD may also be a folder with the packages. A ROOT that exists is a Debian that debootstrap has made; it is copied, so that
# it stays clean.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build/release}")
clean=$(realpath -m "${2:-build/root-packages}")
for program in debootstrap unshare; do
  command -v "$program" >/dev/null || { echo "packages_in_root: install $program first" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "packages_in_root: run it as root: it makes a root file system" >&2; exit 1; }
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
if [ ! -e "$clean/etc/debian_version" ]; then
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -Eo 'https?://[^ ]+/debian/?( |$)' | head -n 1) || true
  debootstrap --variant=minbase "$codename" "$clean" $mirror
fi
root=$(mktemp -d "$(dirname "$clean")/root.XXXXXX")
trap 'rm -rf "$root"' EXIT
cp -a --reflink=auto "$clean/." "$root/"
mkdir "$root/packages"
if compgen -G "$build/*.deb" >/dev/null; then
  cp "$build"/*.deb "$root/packages/"
else
  cpack --config "$build/CPackConfig.cmake" -B "$root/packages" >/dev/null
fi
rm -rf "$root/packages/_CPack_Packages"
rm -f "$root/etc/apt/sources.list"
for source in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  if [ -f "$source" ] && grep -q "$codename" "$source" && grep -q debian-archive-keyring "$source"; then cp "$source" "$root/etc/apt/sources.list.d/"; fi
done
# In a space of processes of its own, so that nothing stays if a command fails.
unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
  root=$1
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  echo "127.0.0.1 localhost" >"$root/etc/hosts"
  printf "#!/bin/sh\nexit 101\n" >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  run() {
    printf "\n=== %s\n" "$*"
    chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "$*"
  }
  run "apt-get -qq update && apt-get -qq install -y --no-install-recommends /packages/*.deb >/tmp/log 2>&1 || { tail -n 20 /tmp/log; exit 1; }; grep -A 4 \"is installed\" /tmp/log; dpkg -l | grep -c ^ii"
  run "grep -E ^hone /etc/passwd; stat -c \"%U %a %n\" /etc/hone /var/lib/hone /var/lib/hone-worker"
  run "hone --version; hone-server --version; hone-worker --version; hone-backup --help | head -n 1"
  # The server and a worker as their users, as the units start them; systemd does not run here.
  run "
    server=\$(sed -n s/^User=//p /usr/lib/systemd/system/hone-server.service) worker=\$(sed -n s/^User=//p /usr/lib/systemd/system/hone-worker@.service)
    hone-server init /etc/hone --host localhost --worker one --store /var/lib/hone/hone.db | tail -n 1
    chgrp -R \$server /etc/hone && chmod -R u=rwX,g=rX,o= /etc/hone
    install -m 600 -o \$worker /etc/hone/worker-one.conf /var/lib/hone-worker/one.conf
    setpriv --reuid \$server --regid \$server --clear-groups hone-server --config /etc/hone/hone.toml >/tmp/server.log 2>&1 &
    for i in \$(seq 60); do hone-server --config /etc/hone/hone.toml --check-health 2>/dev/null && break; sleep 1; done
    setpriv --reuid \$worker --regid \$worker --clear-groups hone-worker --config /var/lib/hone-worker/one.conf --state-dir /var/lib/hone-worker/one --ready-file /tmp/ready/up >/tmp/worker.log 2>&1 &
    mkdir -m 777 /tmp/ready; for i in \$(seq 120); do [ -e /tmp/ready/up ] && break; sleep 1; done
    [ -e /tmp/ready/up ] || { cat /tmp/worker.log /tmp/server.log; exit 1; }
    hone --config /etc/hone/admin.conf workers list
    hone --config /etc/hone/client.conf tune matmul m=64 n=64 k=64 --trials 4 | tail -n 3
    hone --config /etc/hone/client.conf best matmul m=64 n=64 k=64
    install -d -m 700 -o \$server /var/lib/hone/backups
    hone-backup --config /etc/hone/admin.conf --to /var/lib/hone/backups
    hone --config /etc/hone/admin.conf doctor && echo \"hone doctor: no problems\"
    kill %1 %2; wait"
  run "apt-get -qq purge -y hone hone-server hone-worker libhone-lookup >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; ls /usr/bin/hone* 2>/dev/null || echo \"the programs are gone\"; ls /var/lib/hone/hone.db /etc/hone/hone.toml"
' packages_in_root "$root"
echo "packages_in_root: everything works"
