#!/bin/sh
# Fills data/mnist with the four files of MNIST, checksums verified. Exit 0: they are there, all of them; 1: nothing was
# changed, and one line says why.
#   scripts/download_mnist.sh [--to FOLDER] [--mirrors "URL …"] [--sums FILE (as sha256sum writes it)]
set -u

name=MNIST
folder=$(dirname "$0")/../data/mnist
mirrors="https://ossci-datasets.s3.amazonaws.com/mnist
https://storage.googleapis.com/cvdf-datasets/mnist
http://yann.lecun.com/exdb/mnist"
sums="440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609  train-images-idx3-ubyte.gz
3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c  train-labels-idx1-ubyte.gz
8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6  t10k-images-idx3-ubyte.gz
f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6  t10k-labels-idx1-ubyte.gz"
limit=20
silence=5

all_there() { all_sums_hold "$1"; }
unpack() { :; }

. "$(dirname "$0")/download_from_mirrors.sh"
