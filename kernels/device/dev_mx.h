/* SPDX-License-Identifier: MIT */
/*
 * The low-precision codec on a device (kernels/codec/mxfp8_def.h says what its bits are), and which
 * parts of which messages a launch encodes, adds up and decodes.
 *
 * A block of MXFP8 is worked on by a group of 8 threads (float32) or 4 (16-bit types), each of
 * which has 16 bytes of it. Values are divided by the scale in fp32, which is exact as far as it
 * matters: what leaves the range of fp32 there becomes zero anyway. Rounding to the format is then
 * an addition of a number whose last bit is worth the format's last one, so that a value which is
 * only added up never is a code; where codes are needed, and the device converts them, it does
 * that.
 */
#ifndef RX_DEV_MX_H
#define RX_DEV_MX_H

#include "dev_convert.h"
#include "dev_reduce.h"

#define RX_MX_FN DEV_FN
#include "../codec/mxfp8_def.h"

/* From here on a block's values may add up to more than fp32 has, with 64 ranks. */
#define DEV_MX_WILD 240u

/* ---- one block ---- */

struct dev_mx_scale {
	uint32_t byte;
	float down;     /* by which values are multiplied before they are rounded, */
	float up;       /* and codes afterwards */
	uint32_t limit; /* magnitudes up to this one become zero */
	bool special;
	bool saturated; /* the largest value is rounded to above the type's largest */
	bool plain;     /* all of that, and the sum of 64 such values, is normal in fp32 */
};

/* Largest magnitudes of such blocks: those that have scale bytes from 16 to 239. */
#define DEV_MX_PLAIN_FIRST (24u << 23)
#define DEV_MX_PLAIN_SPAN  ((224u << 23) - 0x1fffffu)

DEV_FN float dev_mx_power(int32_t exponent)
{
	return dev_float(exponent > -127 ? (uint32_t)(exponent + 127) << 23
					 : 0x400000u >> (-127 - exponent));
}

/*
 * @amax: the largest finite magnitude of the block. @above: the power of two above the type's
 * values, to which is rounded what is not more than half of the last digit, of three or two, below.
 */
DEV_FN struct dev_mx_scale dev_mx_scale_of(uint32_t amax, bool special, uint32_t above)
{
	struct dev_mx_scale scale;
	int32_t exponent = 0;

	scale.byte = rx_mx_scale(amax, special);
	scale.special = special;
	scale.saturated = amax >= above - (special ? 0x100000u : 0x80000u);
	scale.plain = false;
	exponent = rx_mx_exponent(scale.byte);
	scale.down = dev_mx_power(-exponent);
	scale.up = dev_mx_power(exponent);
	scale.limit = dev_bits(dev_mx_power(exponent - (special ? 17 : 10)));
	return scale;
}

/* Is it a block for the following? One of zeros is, with any scale. */
DEV_FN bool dev_mx_is_plain(uint32_t amax)
{
	return amax - DEV_MX_PLAIN_FIRST < DEV_MX_PLAIN_SPAN || amax == 0;
}

/* The same as dev_mx_scale_of(), in a few instructions. */
DEV_FN struct dev_mx_scale dev_mx_plain_scale(uint32_t amax, uint32_t above)
{
	struct dev_mx_scale scale;
	uint32_t least = amax > DEV_MX_PLAIN_FIRST ? amax : DEV_MX_PLAIN_FIRST;
	uint32_t top = (least + 0x1fffffu) & RX_MX_INF;

	scale.byte = amax ? (top >> 23) - 8u : 0u;
	scale.down = dev_float((262u << 23) - top);
	scale.up = dev_float(top - (8u << 23));
	scale.limit = top - (18u << 23);
	scale.special = false;
	scale.saturated = amax >= above - 0x80000u;
	scale.plain = true;
	return scale;
}

/* A quotient to the nearest of E4M3 or E5M2, which is none that they lack. */
DEV_FN float dev_mx_round(float v, bool special)
{
	uint32_t bits = dev_bits(v);
	uint32_t binade = bits & RX_MX_INF;
	uint32_t smallest = special ? 113u << 23 : 121u << 23; /* 2^-14, 2^-6 */
	uint32_t larger = special ? 21u << 23 : 20u << 23;
	float rounder = dev_float(
		((binade > smallest ? binade : smallest) + larger) | 0x400000u); /* times 1.5 */
	float rounded = (v + rounder) - rounder;

	return dev_float((dev_bits(rounded) & RX_MX_MAGNITUDE) | (bits & RX_MX_SIGN));
}

/* Four values of a plain block, encoded and decoded. */
DEV_FN void dev_mx_plain_through(float *v, const struct dev_mx_scale *scale)
{
#if defined(DEV_HAS_FP8) && !defined(DEV_FP8_IS_FNUZ)
	uint32_t low = dev_fit2_e4m3(v[0] * scale->down, v[1] * scale->down);
	uint32_t high = dev_fit2_e4m3(v[2] * scale->down, v[3] * scale->down);

	dev_widen4_e4m3(low | high << 16, v);
	DEV_UNROLL
	for (uint32_t k = 0; k < 4; k++)
		v[k] *= scale->up;
#else
	DEV_UNROLL
	for (uint32_t k = 0; k < 4; k++)
		v[k] = dev_mx_round(v[k] * scale->down, false) * scale->up;
#endif
}

/* Four values of a plain block to the format's, not yet scaled back; is one of them zero? */
DEV_FN bool dev_mx_plain_round(const float *v, const struct dev_mx_scale *scale, float *rounded)
{
#if defined(DEV_HAS_FP8) && !defined(DEV_FP8_IS_FNUZ)
	uint32_t low = dev_fit2_e4m3(v[0] * scale->down, v[1] * scale->down);
	uint32_t high = dev_fit2_e4m3(v[2] * scale->down, v[3] * scale->down);
	uint32_t codes = low | high << 16;

	dev_widen4_e4m3(codes, rounded);
	return ((codes & 0x7f7f7f7fu) - 0x01010101u) & 0x80808080u;
#else
	bool zero = false;

	DEV_UNROLL
	for (uint32_t k = 0; k < 4; k++) {
		rounded[k] = dev_mx_round(v[k] * scale->down, false);
		zero |= rounded[k] == 0;
	}
	return zero;
#endif
}

/* A rounded quotient to what it stands for; @was: before. */
DEV_FN float dev_mx_back(float rounded, float was, const struct dev_mx_scale *scale)
{
	float v = rounded * scale->up;

	if (scale->byte < DEV_MX_WILD)
		return v;
	if ((dev_bits(was) & RX_MX_MAGNITUDE) > RX_MX_INF)
		return dev_float(RX_MX_NAN);
	if ((dev_bits(was) & RX_MX_MAGNITUDE) == RX_MX_INF)
		return was;
	return dev_float((dev_bits(v) & RX_MX_MAGNITUDE) >= RX_MX_INF
				 ? (dev_bits(v) & RX_MX_SIGN) | RX_MX_MAX_F32
				 : dev_bits(v));
}

/* Four values to four codes. */
DEV_FN uint32_t dev_mx_codes(const float *v, const struct dev_mx_scale *scale)
{
	uint32_t codes = 0;

	if (!scale->special)
		return dev_fit2_e4m3(v[0] * scale->down, v[1] * scale->down) |
		       dev_fit2_e4m3(v[2] * scale->down, v[3] * scale->down) << 16;
	DEV_UNROLL
	for (uint32_t k = 0; k < 4; k++)
		codes |= dev_narrow_e5m2(v[k] * scale->down) << k * 8;
	return codes;
}

/* Four codes to four values: as rx_mx_decode_one(). E4M3's NaN is none that is ever written. */
DEV_FN void dev_mx_values(uint32_t codes, uint32_t byte, float *v)
{
	float up = dev_mx_power(rx_mx_exponent(byte));

	if (byte < DEV_MX_WILD) {
		dev_widen4_e4m3(codes, v);
		DEV_UNROLL
		for (uint32_t k = 0; k < 4; k++)
			v[k] *= up;
		return;
	}
	DEV_UNROLL
	for (uint32_t k = 0; k < 4; k++)
		v[k] = dev_float(rx_mx_decode_one((uint8_t)(codes >> k * 8), byte));
}

/* ---- what to do with which blocks ---- */

enum dev_mx_result {
	DEV_MX_VALUES, /* values of the type */
	DEV_MX_AGAIN,  /* the same, encoded and decoded once more */
	DEV_MX_BF16,   /* the same, rounded to bfloat16 on the way */
	DEV_MX_CODES,  /* codes and scales, into lanes of slots */
	DEV_MX_SUMS    /* bfloat16, into lanes of slots */
};

/* As struct dev_many, of the pointers of struct rx_dev_args from send[0] on. */
struct dev_mx_many {
	uint64_t at;
	uint64_t stride;
	uint32_t first;
	uint32_t step;
};

#define DEV_MX_SEND 0u
#define DEV_MX_RECV RX_DEV_MAX_RANKS
#define DEV_MX_SLOT (2 * RX_DEV_MAX_RANKS)

/* What is done alike: all of it by all threads of this block. */
struct dev_mx_task {
	struct dev_mx_many src; /* values, or lanes of slots */
	struct dev_mx_many dst;
	uint64_t outputs;  /* ranks whose dst is written */
	uint64_t count;    /* elements */
	uint64_t scale_at; /* in a lane: where scales begin */
	uint32_t first;    /* sources: ranks from this one on, */
	uint32_t n;        /* so many, added up */
	uint32_t result;   /* enum dev_mx_result */
	bool sums;         /* lanes hold bfloat16 */
	bool average;
	bool counted;
};

enum dev_mx_phase {
	DEV_MX_DIRECT, /* straight from send to recv */
	DEV_MX_PUT,    /* through slots: into them, */
	DEV_MX_TAKE,   /* after a barrier, out of them */
	DEV_MX_FETCH   /* and of a tree, after a second barrier, the sums */
};

/*
 * In the memory that the threads of a block share, so that they do not keep it in registers: the
 * first one writes it, when the others do not read it.
 */
struct dev_mx_flow {
	struct dev_mx_task task;
	struct dev_lanes lanes;
	uint64_t put_region;  /* of what came before the last barrier */
	uint64_t next_region; /* for what comes before the next one */
	uint64_t longest;     /* share of a segment, in elements */
	uint64_t round;
	uint32_t phase;     /* enum dev_mx_phase */
	uint32_t next_task; /* of the phase */
	bool push;
	bool reduces;
	bool tree;
	bool apart;  /* a rank has something else for each taker, or each folder */
	bool common; /* what a rank takes is taken, or folded, once for all ranks of a launch */
	bool found;  /* there is a task */
};

DEV_FN bool dev_mx_args_ok(dev_args a)
{
	if (a->coll == RX_ALL_REDUCE || dev_is_reduce_scatter(a))
		return a->op == RX_SUM || (a->op == RX_AVG && a->n_avg > 0);
	return a->coll == RX_ALL_GATHER || a->coll == RX_ALL_GATHER_V || a->coll == RX_ALL_TO_ALL ||
	       a->coll == RX_ALL_TO_ALL_V;
}

/* Elements of a piece, and of the longest share: the first one of the first segment. */
DEV_FN void dev_mx_plan_rounds(dev_args a, struct dev_mx_flow *flow)
{
	uint64_t room = 0;

	flow->lanes = dev_lanes_of(a, flow->push || flow->apart ? a->n_ranks : 1);
	room = flow->lanes.bytes / (RX_MX_BLOCK + 1);
	if (flow->tree && (a->flags & RX_DEV_SUMS_BF16))
		room = dev_min(room, flow->lanes.bytes / (2 * RX_MX_BLOCK));
	flow->lanes.piece = room * RX_MX_BLOCK;
	flow->longest = a->count;
	if (flow->tree)
		flow->longest = dev_share(a->count, dev_share_unit(a), a->n_ranks, 0).count;
	flow->longest = dev_share(flow->longest, dev_share_unit(a), dev_n_blocks(), 0).count;
}

DEV_FN void dev_mx_plan(const struct dev_run *run, struct dev_mx_flow *flow)
{
	dev_args a = run->a;

	flow->push = a->flags & RX_DEV_PUSH;
	flow->reduces = a->coll == RX_ALL_REDUCE || dev_is_reduce_scatter(a);
	flow->tree = a->coll == RX_ALL_REDUCE && a->algorithm == RX_DEV_TREE;
	flow->apart = flow->tree || (a->coll != RX_ALL_REDUCE && dev_is_personal(a));
	flow->common = !flow->apart && a->coll != RX_ALL_GATHER_V;
	flow->phase = a->algorithm == RX_DEV_DIRECT ? DEV_MX_DIRECT : DEV_MX_PUT;
	flow->next_task = 0;
	flow->round = 0;
	flow->lanes.bytes = 0;
	flow->lanes.piece = 0;
	flow->longest = a->count;
	if (flow->phase == DEV_MX_DIRECT)
		return;
	dev_mx_plan_rounds(a, flow);
	flow->next_region = dev_region(run);
}

/* False when there is nothing to do. */
DEV_FN bool dev_mx_begin(struct dev_run *run, struct dev_mx_flow *flow)
{
	bool fits = dev_mx_args_ok(run->a) && dev_n_threads() % DEV_STEP == 0;

	if (!fits && dev_thread() == 0 && dev_is_ok(run))
		dev_fail(run->shared, RX_DEV_E_ARGS);
	if (!fits || !dev_is_ok(run) || ((run->a->flags & RX_DEV_ENTRY) && !dev_meet(run)))
		return false;
	if (dev_thread() == 0)
		dev_mx_plan(run, flow);
	dev_meet_block();
	return flow->longest > 0;
}

/* Through slots: the barrier and what comes behind it; false at the end. */
DEV_FN bool dev_mx_next_phase(struct dev_run *run, struct dev_mx_flow *flow)
{
	uint32_t phase = dev_uniform(flow->phase);
	bool more = dev_uniform((flow->round + 1) * flow->lanes.piece < flow->longest);

	if (phase == DEV_MX_DIRECT)
		return false;
	if (phase == DEV_MX_FETCH || (phase == DEV_MX_TAKE && !flow->tree)) {
		dev_meet_block();
		if (dev_thread() == 0) {
			flow->round++;
			flow->phase = DEV_MX_PUT;
			flow->next_task = 0;
		}
		return more;
	}
#ifdef RX_DEV_MUTATE_NO_SUMS_BARRIER
	if (phase == DEV_MX_TAKE)
		dev_meet_block();
	else
#endif
		if (!dev_meet(run))
		return false;
	if (dev_thread() == 0) {
		flow->phase++;
		flow->next_task = 0;
		flow->put_region = flow->next_region;
		flow->next_region = dev_region(run);
	}
	return true;
}

DEV_FN struct dev_mx_many dev_mx_each(uint32_t table, uint64_t at)
{
	struct dev_mx_many many;

	many.at = at;
	many.stride = 0;
	many.first = table;
	many.step = 1;
	return many;
}

/* A lane of the slot of @rank, and at a distance of @stride those that are for other ranks. */
DEV_FN struct dev_mx_many dev_mx_lane(const struct dev_mx_flow *flow, uint64_t region,
	uint32_t rank, uint32_t lane, uint64_t stride)
{
	struct dev_mx_many many;

	many.at = region + lane * flow->lanes.bytes;
	many.stride = stride;
	many.first = DEV_MX_SLOT + rank;
	many.step = 0;
	return many;
}

/* The same one of each rank's slot. */
DEV_FN struct dev_mx_many dev_mx_lane_of_each(
	const struct dev_mx_flow *flow, uint64_t region, uint32_t lane)
{
	return dev_mx_each(DEV_MX_SLOT, region + lane * flow->lanes.bytes);
}

/* In registers again, or where all threads have one, in that. */
DEV_FN struct dev_many dev_mx_many(dev_args a, const struct dev_mx_many *from)
{
	struct dev_many many;

	many.table = dev_sends(a);
	many.at = dev_uniform64(from->at);
	many.stride = dev_uniform64(from->stride);
	many.first = dev_uniform(from->first);
	many.step = dev_uniform(from->step);
	return many;
}

/*
 * What @from has for @to: the whole message, a part of it, or a block, of which this is the share
 * of the thread block, through slots its piece of the round.
 */
DEV_FN struct rx_dev_block dev_mx_part(
	dev_args a, const struct dev_mx_flow *flow, uint32_t from, uint32_t to)
{
	struct rx_dev_block block = dev_block_at(a->count, 0, 0);
	struct dev_range range;

	if (a->coll != RX_ALL_REDUCE) {
		block = dev_block_of(a, from, to);
	} else if (flow->tree || flow->phase == DEV_MX_DIRECT) {
		range = dev_share(a->count, dev_share_unit(a), a->n_ranks, to);
		block = dev_block_at(range.count, range.first, range.first);
	}
	range = dev_own_share(block.count, dev_share_unit(a));
	if (flow->phase != DEV_MX_DIRECT)
		range = dev_piece(range, flow->lanes.piece, flow->round);
	return dev_block_at(range.count, block.send_at + range.first, block.recv_at + range.first);
}

/* How an allreduce's sums become values again, where they do not travel. */
DEV_FN uint32_t dev_mx_spread(dev_args a)
{
	return a->flags & RX_DEV_SUMS_BF16 ? DEV_MX_BF16 : DEV_MX_AGAIN;
}

/* Of a reduction, segment @to; else what @from has for @to. */
DEV_FN void dev_mx_direct(dev_args a, const struct dev_mx_flow *flow, uint32_t from, uint32_t to,
	struct dev_mx_task *task)
{
	uint64_t all = dev_all_ranks(a);

	task->counted = true;
	if (flow->reduces) {
		task->outputs = a->local & 1ull << to;
		if (a->coll == RX_ALL_REDUCE && task->outputs)
			task->outputs = all;
		if (a->coll == RX_ALL_REDUCE)
			task->result = dev_mx_spread(a);
		return;
	}
	if (!dev_is_local(a, from))
		return;
	task->outputs = flow->common ? all : 1ull << to;
	/* Of a variable all-gather, places differ, and the rest is the same for all. */
	if (a->coll == RX_ALL_GATHER_V)
		task->counted = to == (from + 1) % a->n_ranks;
}

DEV_FN void dev_mx_put(dev_args a, const struct dev_mx_flow *flow, uint32_t from, uint32_t to,
	struct dev_mx_task *task)
{
	uint64_t region = flow->next_region;

	if (!dev_is_local(a, from))
		return;
	task->first = from;
	task->n = 1;
	task->average = false;
	task->result = DEV_MX_CODES;
	task->outputs = 1;
	task->counted = true;
	if (!flow->push) {
		task->dst = dev_mx_lane(flow, region, from, flow->apart ? to : 0, 0);
	} else if (flow->apart) {
		task->dst = dev_mx_lane(flow, region, to, from, 0);
	} else {
		task->dst = dev_mx_lane_of_each(flow, region, from);
		task->outputs = dev_all_ranks(a);
	}
}

/* What @to takes from @from, or of a reduction from all. */
DEV_FN void dev_mx_take(dev_args a, const struct dev_mx_flow *flow, uint32_t from, uint32_t to,
	struct dev_mx_task *task)
{
	uint64_t region = flow->put_region;
	uint32_t lane = flow->apart ? to : 0;

	if (!dev_is_local(a, to))
		return;
	task->outputs = flow->common ? a->local : 1ull << to;
	task->first = 0;
	if (!flow->reduces) {
		task->src = flow->push ? dev_mx_lane(flow, region, to, from, 0)
				       : dev_mx_lane(flow, region, from, lane, 0);
		return;
	}
	task->src = dev_mx_lane_of_each(flow, region, lane);
	if (flow->push)
		task->src = dev_mx_lane(flow, region, to, 0, flow->lanes.bytes);
	if (flow->tree) {
		task->result = a->flags & RX_DEV_SUMS_BF16 ? DEV_MX_SUMS : DEV_MX_CODES;
		task->counted = true;
		region = flow->next_region;
		task->dst = flow->push ? dev_mx_lane_of_each(flow, region, to)
				       : dev_mx_lane(flow, region, to, to, 0);
		task->outputs = flow->push ? dev_all_ranks(a) : 1;
	} else if (a->coll == RX_ALL_REDUCE) {
		task->result = dev_mx_spread(a);
		task->counted = a->local & 1; /* rank 0's launch for all of them */
	}
}

/* The sums that @owner made. */
DEV_FN void dev_mx_fetch(
	dev_args a, const struct dev_mx_flow *flow, uint32_t owner, struct dev_mx_task *task)
{
	uint32_t from = flow->push ? dev_lowest_bit(a->local) : owner;

	task->src = dev_mx_lane(flow, flow->put_region, from, owner, 0);
	task->outputs = a->local;
	task->first = 0;
	task->n = 1;
	task->average = false;
	task->sums = a->flags & RX_DEV_SUMS_BF16;
}

/* Tasks of a phase: one for each pair, or for each rank, or one. */
DEV_FN uint32_t dev_mx_n_tasks(dev_args a, const struct dev_mx_flow *flow)
{
	uint32_t n = a->n_ranks;

	if (flow->phase == DEV_MX_FETCH || (flow->phase == DEV_MX_DIRECT && flow->reduces))
		return n;
	if (flow->phase == DEV_MX_PUT)
		return flow->apart ? n * n : n;
	if (flow->reduces)
		return flow->common ? 1 : n;
	return flow->common ? n : n * n;
}

/* Task @i of the phase; false when it is empty, or another launch's. */
DEV_FN bool dev_mx_task(
	dev_args a, const struct dev_mx_flow *flow, uint32_t i, struct dev_mx_task *task)
{
	uint32_t own = dev_lowest_bit(a->local);
	uint32_t to = dev_rotate(a, own, i);
	uint32_t from = to;
	struct rx_dev_block part;

	if (dev_mx_n_tasks(a, flow) > a->n_ranks) {
		from = i / a->n_ranks;
		/* The own one last: in place, it replaces what the others are made of. */
		if (flow->phase == DEV_MX_DIRECT)
			to = (from + 1 + i) % a->n_ranks;
	} else if (flow->common && flow->phase == DEV_MX_TAKE) {
		to = own;
	}
	part = dev_mx_part(a, flow, from, to);
	task->src = dev_mx_each(DEV_MX_SEND, part.send_at * a->elem_bytes);
	task->dst = dev_mx_each(DEV_MX_RECV, part.recv_at * a->elem_bytes);
	task->outputs = 0;
	task->count = part.count;
	task->scale_at = flow->lanes.piece;
	task->first = flow->reduces ? 0 : from;
	task->n = flow->reduces ? a->n_ranks : 1;
	task->result = DEV_MX_VALUES;
	task->sums = false;
	task->average = flow->reduces && a->op == RX_AVG;
	task->counted = false;
	if (flow->phase == DEV_MX_DIRECT)
		dev_mx_direct(a, flow, from, to, task);
	else if (flow->phase == DEV_MX_PUT)
		dev_mx_put(a, flow, from, to, task);
	else if (flow->phase == DEV_MX_TAKE)
		dev_mx_take(a, flow, from, to, task);
	else
		dev_mx_fetch(a, flow, to, task);
	return task->outputs && task->count;
}

/* Blocks that all threads together encode. */
DEV_FN uint32_t dev_mx_n_encoded(const struct dev_mx_flow *flow)
{
	const struct dev_mx_task *task = &flow->task;
	uint32_t times = flow->phase == DEV_MX_DIRECT ? task->n : 0;

	if (task->result == DEV_MX_AGAIN || task->result == DEV_MX_CODES)
		times++;
	return times * (uint32_t)((task->count + RX_MX_BLOCK - 1) / RX_MX_BLOCK);
}

/* The next one, for all threads; false when the phase has no more. */
DEV_FN bool dev_mx_next_task(const struct dev_run *run, struct dev_mx_flow *flow)
{
	dev_args a = run->a;

	dev_meet_block();
	if (dev_thread() == 0) {
		flow->found = false;
		while (!flow->found && flow->next_task < dev_mx_n_tasks(a, flow))
			flow->found = dev_mx_task(a, flow, flow->next_task++, &flow->task);
		if (flow->found && flow->task.counted)
			run->shared->counts[0] += dev_mx_n_encoded(flow);
	}
	dev_meet_block();
	return dev_uniform(flow->found);
}

/*
 * Blocks, from the first one on, that are whole and, where there are values, aligned for all ranks.
 */
DEV_FN uint32_t dev_mx_n_whole(dev_args a, const struct dev_mx_task *task)
{
	uint64_t sources = ~0ull >> (64 - task->n) << task->first;
	uint64_t bits =
		dev_differ(dev_mx_many(a, &task->src), dev_uniform64(sources), (const uint8_t *)0);

	bits |= dev_differ(
		dev_mx_many(a, &task->dst), dev_uniform64(task->outputs), (const uint8_t *)0);
	return bits & 15 ? 0 : (uint32_t)(task->count / RX_MX_BLOCK);
}

/* Block @block of a lane, or one that is there. */
DEV_FN uint32_t dev_mx_readable(const struct dev_mx_task *task, uint32_t block)
{
	return (uint64_t)block * RX_MX_BLOCK < task->count ? block : 0;
}

/* ---- counting ---- */

/* Before dev_begin(). */
DEV_FN void dev_mx_counts_begin(struct dev_shared *shared)
{
	if (dev_thread() == 0) {
		DEV_UNROLL
		for (uint32_t i = 0; i < 4; i++)
			shared->counts[i] = 0;
	}
}

/* By all threads, before dev_end(). */
DEV_FN void dev_mx_report(struct dev_run *run)
{
	struct rx_dev_mx_counts *out = run->a->counts;

	dev_meet_block();
	if (dev_thread() != 0 || !out)
		return;
	out += dev_block();
	*DEV_AS_GLOBAL(uint64_t, &out->n_blocks) = run->shared->counts[0];
	*DEV_AS_GLOBAL(uint64_t, &out->n_saturated) = run->shared->counts[1];
	*DEV_AS_GLOBAL(uint64_t, &out->n_flushed) = run->shared->counts[2];
	*DEV_AS_GLOBAL(uint64_t, &out->n_special) = run->shared->counts[3];
}

#endif
