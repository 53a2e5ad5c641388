/* SPDX-License-Identifier: MIT */
/* What explain says of device memory: the daemon's choice, by the daemon's own function. */
#ifndef CTL_EXPLAIN_DEVICES_H
#define CTL_EXPLAIN_DEVICES_H

#include "thresholds.h"

#include <jansson.h>

/** explain_devices_show() - of ranks whose memory is on @n_devices; @what: without them */
void explain_devices_show(const struct rx_plan_query *query, uint32_t n_devices,
	const struct explanation *what, const struct thresholds *thresholds);

/** explain_devices_json() - the same; NULL: no memory */
json_t *explain_devices_json(const struct rx_plan_query *query, uint32_t n_devices,
	const struct explanation *what, const struct thresholds *thresholds);

#endif
