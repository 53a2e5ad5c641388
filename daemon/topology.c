/* SPDX-License-Identifier: MIT */
/*
 * What forming a communicator asks is answered from tables of CPU masks, made at the start: the
 * event loop does not walk hwloc's tree.
 *
 * Whether each rank can have a core is a matching problem: ranks on one side, cores on the other.
 * Counting the cores of all ranks together would miss two ranks that are bound to the same one.
 */
#include "topology.h"

#include "../shm/rx_log.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MASK_WORDS RX_ARRAY_SIZE(((struct cpu_mask *)NULL)->words)
#define CPUS_MAX   (RX_CPUS_BYTES * 8u)
#define NO_RANK    UINT32_MAX

static const struct kind {
	const char *name;
	hwloc_obj_type_t type;
	enum topology_share share;
} kinds[] = {
	{"package", HWLOC_OBJ_PACKAGE, TOPOLOGY_SHARE_PACKAGE},
	{"numa", HWLOC_OBJ_NUMANODE, TOPOLOGY_SHARE_NUMA},
	{"l3", HWLOC_OBJ_L3CACHE, TOPOLOGY_SHARE_L3},
	{"l2", HWLOC_OBJ_L2CACHE, TOPOLOGY_SHARE_L2},
	{"core", HWLOC_OBJ_CORE, TOPOLOGY_SHARE_CORE},
};

#define KIND_N RX_ARRAY_SIZE(kinds)

struct object {
	struct cpu_mask cpus;
	uint64_t bytes;
	uint32_t index; /* among its kind */
	uint32_t kind;
	uint32_t n_cores;
};

struct topology {
	struct object *objects; /* in order of kinds; cores are the last */
	uint32_t n_objects;
	uint32_t n_of[KIND_N];
	uint32_t n_pus;
	struct object *cores;
	uint32_t n_cores;
};

/* ---- masks ---- */

struct cpu_mask topology_mask(const uint8_t *bytes, size_t n_bytes)
{
	struct cpu_mask mask = {{0}};

	for (size_t i = 0; i < n_bytes && i < RX_CPUS_BYTES; i++)
		mask.words[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
	return mask;
}

static bool mask_is_empty(const struct cpu_mask *mask)
{
	uint64_t any = 0;

	for (size_t i = 0; i < MASK_WORDS; i++)
		any |= mask->words[i];
	return any == 0;
}

static bool mask_meets(const struct cpu_mask *a, const struct cpu_mask *b)
{
	uint64_t any = 0;

	for (size_t i = 0; i < MASK_WORDS; i++)
		any |= a->words[i] & b->words[i];
	return any != 0;
}

static bool mask_inside(const struct cpu_mask *inner, const struct cpu_mask *outer)
{
	uint64_t rest = 0;

	for (size_t i = 0; i < MASK_WORDS; i++)
		rest |= inner->words[i] & ~outer->words[i];
	return rest == 0;
}

static bool mask_has(const struct cpu_mask *mask, uint32_t cpu)
{
	return cpu < CPUS_MAX && mask->words[cpu / 64] >> (cpu % 64) & 1;
}

/* "0-3,8": false when it did not fit. */
static bool mask_text(const struct cpu_mask *mask, char *text, size_t bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++) {
		uint32_t last = cpu;
		int n = 0;

		if (!mask_has(mask, cpu))
			continue;
		while (mask_has(mask, last + 1))
			last++;
		n = snprintf(text + at, bytes - at, last > cpu ? "%s%u-%u" : "%s%u",
			at > 0 ? "," : "", cpu, last);
		if (n < 0 || (size_t)n >= bytes - at) {
			text[at] = '\0';
			return false;
		}
		at += (size_t)n;
		cpu = last;
	}
	return true;
}

/* ---- reading ---- */

static int read_node(const char *synthetic, hwloc_topology_t *node_p)
{
	hwloc_topology_t node = NULL;
	int r = hwloc_topology_init(&node);

	if (r < 0)
		return -ENOMEM;
	if (synthetic)
		r = hwloc_topology_set_synthetic(node, synthetic);
	/* Clients may run where this process may not. */
	if (r == 0)
		r = hwloc_topology_set_flags(node, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
							   HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
	if (r == 0)
		r = hwloc_topology_load(node);
	if (r < 0) {
		r = errno > 0 ? -errno : -EIO;
		hwloc_topology_destroy(node);
		return r;
	}
	*node_p = node;
	return 0;
}

static int read_flat(hwloc_topology_t *node_p)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	char text[64];

	(void)snprintf(text, sizeof(text), "package:1 core:%ld pu:1", n > 0 ? n : 1);
	return read_node(text, node_p);
}

static uint64_t object_bytes(const hwloc_obj_t obj)
{
	if (obj->type == HWLOC_OBJ_NUMANODE)
		return obj->attr->numanode.local_memory;
	return hwloc_obj_type_is_cache(obj->type) ? obj->attr->cache.size : 0;
}

static void take_object(struct topology *topology, uint32_t kind, const hwloc_obj_t obj)
{
	struct object *object = &topology->objects[topology->n_objects++];

	*object = (struct object){
		.bytes = object_bytes(obj),
		.index = obj->logical_index,
		.kind = kind,
	};
	for (int cpu = hwloc_bitmap_first(obj->cpuset); cpu >= 0 && cpu < (int)CPUS_MAX;
		cpu = hwloc_bitmap_next(obj->cpuset, cpu))
		object->cpus.words[cpu / 64] |= 1ull << (cpu % 64);
}

static uint32_t count_kind(hwloc_topology_t node, hwloc_obj_type_t type)
{
	int n = hwloc_get_nbobjs_by_type(node, type);

	return n > 0 ? (uint32_t)n : 0;
}

static void count_cores(struct topology *topology)
{
	for (uint32_t i = 0; i < topology->n_objects; i++)
		for (uint32_t c = 0; c < topology->n_cores; c++)
			topology->objects[i].n_cores +=
				mask_inside(&topology->cores[c].cpus, &topology->objects[i].cpus);
}

/* Some virtual machines show no cores: then a CPU counts as one. */
static hwloc_obj_type_t type_of(hwloc_topology_t node, uint32_t kind)
{
	hwloc_obj_type_t type = kinds[kind].type;

	return type == HWLOC_OBJ_CORE && count_kind(node, type) == 0 ? HWLOC_OBJ_PU : type;
}

static int take_node(struct topology *topology, hwloc_topology_t node)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < KIND_N; k++) {
		topology->n_of[k] = count_kind(node, type_of(node, k));
		n += topology->n_of[k];
	}
	topology->objects = calloc(n > 0 ? n : 1, sizeof(*topology->objects));
	if (!topology->objects)
		return -ENOMEM;
	for (uint32_t k = 0; k < KIND_N; k++)
		for (uint32_t i = 0; i < topology->n_of[k]; i++)
			take_object(topology, k, hwloc_get_obj_by_type(node, type_of(node, k), i));
	topology->n_pus = count_kind(node, HWLOC_OBJ_PU);
	topology->n_cores = topology->n_of[KIND_N - 1];
	topology->cores = topology->objects + (topology->n_objects - topology->n_cores);
	count_cores(topology);
	return 0;
}

int topology_new(const char *synthetic, struct topology **topology_p)
{
	struct topology *topology = calloc(1, sizeof(*topology));
	hwloc_topology_t node = NULL;
	int r = topology ? 0 : -ENOMEM;

	/* Plug-ins look for GPUs and load their libraries, which a daemon must not do unasked. */
	if (!r && setenv("HWLOC_PLUGINS_PATH", "", 0) < 0)
		r = -ENOMEM;
	if (!r)
		r = read_node(synthetic, &node);
	if (r && r != -ENOMEM && !synthetic) {
		rx_warn("hwloc cannot read this node, which is taken for one package: %s",
			strerror(-r));
		r = read_flat(&node);
	}
	if (!r) {
		r = take_node(topology, node);
		hwloc_topology_destroy(node);
	}
	if (r) {
		(void)topology_free(topology);
		return r;
	}
	*topology_p = topology;
	return 0;
}

struct topology *topology_free(struct topology *topology)
{
	if (topology)
		free(topology->objects);
	free(topology);
	return NULL;
}

/* ---- places ---- */

/* A search for one more rank's core, along ranks that could move to another. */
struct match {
	const struct topology *topology;
	const struct cpu_mask *masks;
	uint32_t *rank_on;   /* of each core; NO_RANK */
	uint32_t *come_from; /* of each core in this search: the rank that wants it; NO_RANK */
};

static bool may_use(const struct match *m, uint32_t rank, uint32_t core)
{
	return mask_is_empty(&m->masks[rank]) ||
	       mask_meets(&m->masks[rank], &m->topology->cores[core].cpus);
}

/* @core is free: give it to who wants it, and that rank's old one to who wants that. */
static void move_ranks(struct match *m, uint32_t core, uint32_t core_of[RX_MAX_RANKS])
{
	while (core != UINT32_MAX) {
		uint32_t rank = m->come_from[core];
		uint32_t old = core_of[rank];

		m->rank_on[core] = rank;
		core_of[rank] = core;
		core = old;
	}
}

static bool find_core(struct match *m, uint32_t first, uint32_t core_of[RX_MAX_RANKS])
{
	uint32_t queue[RX_MAX_RANKS] = {first};
	uint32_t n_queued = 1;

	for (uint32_t c = 0; c < m->topology->n_cores; c++)
		m->come_from[c] = NO_RANK;
	for (uint32_t i = 0; i < n_queued; i++) {
		for (uint32_t c = 0; c < m->topology->n_cores; c++) {
			if (m->come_from[c] != NO_RANK || !may_use(m, queue[i], c))
				continue;
			m->come_from[c] = queue[i];
			if (m->rank_on[c] == NO_RANK) {
				move_ranks(m, c, core_of);
				return true;
			}
			queue[n_queued++] = m->rank_on[c];
		}
	}
	return false;
}

static bool core_for_each(
	const struct topology *topology, const struct cpu_mask *masks, uint32_t n_ranks)
{
	uint32_t rank_on[CPUS_MAX];
	uint32_t come_from[CPUS_MAX];
	uint32_t core_of[RX_MAX_RANKS];
	struct match m = {topology, masks, rank_on, come_from};
	bool found = n_ranks <= topology->n_cores && topology->n_cores <= CPUS_MAX;

	for (uint32_t c = 0; found && c < topology->n_cores; c++)
		rank_on[c] = NO_RANK;
	for (uint32_t rank = 0; rank < RX_MAX_RANKS; rank++)
		core_of[rank] = UINT32_MAX;
	for (uint32_t rank = 0; found && rank < n_ranks; rank++)
		found = find_core(&m, rank, core_of);
	return found;
}

/* CPUs of all ranks together; of the whole node as soon as one may run anywhere. */
static struct cpu_mask join(
	const struct topology *topology, const struct cpu_mask *masks, uint32_t n_ranks)
{
	struct cpu_mask all = {{0}};
	struct cpu_mask node = {{0}};
	bool anywhere = false;

	for (uint32_t c = 0; c < topology->n_cores; c++)
		for (size_t i = 0; i < MASK_WORDS; i++)
			node.words[i] |= topology->cores[c].cpus.words[i];
	for (uint32_t rank = 0; rank < n_ranks; rank++) {
		anywhere |= mask_is_empty(&masks[rank]);
		/* A mask may name CPUs that there are not. */
		for (size_t i = 0; i < MASK_WORDS; i++)
			all.words[i] |= masks[rank].words[i] & node.words[i];
	}
	return anywhere ? node : all;
}

struct topology_place topology_place(
	const struct topology *topology, const struct cpu_mask *masks, uint32_t n_ranks)
{
	struct cpu_mask all = join(topology, masks, n_ranks);
	struct topology_place place = {
		.cores_shared = !core_for_each(topology, masks, n_ranks),
		.share = TOPOLOGY_SHARE_NODE,
	};

	for (uint32_t c = 0; c < topology->n_cores; c++)
		place.n_cores += mask_meets(&all, &topology->cores[c].cpus);
	for (uint32_t i = 0; i < topology->n_objects; i++) {
		enum topology_share share = kinds[topology->objects[i].kind].share;

		if (share < place.share && mask_inside(&all, &topology->objects[i].cpus))
			place.share = share;
	}
	return place;
}

const char *topology_share_name(enum topology_share share)
{
	static const char *const names[_TOPOLOGY_SHARE_N] = {
		[TOPOLOGY_SHARE_CORE] = "core",
		[TOPOLOGY_SHARE_L2] = "l2",
		[TOPOLOGY_SHARE_L3] = "l3",
		[TOPOLOGY_SHARE_NUMA] = "numa",
		[TOPOLOGY_SHARE_PACKAGE] = "package",
		[TOPOLOGY_SHARE_NODE] = "node",
	};

	return names[share];
}

/* ---- for reports ---- */

static uint32_t n_of_share(const struct topology *topology, enum topology_share share)
{
	for (uint32_t k = 0; k < KIND_N; k++)
		if (kinds[k].share == share)
			return topology->n_of[k];
	return 0;
}

void topology_counts(const struct topology *topology, struct rx_msg_admin_topology_reply *reply)
{
	reply->n_packages = n_of_share(topology, TOPOLOGY_SHARE_PACKAGE);
	reply->n_numa = n_of_share(topology, TOPOLOGY_SHARE_NUMA);
	reply->n_l3 = n_of_share(topology, TOPOLOGY_SHARE_L3);
	reply->n_l2 = n_of_share(topology, TOPOLOGY_SHARE_L2);
	reply->n_cores = topology->n_cores;
	reply->n_pus = topology->n_pus;
}

bool topology_object(const struct topology *topology, uint64_t index,
	struct rx_topology_object *info_p, char cpus[TOPOLOGY_CPUS_TEXT])
{
	static const char dots[] = ",...";
	const struct object *object = NULL;

	if (index >= topology->n_objects)
		return false;
	object = &topology->objects[index];
	if (!mask_text(&object->cpus, cpus, TOPOLOGY_CPUS_TEXT - sizeof(dots)))
		memcpy(cpus + strlen(cpus), dots, sizeof(dots));
	*info_p = (struct rx_topology_object){
		.kind = kinds[object->kind].name,
		.index = object->index,
		.cpus = cpus,
		.n_cores = object->n_cores,
		.bytes = object->bytes,
	};
	return true;
}
