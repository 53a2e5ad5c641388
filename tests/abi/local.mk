# SPDX-License-Identifier: MIT
dist_check_SCRIPTS += tests/abi/abidiff.sh
EXTRA_DIST += tests/abi/librcclx.so.0.abi tests/abi/libnccl.so.2.abi
TESTS += tests/abi/abidiff.sh
