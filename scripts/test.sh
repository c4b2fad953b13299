#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test; ends with ctest's summary.
# Usage: scripts/test.sh [ctest options]     for example: scripts/test.sh -R ring
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in --help | -h) sed -n '2,3s/^# //p' "$0"; exit 0 ;; esac

scripts/install_deps.sh
cmake --preset release
cmake --build --preset release -j "$(nproc)"
ctest --preset release -j "$(nproc)" "$@"
