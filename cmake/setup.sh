#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what cmake/packages.txt lists for the given groups and makes the Python environment .venv from
# requirements.txt (group python; group demo: from examples/digits/requirements.txt, which is a part of it), .cache/exports
# from tools/exports/requirements.txt (group exports), .cache/tensorflow and .cache/optimum from their own files there (groups
# tensorflow, optimum) and .cache/lint from cmake/lint_requirements.txt (group lint). Quick, and needs no network, when
# everything is there already.
# usage: cmake/setup.sh GROUP...
set -euo pipefail
cd "$(dirname "$0")/.."

missing_packages() {
  local group package
  while read -r group package _; do
    [[ " $* " == *" $group "* ]] || continue
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done < <(grep -v '^#' cmake/packages.txt)
}

install_packages() {
  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo > /dev/null; then
      echo "setup: please install as root: apt-get install $*" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing $*"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" > /dev/null
}

# make_venv FOLDER REQUIREMENTS [WHOLE]: a virtual environment, because Debian's own Python refuses to have packages
# installed into it (PEP 668). One made from WHOLE, which holds REQUIREMENTS, will do as well.
make_venv() {
  local folder=$1 requirements=$2 made=$1/requirements file
  [[ ! -L $folder ]] || return 0  # a link is somebody's own environment
  for file in "${@:2}"; do
    [[ -x $folder/bin/python ]] && cmp -s <(versions_of "$file") "$made" 2> /dev/null && return 0
  done
  echo "setup: making the Python environment $folder"
  # Only a whole one is added to, and only if it holds nothing that is not wanted.
  if [[ ! -f $made ]] || grep -qvxFf <(versions_of "$requirements") "$made"; then
    python3 -m venv --clear "$folder"
  fi
  # Without --no-compile it compiles every module of every package, which takes longer than to fetch and unpack them.
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --requirement "$requirements"
  versions_of "$requirements" > "$made"
}

# Its lines and those of the files that it names.
versions_of() {
  local word file
  while read -r word file; do
    if [[ $word == --requirement ]]; then versions_of "$file"; else echo "$word"; fi
  done < <(grep -v '^#' "$1")
}

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this is not Debian; install the equivalents of cmake/packages.txt yourself" >&2
else
  # One at a time, of those that `make --jobs` runs beside each other: apt-get fails where another one is at work.
  exec {packages}< cmake/packages.txt
  flock "$packages"
  mapfile -t missing < <(missing_packages "$@" | sort -u)
  [[ ${#missing[@]} -eq 0 ]] || install_packages "${missing[@]}"
  flock --unlock "$packages"
fi
[[ " $* " != *" demo "* ]] || make_venv .venv examples/digits/requirements.txt requirements.txt
[[ " $* " != *" python "* ]] || make_venv .venv requirements.txt
[[ " $* " != *" exports "* ]] || make_venv .cache/exports tools/exports/requirements.txt
[[ " $* " != *" tensorflow "* ]] || make_venv .cache/tensorflow tools/exports/tensorflow_requirements.txt
[[ " $* " != *" optimum "* ]] || make_venv .cache/optimum tools/exports/optimum_requirements.txt
[[ " $* " != *" lint "* ]] || make_venv .cache/lint cmake/lint_requirements.txt
