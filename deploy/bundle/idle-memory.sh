#!/usr/bin/env bash
# Prints the resident memory of an idle hone-worker of a bundle, which waits for a server that does not answer:
#   deploy/bundle/idle-memory.sh DIR [EMULATOR]
# Under an emulator, only the memory of the emulated program counts, not the emulator's own program, tables and translated
# code. The addresses to which the program was loaded tell the two apart.
set -euo pipefail
bundle=$(cd "$1" && pwd)
emulator=${2:-}
limit_kib=$((30 * 1024))

state=$(mktemp -d)
worker=
trap '[ -z "$worker" ] || kill "$worker" 2>/dev/null || true; rm -rf "$state"' EXIT
# Measures only the agent, which neither builds nor runs here: hone-runner is started when there is work. Emulators have
# neither seccomp nor Landlock.
mkdir "$state/programs"
cat > "$state/programs/hone-runner" <<'END'
#!/bin/sh
echo '{"conditions": []}'
END
chmod +x "$state/programs/hone-runner"
$emulator "$bundle/hone-worker" --server localhost:1 --name idle --run-only --state-dir "$state" \
  --program-dir "$state/programs" --log-level off \
  --unconfined --allow-unguarded-files &
worker=$!
sleep 5
kill -0 "$worker" 2>/dev/null || { echo "idle-memory: hone-worker has ended" >&2; exit 1; }
resident=$(awk '/^VmRSS/ {print $2}' "/proc/$worker/status")
if [ -z "$emulator" ]; then
  echo "idle: $((resident / 1024)) MiB resident (limit $((limit_kib / 1024)))"
  own=$resident
else
  # Excludes pages of the emulator and its translated code: its file, libraries, heap and executable memory.
  own=$(awk '
    /^[0-9a-f]+-[0-9a-f]+ / { name = $6; emulators = name ~ /qemu|\.so|\[|^\/usr\/lib/ || $2 ~ /^rwx/ }
    /^Rss:/ { if (!emulators) sum += $2 }
    END { print sum + 0 }' "/proc/$worker/smaps")
  echo "idle: at most $((own / 1024)) MiB resident, counted under $emulator (limit $((limit_kib / 1024));" \
       "with the emulator $((resident / 1024)) MiB)"
fi
[ "$own" -le "$limit_kib" ] || { echo "idle-memory: hone-worker needs too much memory" >&2; exit 1; }
