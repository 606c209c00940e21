#!/usr/bin/env bash
# Checks that all C++ sources are formatted as .clang-format says.
#   tests/format.sh          fails and lists the places that differ
#   tests/format.sh --fix    formats them
set -euo pipefail
cd "$(dirname "$0")/.."
format=clang-format-19
if ! command -v "$format" >/dev/null; then
  echo "tests/format.sh: $format is missing; deploy/install-deps.sh installs it" >&2
  exit 1
fi
mode=(--dry-run --Werror)
[ "${1:-}" = --fix ] && mode=(-i)
list_sources() {
  git ls-files -z --cached --others --exclude-standard '*.cc' '*.h' |
    while IFS= read -r -d '' file; do
      if [ -e "$file" ]; then printf '%s\0' "$file"; fi
    done
}
list_sources | xargs -0 -P "$(nproc)" -n 50 "$format" "${mode[@]}"
