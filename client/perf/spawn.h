/* SPDX-License-Identifier: MIT */
/* Runs all ranks as child processes on this node, and watches them. */
#ifndef PERF_SPAWN_H
#define PERF_SPAWN_H

#include "options.h"
#include "rank.h"

/**
 * perf_spawn() - start options->n_ranks processes of this program and wait for them
 *
 * The first that dies or fails takes the others with it. Starts and ends the private daemon too.
 *
 * Return: exit status; 128 + signal when SIGINT, SIGTERM or SIGHUP ended the run.
 */
int perf_spawn(int argc, char **argv, const struct perf_options *options);

#endif
