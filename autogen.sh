#!/bin/sh
# SPDX-License-Identifier: MIT
# Make ./configure from configure.ac. Needs autoconf, automake, libtool and pkg-config.
set -eu
cd "$(dirname "$0")"
mkdir -p contrib/build-aux contrib/m4
exec autoreconf --force --install --warnings=all,no-obsolete,no-portability
