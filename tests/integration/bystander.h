/* SPDX-License-Identifier: MIT */
/* Two ranks that reduce all the while and must not notice what others do to the daemon. */
#ifndef TEST_BYSTANDER_H
#define TEST_BYSTANDER_H

#include "harness.h"

/** bystander_start() - returns when they are at work */
struct world *bystander_start(const struct node *node);

/** bystander_stop() - they all went well, and did some work since the start */
void bystander_stop(struct world *world);

#endif
