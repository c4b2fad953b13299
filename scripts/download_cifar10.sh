#!/bin/sh
# Fills data/cifar10 with the six files of CIFAR-10's binary version, checksum verified. Exit 0: they are there; 1: nothing
# was changed, and one line says why.
#   scripts/download_cifar10.sh [--to FOLDER] [--mirrors "URL …"] [--sum MD5]
set -u

folder=$(dirname "$0")/../data/cifar10
mirrors="https://www.cs.toronto.edu/~kriz"
sum=c32a1d4ab5d03f1284b67883e8d87530
archive=cifar-10-binary.tar.gz
files="data_batch_1.bin data_batch_2.bin data_batch_3.bin data_batch_4.bin data_batch_5.bin test_batch.bin"
limit=900  # seconds for everything: 170 MB

fail() {
  echo "download_cifar10.sh: $1" >&2
  exit "${2:-1}"
}

while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || fail "$1 needs a value; allowed: --to FOLDER, --mirrors \"URL …\", --sum MD5" 2
  case $1 in
    --to) folder=$2 ;;
    --mirrors) mirrors=$2 ;;
    --sum) sum=$2 ;;
    *) fail "$1 is not an option; allowed: --to FOLDER, --mirrors \"URL …\", --sum MD5" 2 ;;
  esac
  shift 2
done

all_there() {
  for file in $files; do [ -s "$1/$file" ] || return 1; done
}

# fetch URL FILE: within what is left of the time; a mirror that is silent for 10 s leaves the rest to the next.
fetch() {
  left=$((deadline - $(date +%s)))
  [ "$left" -gt 0 ] || return 1
  if command -v curl >/dev/null; then
    timeout "$left" curl --fail --silent --location --connect-timeout 10 --speed-time 10 --speed-limit 1 --output "$2" "$1"
  else
    timeout "$left" wget --quiet --tries=1 --timeout=10 --output-document="$2" "$1"
  fi
}

all_there "$folder" && exit 0
command -v curl >/dev/null || command -v wget >/dev/null || fail "neither curl nor wget is installed"
mkdir -p "$(dirname "$folder")" || exit 1
partial=$(mktemp -d "$(dirname "$folder")/.cifar10.XXXXXX") || exit 1
trap 'rm -rf "$partial"' EXIT
trap 'exit 1' HUP INT TERM
deadline=$(($(date +%s) + limit))
for mirror in $mirrors; do
  fetch "$mirror/$archive" "$partial/$archive" || continue
  echo "$sum  $partial/$archive" | md5sum --check --status 2>/dev/null || continue
  tar -xzf "$partial/$archive" -C "$partial" --strip-components=1 2>/dev/null && all_there "$partial" || continue
  mkdir -p "$folder" || exit 1
  for file in $files; do mv "$partial/$file" "$folder/" || exit 1; done
  echo "CIFAR-10 is in $folder (from $mirror)"
  exit 0
done
fail "no mirror gave CIFAR-10 with the right checksum within $limit s"
