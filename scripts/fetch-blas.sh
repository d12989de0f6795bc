#!/usr/bin/env bash
# Downloads BLAS libraries to hunt on, without installing them: MKL and OpenBLAS wheels from PyPI, OpenBLAS and BLIS packages
# of Debian.
#
#   scripts/fetch-blas.sh FOLDER      for instance: scripts/fetch-blas.sh /tmp/blas
#
# Prints the file of each library, one a line: what scripts/campaign_cpu.py takes. Needs: python3 with pip; apt-get and dpkg for
# the packages, which are left out without them.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# A wheel of the platform, by PyPI name, version, Python version; the file inside that is the library.
wheel() {
  local name=$1 version=$2 python=$3 file=$4
  local at=$folder/$name-$version
  if [ ! -d "$at" ]; then
    python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version "$python" -d "$folder/wheels" "$name==$version" >&2
    mkdir -p "$at.new"
    python3 - "$folder"/wheels/"${name//-/_}"-"$version"-*.whl "$at.new" <<'PY'
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for name in wheel.namelist():
    if ".so" in name and ("lib/" in name or "libs/" in name):
        wheel.extract(name, sys.argv[2])
PY
    mv "$at.new" "$at"
  fi
  find "$at" -name "$file" -not -type d | sort | head -n 1
}

# The library of a Debian package, by package and file.
package() {
  local name=$1 file=$2
  local at=$folder/$name
  if [ ! -d "$at" ]; then
    mkdir -p "$at.new"
    (cd "$at.new" && apt-get download -qq "$name" >&2 && dpkg -x "$name"_*.deb .)
    mv "$at.new" "$at"
  fi
  find "$at" -name "$file" -not -type d | sort | head -n 1
}

wheel mkl 2026.2.0 3.12 'libmkl_rt.so.*'
wheel scipy-openblas32 0.3.34.481.3 3.12 'libscipy_openblas.so'
wheel scipy-openblas64 0.3.34.481.3 3.12 'libscipy_openblas64_.so'
wheel scipy-openblas32 0.3.23.293.2 3.10 'libopenblas_python.so'
wheel numpy 1.21.6 3.10 'libopenblasp-*.so'
wheel numpy 1.19.5 3.8 'libopenblasp-*.so'
if command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
  package libopenblas0-serial 'libopenblas-r*.so'
  package libopenblas0-pthread 'libopenblasp-r*.so'
  package libopenblas64-0-serial 'libopenblas64-r*.so'
  package libblis4-serial 'libblis.so.*'
  package libblis64-4-serial 'libblis64.so.*'
fi
