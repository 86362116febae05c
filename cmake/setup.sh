#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what cmake/packages.txt lists for the given groups and makes the Python environment .venv from
# requirements.txt (group python) and .cache/exports from tools/exports/requirements.txt (group exports). Quick, and needs no
# network, when everything is there already.
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

# A virtual environment, because Debian's own Python refuses to have packages installed into it (PEP 668).
make_venv() {
  local folder=$1 requirements=$2
  [[ ! -L $folder ]] || return 0  # a link is somebody's own environment
  local stamp=$folder/requirements.sha256 wanted
  wanted=$(sha256sum < "$requirements")
  [[ -x $folder/bin/python && -f $stamp && $(< "$stamp") == "$wanted" ]] && return 0
  echo "setup: making the Python environment $folder"
  python3 -m venv --clear "$folder"
  # Without --no-compile it compiles every module of every package, which takes longer than to fetch and unpack them.
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --requirement "$requirements"
  echo "$wanted" > "$stamp"
}

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this is not Debian; install the equivalents of cmake/packages.txt yourself" >&2
else
  mapfile -t missing < <(missing_packages "$@" | sort -u)
  [[ ${#missing[@]} -eq 0 ]] || install_packages "${missing[@]}"
fi
[[ " $* " != *" python "* ]] || make_venv .venv requirements.txt
[[ " $* " != *" exports "* ]] || make_venv .cache/exports tools/exports/requirements.txt
