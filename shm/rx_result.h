/* SPDX-License-Identifier: MIT */
/* Results as they travel in completions and error messages; the public RCCLX_* have these numbers.
 */
#ifndef RX_RESULT_H
#define RX_RESULT_H

enum rx_result {
	RX_OK = 0,
	RX_ERR_INVALID = 1,
	RX_ERR_NO_DAEMON = 2,
	RX_ERR_DAEMON_LOST = 3,
	RX_ERR_PEER_LOST = 4,
	RX_ERR_MISMATCH = 5,
	RX_ERR_ABORTED = 6,
	RX_ERR_TIMEOUT = 7,
	RX_ERR_LIMIT = 8,
	RX_ERR_NO_MEMORY = 9,
	RX_ERR_DENIED = 10,
	RX_ERR_VERSION = 11,
	RX_ERR_FORKED = 12,
	RX_ERR_BUSY = 13,
	RX_ERR_SYSTEM = 14,
	RX_ERR_INTERNAL = 15,
	RX_ERR_N
};

#endif
