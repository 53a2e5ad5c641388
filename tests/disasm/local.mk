# SPDX-License-Identifier: MIT
# The machine code of the kernels for GPUs.

dist_check_SCRIPTS += tests/disasm/device_code.sh
EXTRA_DIST += tests/disasm/device_code.py
TESTS += tests/disasm/device_code.sh
