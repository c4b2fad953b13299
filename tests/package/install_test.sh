#!/usr/bin/env bash
# Installs a build into an empty folder, moves it, builds tests/package as an outside project against it and runs it.
# Usage: tests/package/install_test.sh BUILD_FOLDER
set -euo pipefail
source_folder=$(cd "$(dirname "$0")" && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
# What still points into the first place does not survive the move.
mv "$work/first" "$work/kolo"

cmake -S "$source_folder" -B "$work/outside" -G Ninja -DCMAKE_PREFIX_PATH="$work/kolo" -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/outside"
output=$("$work/outside/outside")
echo "$output"
expect() {
  grep -qxF "$1" <<<"$output" || { echo "expected the line \"$1\"" >&2; exit 1; }
}
expect "step 1, loss 2.302585"
# Ops of core and of collectives: none of the registering files was lost by a linker.
for op in Const Variable MatMul Conv2D SparseSoftmaxCrossEntropyWithLogits ApplyAdagrad GroupAllReduce BucketAllReduce; do expect "op $op"; done

# Programs find libkolo beside them.
for program in "$work"/kolo/bin/*; do
  [ -x "$program" ] || continue
  "$program" --version
done
