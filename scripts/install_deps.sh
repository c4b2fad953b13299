#!/usr/bin/env bash
# Installs the Debian packages that kolo is built from and tested with. A second run finds all of them and leaves apt alone.
# Usage: scripts/install_deps.sh [--dev] [--libtorch] [--python] [--docs] [--mpich]
#   --dev: also clang's tools, an ssh server, two firewalls and Slurm, which .ci/run uses, and patchelf for the bundle; --libtorch: also libtorch, for the example that trains with it
#   --python: also what the Python package needs, with PyTorch and pytest; --docs: also what scripts/make_site needs, and the test of the notebooks
#   --mpich: also MPICH, for the preset mpich; Open MPI stays what mpirun and mpicxx mean
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config
  openmpi-bin libopenmpi-dev openssh-client
  libdnnl-dev ocl-icd-opencl-dev   # the second only because oneDNN's CMake package asks for OpenCL
  libhwy-dev libhwloc-dev libisal-dev libxxhash-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libwebp-dev
  libboost-program-options-dev libfmt-dev libspdlog-dev nlohmann-json3-dev
  protobuf-compiler libprotobuf-dev libgrpc++-dev protobuf-compiler-grpc
  libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-onnx curl ca-certificates iproute2 procps   # for scripts and tests; the second checks exported networks
)

die() {
  echo "install_deps.sh: $1" >&2
  exit "${2:-1}"
}

for option in "$@"; do
  case "$option" in
    --dev) packages+=(clang clang-format clang-tidy openssh-server patchelf nftables iptables slurm-wlm slurm-wlm-basic-plugins slurm-client munge) ;;
    --libtorch) packages+=(libtorch-dev) ;;
    --python) packages+=(python3-dev pybind11-dev python3-numpy python3-torch python3-cloudpickle python3-pytest python3-mpi4py) ;;
    --docs) packages+=(python3-sphinx furo python3-myst-parser doxygen doxygen-awesome-css python3-nbclient python3-ipykernel) ;;
    --mpich) packages+=(mpich libmpich-dev) ;;
    --help | -h) sed -n '2,6s/^# //p' "$0"; exit 0 ;;
    *) die "does not understand \"$*\"; usage: scripts/install_deps.sh [--dev] [--libtorch] [--python] [--docs] [--mpich]" 2 ;;
  esac
done

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
  die "this system has no apt; install by hand what Debian 12 calls: ${packages[*]}"

# dpkg-query fails when it does not know a package at all; its list of the others is right nevertheless.
installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx "$package installed" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#packages[@]} are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    die "not root and there is no sudo; as root: apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo)
  [ -t 0 ] || as_root+=(-n)   # nobody is there to type a password
  "${as_root[@]}" true || die "sudo refused; as root: apt-get install --no-install-recommends ${missing[*]}"
fi

echo "packages: installing ${missing[*]}"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}
apt update || die "apt-get update failed: is there a network, and are /etc/apt's sources right?"
apt install -y --no-install-recommends "${missing[@]}" >/dev/null ||
  die "apt-get could not install ${missing[*]}; its reason stands above"
