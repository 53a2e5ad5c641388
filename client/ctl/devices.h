/* SPDX-License-Identifier: MIT */
/* The daemon's GPUs, as status and devices show them. */
#ifndef CTL_DEVICES_H
#define CTL_DEVICES_H

#include "admin.h"

#include <jansson.h>

typedef enum ctl_exit (*devices_fn)(const struct rx_device_info *device, void *ctx);

/** devices_each() - call @fn for all of them until it fails */
RX_WARN_UNUSED enum ctl_exit devices_each(struct admin *admin, devices_fn fn, void *ctx);

/** devices_append_json() - all that is known of a device, to @array; a devices_fn */
enum ctl_exit devices_append_json(const struct rx_device_info *device, void *array);

#endif
