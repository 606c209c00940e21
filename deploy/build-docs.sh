#!/usr/bin/env bash
# Builds the documentation as a web site of files, with a reference of what the programs of the build have registered.
#   deploy/build-docs.sh -o site/ [--programs build/release/bin]
# A dead link is an error. The pages load nothing from other hosts. Needs mkdocs and its theme (deploy/install-deps.sh).
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
out='' programs=$root/build/release/bin
usage() {
  echo "usage: deploy/build-docs.sh -o FOLDER [--programs FOLDER]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    -o) out=$(realpath -m "$2") ;;
    --programs) programs=$(realpath -m "$2") ;;
    *) usage ;;
  esac
  shift 2
done
[ -n "$out" ] || usage
# mkdocs empties the folder first, which must not remove anything else.
mark=$out/.hone-docs
if [ -e "$out" ] && [ ! -e "$mark" ] && { [ ! -d "$out" ] || [ -n "$(ls -A "$out")" ]; }; then
  echo "build-docs: $out has other files, which would be removed: name another folder, or an empty one" >&2
  exit 1
fi
[ -x "$programs/hone" ] || { echo "build-docs: $programs has no hone: build it, or name the folder of the programs with --programs" >&2; exit 1; }
# A package of the distribution, so not of another Python in $PATH.
python=/usr/bin/python3
if ! "$python" -c "import mkdocs.utils, yaml; mkdocs.utils.get_theme_dir(\"material\")" 2>/dev/null; then
  echo "build-docs: mkdocs or mkdocs-material is missing: run deploy/install-deps.sh" >&2
  exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 "$python" "$root/docs/site/make.py" "$programs" "$work/pages" "$out"
mkdir -p "$out"
touch "$mark"
"$python" -m mkdocs build --strict --config-file "$work/mkdocs.yml" >"$work/log" 2>&1 || { grep -E "WARNING|ERROR|Aborted" "$work/log" >&2; exit 1; }
echo "wrote $out: open $out/index.html"
