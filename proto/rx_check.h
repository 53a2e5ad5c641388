/* SPDX-License-Identifier: MIT */
/* What a decoded message must look like to mean anything. Pure functions; fuzzed. */
#ifndef RX_CHECK_H
#define RX_CHECK_H

#include "rx_msg.h"

/** rx_check_text() - UTF-8 without control characters, at most @max bytes */
bool rx_check_text(const char *text, size_t max);

/**
 * rx_check_msg() - lengths, ranges and texts of @msg
 * Return: NULL, or a static sentence that says what is wrong.
 */
const char *rx_check_msg(const struct rx_msg *msg);

#endif
