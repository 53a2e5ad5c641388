/* SPDX-License-Identifier: MIT */
/* Numbers on the command line. */
#ifndef CTL_NUMBER_H
#define CTL_NUMBER_H

#include "../../shm/rx_base.h"

/**
 * number_parse() - a whole number in [min, max], with an optional K, M or G (powers of 1024)
 * Return: false when it is none; *number_p is then untouched.
 */
RX_WARN_UNUSED bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number_p);

#endif
