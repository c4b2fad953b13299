#!/bin/sh
# download_mnist.sh against mirrors in a folder (file:// URLs): what arrives, what is refused, what is left behind.
set -u
script=$1
command -v curl >/dev/null || { echo "skipped: file:// mirrors need curl"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $1"; exit 1; }
download() { "$script" --to "$work/data/mnist" --sums "$work/sums" --mirrors "$1" >"$work/out" 2>"$work/err"; }
files="train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz"

mkdir "$work/good" "$work/bad" "$work/half"
for file in $files; do
  echo "payload of $file" >"$work/good/$file"
  echo "damaged" >"$work/bad/$file"
done
cp "$work/good/train-images-idx3-ubyte.gz" "$work/half/"
(cd "$work/good" && md5sum $files) >"$work/sums"

download "file://$work/none file://$work/half file://$work/bad" && fail "succeeded without a good mirror"
[ "$(wc -l <"$work/err")" = 1 ] || fail "the failure is not told in one line: $(cat "$work/err")"
[ -z "$(ls -A "$work/data")" ] || fail "a failure left something behind: $(ls -A "$work/data")"

download "file://$work/none file://$work/half file://$work/bad file://$work/good" || fail "the good mirror was not reached"
for file in $files; do
  cmp -s "$work/good/$file" "$work/data/mnist/$file" || fail "$file did not arrive whole"
done
[ "$(ls -A "$work/data")" = mnist ] || fail "a temporary folder stayed: $(ls -A "$work/data")"

download "file://$work/none" || fail "files that are there already were asked for again"

echo "damaged" >"$work/data/mnist/t10k-labels-idx1-ubyte.gz"
download "file://$work/good" || fail "a damaged file was not replaced"
cmp -s "$work/good/t10k-labels-idx1-ubyte.gz" "$work/data/mnist/t10k-labels-idx1-ubyte.gz" || fail "a damaged file stayed"
