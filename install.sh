#!/bin/sh
# Builds the suite and hands over to `rungs install`. Holds no logic of its own.
#
#   ./install.sh [options of rungs install]   build, install, check, show
#   ./install.sh --try                        build and show; leaves nothing in
#                                             your home

set -eu

say() {
    printf '%s\n' "$*"
}

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

need_cargo() {
    command -v cargo >/dev/null 2>&1 ||
        fail 'cargo is missing; install a Rust toolchain (https://rustup.rs) and run this again. Nothing was changed.'
}

# Package by package, so that no hook is built with what another one needs.
build() {
    for package in session-lease drive-gate walled-heal wedge-heal ccswitch rungs; do
        say "Building $package ..."
        cargo build --quiet --release --locked -p "$package" ||
            fail "$package could not be built; nothing was installed."
    done
}

# Where cargo put the programs: it names the file it made.
built_programs() {
    cargo build --quiet --release --locked -p rungs --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)\/rungs".*/\1/p'
}

main() {
    cd "$(dirname "$0")"
    need_cargo
    build
    programs=$(built_programs)
    [ -n "$programs" ] || fail 'cargo did not say where it put the programs; nothing was installed.'
    if [ "${1-}" = --try ]; then
        exec "$programs/rungs" try
    fi
    exec "$programs/rungs" install --show "$@"
}

main "$@"
