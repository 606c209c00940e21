#!/usr/bin/env bash
# Unpacks the distribution's libraries into a folder, for (cross) builds of the worker:
#   deploy/board-packages.sh amd64|arm64|armhf DIR
# This machine does not change: the lists of packages are kept in DIR, and packages are unpacked, not installed. The C and
# C++ libraries are the compiler's. Does nothing if DIR is complete. Needs the network the first time.
set -euo pipefail

usage() { echo "board-packages: $1; usage: deploy/board-packages.sh amd64|arm64|armhf DIR" >&2; exit 2; }
[ $# -eq 2 ] || usage "two arguments are needed"
case $1 in amd64|arm64|armhf) architecture=$1;; *) usage "unknown architecture $1";; esac
mkdir -p "$2"
root=$(cd "$2" && pwd)

# The packages with the headers and static libraries that hone-worker and hone-runner use.
packages=(
  libgrpc++-dev libgrpc-dev libprotobuf-dev libabsl-dev libre2-dev libc-ares-dev libssl-dev zlib1g-dev
  libxxhash-dev libseccomp-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev opencl-c-headers
)
stamp="$root/.complete"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "${packages[*]}" ] && exit 0

command -v apt-get >/dev/null || { echo "board-packages: this is not a Debian system: apt-get is missing" >&2; exit 1; }
state="$root/.apt"
mkdir -p "$state/lists/partial" "$state/archives/partial"
# An empty status file, so that apt ignores the packages that are installed on this machine.
: > "$state/status"
options=(-qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o "Dir::State=$state"
         -o "Dir::State::status=$state/status" -o "Dir::Cache=$state" -o "Debug::NoLocking=1" -o "APT::Sandbox::User=root"
         -o "Dir::Etc::sourceparts=$state/sources" -o "Dir::Etc::sourcelist=$state/none")
# Uses only the distribution's own sources, because others may lack this architecture.
mkdir -p "$state/sources"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  if [ -f "$file" ] && grep -q 'debian\.org' "$file"; then cp "$file" "$state/sources/"; fi
done
[ -z "$(ls "$state/sources")" ] || true
if [ -f "$state/sources/sources.list" ]; then mv "$state/sources/sources.list" "$state/sources/main.list"; fi

log="$state/log"
if ! { { apt-get "${options[@]}" update || true; } && cd "$state/archives" && apt-get "${options[@]}" download "${packages[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "board-packages: the packages of $architecture could not be downloaded" >&2
  exit 1
fi
for package in "$state"/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
rm -rf "$state"
echo "${packages[*]}" > "$stamp"
