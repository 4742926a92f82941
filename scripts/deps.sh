#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing: deps.sh build|test|torch|zoo|oracles|ffcv|servers...
#   build    Debian packages to build and run (root or sudo)
#   test     Debian packages that only the tests need (root or sudo)
#   torch    libtorch 2.11.0 from its PyPI wheel, CPU part only, into .deps/libtorch (1.2 GB)
#   zoo      a Python environment with the packages that check networks, steps and pixels, into .deps/oracles (4 GB)
#   oracles  the same with all packages that check our results (5 GB)
#   servers  Python servers beside which `lockstep serve` is measured, into .deps/servers, and Debian's load generator
#   ffcv     FFCV into .deps/oracles, one more peer of `lockstep bench loader`; builds against Debian's OpenCV
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(g++ make cmake ninja-build ccache pkg-config git python3 python3-venv python3-pip curl ca-certificates
  libjpeg62-turbo-dev libpng-dev libwebp-dev libtiff-dev zlib1g-dev libhdf5-dev liburing-dev libopenmpi-dev openmpi-bin
  libboost1.81-dev libssl-dev
  libgtest-dev libgmock-dev)
test_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev binutils strace chromium fonts-dejavu-core
  mpich libmpich-dev)  # MPICH: Debian ranks Open MPI above it, mpirun and mpicc stay as they are
torch_wheels=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
zoo_wheels=(torch==2.11.0 torchvision==0.26.0 timm==1.0.30 safetensors==0.8.0)
oracle_wheels=("${zoo_wheels[@]}" tensorboard==2.21.0 numpy==2.4.6
  pillow==13.0.0 jsonschema==4.26.0 scikit-learn==1.9.1 webdataset==1.0.2 wids==0.1.11 nvidia-dali-cuda130==2.4.0
  pycocotools==2.0.11 h5py==3.16.0 onnx==1.23.2 onnxruntime==1.31.1 torchmetrics==1.9.0 mapie==1.6.0 cleanlab==2.9.0
  optuna==5.0.0 "tritonclient[http]==2.73.0"
  nvidia-cuda-crt==13.0.88)  # the last one: headers for plugins/cuda/nccl_plugin.cpp

# Mirrors and networks have bad moments: once more after a while.
twice() { "$@" || { echo "failed: $1 $2 ...; once more in 20 s" >&2; sleep 20; "$@"; }; }

install_debian() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "missing: ${missing[*]}; ask your administrator, or see 'Without root' in README.md" >&2; exit 3; }
    sudo=(sudo)
  fi
  echo "installing Debian packages: ${missing[*]}"
  twice "${sudo[@]}" apt-get update -q >/dev/null
  twice "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Filled under another name and renamed (and the oracles stamped), so that an interrupted install is not taken for a whole one.
install_torch() {
  [ -e .deps/libtorch/torch/lib/libtorch_cpu.so ] && return
  echo "installing libtorch 2.11.0 (CPU part) into .deps/libtorch"
  rm -rf .deps/libtorch.part .deps/pip && mkdir -p .deps && python3 -m venv .deps/pip
  twice .deps/pip/bin/pip install -q --upgrade --no-deps --no-compile --target .deps/libtorch.part "${torch_wheels[@]}"
  mv .deps/libtorch.part .deps/libtorch
}

is_stamped() { [ "$(cat ".deps/oracles/$1" 2>/dev/null)" = "$2" ]; }

install_zoo() {
  if is_stamped zoo_wheels "${zoo_wheels[*]}" || is_stamped wheels "${oracle_wheels[*]}"; then return; fi
  echo "installing the oracles of networks, steps and pixels into .deps/oracles"
  rm -rf .deps/oracles && mkdir -p .deps && python3 -m venv .deps/oracles
  twice .deps/oracles/bin/pip install -q --no-compile "${zoo_wheels[@]}"
  echo "${zoo_wheels[*]}" > .deps/oracles/zoo_wheels
}

install_oracles() {
  is_stamped wheels "${oracle_wheels[*]}" && return
  install_zoo
  echo "installing the other oracles into .deps/oracles"
  twice .deps/oracles/bin/pip install -q --no-compile "${oracle_wheels[@]}"
  echo "${oracle_wheels[*]}" > .deps/oracles/wheels
}

install_ffcv() {
  install_debian libopencv-dev libturbojpeg0-dev pkg-config
  install_oracles
  twice .deps/oracles/bin/pip install -q --no-compile setuptools wheel numba opencv-python-headless pandas tqdm
  twice .deps/oracles/bin/pip install -q --no-compile --no-build-isolation --no-deps ffcv==1.0.2
}

install_servers() {
  install_debian hey
  install_oracles
  local wheels=(fastapi==0.162.7 uvicorn==0.54.0 uvloop==0.23.0 httptools==0.9.0 litserve==0.2.19 onnxruntime==1.31.1
    numpy==2.4.6 pillow==13.0.0)
  [ "$(cat .deps/servers/wheels 2>/dev/null)" = "${wheels[*]}" ] && return
  rm -rf .deps/servers && python3 -m venv .deps/servers
  twice .deps/servers/bin/pip install -q --no-compile "${wheels[@]}"
  echo "${wheels[*]}" > .deps/servers/wheels
}

for part in "$@"; do
  case $part in
    build) install_debian "${build_packages[@]}" ;;
    test) install_debian "${test_packages[@]}" ;;
    torch) install_torch ;;
    zoo) install_zoo ;;
    oracles) install_oracles ;;
    ffcv) install_ffcv ;;
    servers) install_servers ;;
    *) echo "deps.sh: no part '$part'" >&2; exit 2 ;;
  esac
done
