# What the `install` scripts of this folder share. They source it; it does nothing by itself. `install` makes the gateway
# available in target/gateways ($GATEWAYS) and prints its version; what is there already is kept.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
name=$(basename "$here")
installed=${GATEWAYS:-$here/../../../target/gateways}/$name

fail() {
    echo "$name: $*" >&2
    exit 1
}

# The path of a program: the one on the PATH, else the one that was unpacked here.
program() {
    local found
    for found in "$(command -v "$1" || true)" "$installed"/{bin,usr/bin,usr/sbin}/"$1"; do
        if [ -n "$found" ] && [ -x "$found" ]; then
            echo "$found"
            return
        fi
    done
    return 1
}

# Libraries of packages that were unpacked here, behind those of the system.
use_own_libraries() {
    local folders
    [ -d "$installed" ] || return 0
    folders=$(find "$installed" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
    [ -z "$folders" ] || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folders
}

# from_apt PACKAGE PROGRAM: unpacks a package, and what it needs beyond this system, without installing it: no root, no
# service that starts. The version is that of the distribution.
from_apt() {
    program "$2" >/dev/null && return
    command -v apt-get >/dev/null || fail "$2 is not on the PATH, and there is no apt-get"
    local wanted
    wanted=$(apt-get install --simulate --no-install-recommends "$1" 2>/dev/null |
        sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1=\3/p') || true
    [ -n "$wanted" ] || fail "apt knows no package $1: apt-get update"
    mkdir -p "$installed/packages"
    # shellcheck disable=SC2086
    (cd "$installed/packages" && apt-get download --quiet=2 -o APT::Sandbox::User= $wanted) >&2 || fail "apt cannot download it: apt-get update"
    for package in "$installed"/packages/*.deb; do dpkg-deb --extract "$package" "$installed"; done
    program "$2" >/dev/null || fail "the package $1 holds no program $2"
}

# Is what this file pins installed already? If not, the folder is emptied first.
is_installed() {
    cmp --silent "$here/$1" "$installed/pinned" && return
    rm -rf "$installed"
    mkdir -p "$installed"
    return 1
}

# Notes that what this file pins is installed.
note_installed() { cp "$here/$1" "$installed/pinned"; }

# from_pip: the packages of requirements.txt, in an environment of their own.
from_pip() {
    is_installed requirements.txt && return
    python3 -m venv "$installed" || fail "python3 has no venv: apt-get install python3-venv"
    "$installed/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" >&2 ||
        fail "pip cannot install it"
    note_installed requirements.txt
}

# from_npm: the packages of package.json.
from_npm() {
    is_installed package.json && return
    command -v npm >/dev/null || fail "npm is not on the PATH"
    cp "$here/package.json" "$installed"
    npm install --prefix "$installed" --omit=dev --ignore-scripts --no-audit --no-fund --no-package-lock \
        --loglevel=error >&2 || fail "npm cannot install it"
    note_installed package.json
}

# from_go: the program that the file `module` names, compiled here.
from_go() {
    is_installed module && return
    command -v go >/dev/null || fail "go is not on the PATH"
    GOBIN=$(realpath "$installed")/bin CGO_ENABLED=0 go install "$(cat "$here/module")" >&2 || fail "go cannot build it"
    note_installed module
}
