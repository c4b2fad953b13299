#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test; ends with ctest's summary.
# Usage: scripts/test.sh [ctest options]     for example: scripts/test.sh -R ring
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in --help | -h) sed -n '2,3s/^# //p' "$0"; exit 0 ;; esac

scripts/install_deps.sh
# A first build is quick: 24 sources a compilation. One that is there is gone on with as it was configured.
if [ -f build/release/CMakeCache.txt ]; then cmake build/release; else cmake --preset unity; fi
cmake --build --preset release -j "$(nproc)"
if ctest --preset release -j "$(nproc)" "$@"; then exit 0; else rc=$?; fi

# Where some of hundreds fail, the last lines of each once more, at the end, where they are looked for.
logs=build/release/Testing/Temporary
[ -f $logs/LastTestsFailed.log ] && awk -v last=40 '
  NR == FNR { failed[substr($0, index($0, ":") + 1)]; next }
  / Testing: / { name = $3; n = 0; next }
  name in failed && /^<end of output>/ {
    print "\n== " name
    for (i = n > last ? n - last : 0; i < n; ++i) print line[i]
  }
  { line[n++] = $0 }' $logs/LastTestsFailed.log $logs/LastTest.log
exit $rc
