/* SPDX-License-Identifier: MIT */
/* Sums of a few elements: the same bits as rx_reduce(), without its preparations. */
#ifndef RX_REDUCE_SMALL_H
#define RX_REDUCE_SMALL_H

#include "reduce.h"

/* Longer ones are served as well by rx_reduce(). */
#define RX_SMALL_BYTES 96u

/**
 * rx_reduce_small() - fold n_src inputs into one output, if that is simple
 * @args: as for rx_reduce(), with one output
 *
 * Return: false: nothing was done, rx_reduce() has to.
 */
bool rx_reduce_small(const struct rx_reduce_args *args);

#endif
