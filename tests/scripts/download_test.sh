#!/bin/sh
# download_test.sh SCRIPT: download_mnist.sh or download_cifar10.sh against mirrors in a folder (file:// URLs): what arrives,
# what is refused, what is left behind.
set -u
script=$1
command -v curl >/dev/null || { echo "skipped: file:// mirrors need curl"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $1"; exit 1; }
download() { "$script" --to "$work/data/here" --sums "$work/sums" --mirrors "$1" >"$work/out" 2>"$work/err"; }

mkdir "$work/made" "$work/good" "$work/bad" "$work/half"
case $(basename "$script") in
  download_mnist.sh)
    files="train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz"
    fetched=$files ;;
  download_cifar10.sh)
    files="data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin"
    fetched=cifar-10-binary.tar.gz ;;
  *) fail "no download script: $script" ;;
esac
for file in $files; do echo "payload of $file" >"$work/made/$file"; done
if [ "$fetched" = "$files" ]; then
  cp "$work"/made/* "$work/good/"
else
  mkdir "$work/cifar-10-batches-bin"
  cp "$work"/made/* "$work/cifar-10-batches-bin/"
  echo "what nobody needs" >"$work/cifar-10-batches-bin/readme.html"
  tar -czf "$work/good/$fetched" -C "$work" cifar-10-batches-bin
fi
for file in $fetched; do echo "damaged" >"$work/bad/$file"; done
first=${fetched%% *}
head -c 5 "$work/good/$first" >"$work/half/$first"
(cd "$work/good" && sha256sum $fetched) >"$work/sums"

"$script" --from nowhere >"$work/out" 2>"$work/err"
[ $? = 2 ] || fail "an unknown option is not refused"
grep -q -- "--from is not an option" "$work/err" || fail "the unknown option is not named: $(cat "$work/err")"

for help in -h --help; do
  "$script" $help >"$work/out" 2>"$work/err" || fail "$help is not understood: $(cat "$work/err")"
  grep -q -- "--to FOLDER" "$work/out" || fail "$help does not name the options"
done

download "file://$work/none file://$work/half file://$work/bad" && fail "succeeded without a good mirror"
[ "$(wc -l <"$work/err")" = 1 ] || fail "the failure is not told in one line: $(cat "$work/err")"
[ -z "$(ls -A "$work/data")" ] || fail "a failure left something behind: $(ls -A "$work/data")"

download "file://$work/none file://$work/half file://$work/bad file://$work/good" || fail "the good mirror was not reached"
for file in $files; do
  cmp -s "$work/made/$file" "$work/data/here/$file" || fail "$file did not arrive whole"
done
[ "$(ls -A "$work/data")" = here ] || fail "a temporary folder stayed: $(ls -A "$work/data")"
[ "$(ls -A "$work/data/here" | wc -l)" = "$(echo $files | wc -w)" ] || fail "more arrived than was asked for: $(ls -A "$work/data/here")"

download "file://$work/none" || fail "files that are there already were asked for again"

# Only MNIST's own files have checksums; of CIFAR-10's it is the archive, which is not kept.
if [ "$fetched" = "$files" ]; then
  echo "damaged" >"$work/data/here/t10k-labels-idx1-ubyte.gz"
  download "file://$work/good" || fail "a damaged file was not replaced"
  cmp -s "$work/good/t10k-labels-idx1-ubyte.gz" "$work/data/here/t10k-labels-idx1-ubyte.gz" || fail "a damaged file stayed"
fi
