#!/bin/sh
# Fills data/mnist with the four files of MNIST, checksums verified. Exit 0: they are there, all of them; 1: nothing was
# changed, and one line says why.
#   scripts/download_mnist.sh [--to FOLDER] [--mirrors "URL …"] [--sums FILE (as md5sum writes it)]
set -u

name=MNIST
folder=$(dirname "$0")/../data/mnist
mirrors="https://ossci-datasets.s3.amazonaws.com/mnist
https://storage.googleapis.com/cvdf-datasets/mnist
http://yann.lecun.com/exdb/mnist"
sums="f68b3c2dcbeaaa9fbdd348bbdeb94873  train-images-idx3-ubyte.gz
d53e105ee54ea40749a09fcbcd1e9432  train-labels-idx1-ubyte.gz
9fb629c4189551a2d022fa330f9573f3  t10k-images-idx3-ubyte.gz
ec29112dd5afa0611ce80d1b7f02629c  t10k-labels-idx1-ubyte.gz"
limit=20
silence=5

all_there() { all_sums_hold "$1"; }
unpack() { :; }

. "$(dirname "$0")/download_from_mirrors.sh"
