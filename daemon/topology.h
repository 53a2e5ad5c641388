/* SPDX-License-Identifier: MIT */
/*
 * The node as hwloc sees it: packages, NUMA nodes, caches, cores; and where the ranks of a
 * communicator are in it. Read once, at the start.
 */
#ifndef DAEMON_TOPOLOGY_H
#define DAEMON_TOPOLOGY_H

#include "../proto/rx_msg.h"

/* CPUs a thread may run on, by the kernel's numbers. */
struct cpu_mask {
	uint64_t words[RX_CPUS_BYTES / sizeof(uint64_t)];
};

struct topology;

enum topology_share { /* from near to far */
	TOPOLOGY_SHARE_CORE,
	TOPOLOGY_SHARE_L2,
	TOPOLOGY_SHARE_L3,
	TOPOLOGY_SHARE_NUMA,
	TOPOLOGY_SHARE_PACKAGE,
	TOPOLOGY_SHARE_NODE,
	_TOPOLOGY_SHARE_N
};

/* Where ranks may run. */
struct topology_place {
	uint32_t n_cores;          /* together */
	bool cores_shared;         /* there is no way to give each rank a core of its own */
	enum topology_share share; /* the smallest thing that all of them are inside of */
};

/**
 * topology_new() - look at this node
 * @synthetic: a description in hwloc's syntax to use instead, for tests; NULL: the real one
 *
 * A node that hwloc cannot read becomes one package of cores.
 */
RX_WARN_UNUSED int topology_new(const char *synthetic, struct topology **topology_p);

/** topology_free() - returns NULL; NULL is allowed */
struct topology *topology_free(struct topology *topology);

/** topology_place() - of ranks with these masks; an empty mask may run anywhere */
struct topology_place topology_place(
	const struct topology *topology, const struct cpu_mask *masks, uint32_t n_ranks);

/** topology_share_name() - "core", "l2", "l3", "numa", "package", "node" */
const char *topology_share_name(enum topology_share share);

/** topology_mask() - from the bytes of a message, RX_CPUS_BYTES at most */
struct cpu_mask topology_mask(const uint8_t *bytes, size_t n_bytes);

/** topology_counts() - fill the numbers of @reply */
void topology_counts(const struct topology *topology, struct rx_msg_admin_topology_reply *reply);

#define TOPOLOGY_CPUS_TEXT 256u

/**
 * topology_object() - packages, NUMA nodes, caches and cores in that order
 * @cpus: room for the text that info_p->cpus will point to; longer lists end in "..."
 *
 * Return: false when there are not so many.
 */
bool topology_object(const struct topology *topology, uint64_t index,
	struct rx_topology_object *info_p, char cpus[TOPOLOGY_CPUS_TEXT]);

#endif
