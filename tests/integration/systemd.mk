# SPDX-License-Identifier: MIT
# The installed daemon under a real systemd.

dist_check_SCRIPTS += tests/integration/systemd.sh
TESTS += tests/integration/systemd.sh
EXTRA_DIST += tests/integration/pair.c tests/integration/systemd_guest.sh
