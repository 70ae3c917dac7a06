#!/bin/sh
# Makes .venv: the locked dependencies and this project, in about half a minute where the network is fast.
# Called by make; PYTHON names the Python to use, if it is not the first one on PATH.
set -eu
cd "$(dirname "$0")/.."

stop() { echo "springhouse: $*" >&2; exit 1; }
is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    # Each is run, not only looked up: pyenv leaves names on PATH behind which there is nothing.
    for name in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14 python; do
        if is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    stop "needs Python 3.11 or newer, and found none; install one, or name it: make setup PYTHON=/path/to/python3"
}

make_venv() {
    python=$(find_python)
    "$python" -m venv --clear .venv >/dev/null 2>&1 && return
    # Debian and Ubuntu ship Python without the part of it that makes virtual environments.
    package="$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "springhouse: installing $package ..." >&2
        { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y "$package"; } >/dev/null 2>&1 || true
    fi
    "$python" -m venv --clear .venv >/dev/null 2>&1 ||
        stop "$python can't make a virtual environment; install its venv module (on Debian and Ubuntu: apt-get install $package)"
}

# uv takes a third of the time that pip takes, but does not read pip's settings: hand on the two that matter.
pip_setting() { .venv/bin/python -m pip config list | sed -n "s/^[^=]*\.$1='\(.*\)'\$/\1/p" | head -n 1; }
install_with_uv() {
    awk '/^uv==/ { found = 1 } found { print } found && !/\\$/ { exit }' requirements.lock > .venv/uv.txt
    .venv/bin/python -m pip install -q --only-binary :all: --no-deps --require-hashes -r .venv/uv.txt || return 1
    index=${UV_DEFAULT_INDEX:-$(pip_setting index-url)}
    certificates=${SSL_CERT_FILE:-$(pip_setting cert)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
    [ -z "$certificates" ] || export SSL_CERT_FILE="$certificates"
    .venv/bin/uv pip sync -q --compile-bytecode --python .venv/bin/python --require-hashes --build-constraint requirements.lock requirements.lock &&
        .venv/bin/uv pip install -q --python .venv/bin/python --no-deps --no-build-isolation --editable .
}
install_with_pip() {
    .venv/bin/python -m pip install -q --require-hashes -r requirements.lock &&
        .venv/bin/python -m pip install -q --no-deps --no-build-isolation --editable .
}

export PIP_DISABLE_PIP_VERSION_CHECK=1
if ! { [ -x .venv/bin/python ] && is_new_enough .venv/bin/python; }; then
    echo "springhouse: making .venv; the first time, this downloads Spark (450 MB) ..." >&2
    make_venv
fi
# pyspark comes as source. Its wheel is made of jars, which don't compress: not trying
# halves the time of the whole set-up (14 s instead of 28 s, measured with two cores).
printf '[bdist_wheel]\ncompression = stored\n' > .venv/build.cfg
export DIST_EXTRA_CONFIG="$PWD/.venv/build.cfg"

install_with_uv || {
    echo "springhouse: uv could not install the dependencies; trying pip, which takes longer ..." >&2
    install_with_pip || stop "the dependencies could not be installed; the lines above say why"
}
# Where PYTHONDONTWRITEBYTECODE is set, as in many containers, nobody else would: a node would start
# in 4.8 s of processor time instead of 1.4 s. pip does the same for what it installs.
.venv/bin/python -m compileall -q src
touch .venv/installed
