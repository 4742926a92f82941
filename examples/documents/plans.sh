#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fills in what `lockstep plan` says: reads a text, prints it, and behind each line "    lockstep plan ..." the table of that
# plan. Its arguments are those of run.sh: a page that was written with --report FILE.md gets all of it before its last line.
# The commands name files as they lie in the repository, examples/...; those are found beside this script wherever it is.
set -euo pipefail
shopt -s inherit_errexit
examples=$(dirname "$(dirname "$(realpath "$0")")")

planned() {
  eval "${1//examples\//\"$examples\"/}" | sed -n '/ parameters, /,/^$/p; /GB needed/,/^$/p' | sed '/^$/d; s/^/    /'
}

fill() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line != "    lockstep plan "* ]] || { echo && planned "$line"; }
  done
}

text=$(fill)
printf '\n%s\n' "$text"
while [ $# -gt 1 ]; do
  if [ "$1" = --report ] && [[ $2 == *.md ]]; then
    made=$(tail -n 1 "$2")
    { head -n -1 "$2" && printf '%s\n\n%s\n' "$text" "$made"; } > "$2.new"
    mv "$2.new" "$2"
  fi
  shift
done
