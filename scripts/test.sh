#!/bin/sh
# Runs the tests of several folders side by side, one pytest each: most of their time is spent waiting
# for JVMs to start. What each said is printed whole, when it has ended. Fails if one of them fails.
set -u
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
for folder in "$@"; do
    log="$logs/$(basename "$folder")"
    ("$PYTHON" -m pytest "$folder" >"$log.txt" 2>&1; echo $? >"$log.code") &
done
wait
failed=0
for folder in "$@"; do
    log="$logs/$(basename "$folder")"
    cat "$log.txt"
    [ "$(cat "$log.code")" = 0 ] || failed=1
done
exit $failed
