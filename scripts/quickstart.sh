#!/usr/bin/env bash
# From a fresh Debian 12 to a trained network: installs packages, builds kolo, trains LeNet on two ranks.
# Usage: scripts/quickstart.sh [OPTIONS OF kolo-train in place of --steps 600]
# Digits: $KOLO_DATA_DIR/mnist, else data/mnist (downloaded if the network allows), else digits that kolo draws.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in --help | -h) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
[ $# -gt 0 ] || set -- --steps 600

die() {
  echo "quickstart.sh: $1" >&2
  exit 1
}
stage() { printf '\n== %s\n' "$1"; }

# Wrong settings are told before minutes of building.
if [ -n "${KOLO_DATA_DIR+set}" ] && [ ! -d "$KOLO_DATA_DIR/mnist" ]; then
  die "KOLO_DATA_DIR is \"$KOLO_DATA_DIR\", which has no folder mnist/; unset it to train without"
fi

stage "1/4 packages"
scripts/install_deps.sh

stage "2/4 build"
cmake --preset unity   # 24 sources a compilation
cmake --build --preset release -j "$(nproc)" --target kolo-train kolorun kolo-inspect

stage "3/4 digits"
mnist_files=({train,t10k}-{images-idx3,labels-idx1}-ubyte.gz)
has_mnist() {
  local file
  for file in "${mnist_files[@]}"; do [ -f "data/mnist/$file" ] || return 1; done
}
if [ -n "${KOLO_DATA_DIR+set}" ]; then
  data=$KOLO_DATA_DIR/mnist
elif has_mnist || scripts/download_mnist.sh >/dev/null 2>&1; then
  data=data/mnist
else
  data=generated
fi
case "$data" in
  generated) echo "no network gives MNIST: training on generated digits, which kolo draws itself" ;;
  *) echo "MNIST from $data" ;;
esac

stage "4/4 training LeNet on 2 ranks"
if [ "$data" = generated ]; then run=train_logs/quickstart-generated; else run=train_logs/quickstart-mnist; fi
mkdir -p $run
[ ! -e $run/checkpoints/checkpoint ] ||
  echo "an earlier run left a checkpoint: training goes on from it (rm -r $run to start anew)"
train=(build/release/bin/kolorun -n 2 -- kolo-train --model lenet --data "$data" --checkpoint-dir $run/checkpoints)
echo "${train[*]} $*"
"${train[@]}" "$@" 2>&1 | tee $run/train.log

stage "done"
cat <<END
checkpoint   $run/checkpoints   (build/release/bin/kolo-inspect checkpoint $run/checkpoints shows its tensors)
log          $run/train.log
next         scripts/test.sh                                           runs every test
             build/release/bin/kolorun -n 2 -- kolo-train --model mlp --data $data --checkpoint-dir train_logs/mlp
             README.md                                                 a training program of your own in C++
END
