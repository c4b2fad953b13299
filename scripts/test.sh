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
ctest --preset release -j "$(nproc)" "$@"
