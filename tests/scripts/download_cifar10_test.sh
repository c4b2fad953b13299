#!/bin/sh
# download_cifar10.sh against mirrors in a folder (file:// URLs): what arrives, what is refused, what is left behind.
set -u
script=$1
command -v curl >/dev/null || { echo "skipped: file:// mirrors need curl"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files="data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin"

fail() { echo "FAILED: $1"; exit 1; }
download() { "$script" --to "$work/data/cifar10" --sum "$sum" --mirrors "$1" >"$work/out" 2>"$work/err"; }

mkdir -p "$work/made/cifar-10-batches-bin" "$work/good" "$work/bad"
for file in $files; do echo "payload of $file" >"$work/made/cifar-10-batches-bin/$file"; done
tar -czf "$work/good/cifar-10-binary.tar.gz" -C "$work/made" cifar-10-batches-bin
echo "damaged" >"$work/bad/cifar-10-binary.tar.gz"
sum=$(md5sum <"$work/good/cifar-10-binary.tar.gz" | cut -d ' ' -f 1)

download "file://$work/none file://$work/bad" && fail "succeeded without a good mirror"
[ "$(wc -l <"$work/err")" = 1 ] || fail "the failure is not told in one line: $(cat "$work/err")"
[ -z "$(ls -A "$work/data")" ] || fail "a failure left something behind: $(ls -A "$work/data")"

download "file://$work/none file://$work/bad file://$work/good" || fail "the good mirror was not reached"
for file in $files; do
  cmp -s "$work/made/cifar-10-batches-bin/$file" "$work/data/cifar10/$file" || fail "$file did not arrive whole"
done
[ "$(ls -A "$work/data")" = cifar10 ] || fail "a temporary folder stayed: $(ls -A "$work/data")"

download "file://$work/none" || fail "files that are there already were asked for again"
