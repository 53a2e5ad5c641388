/* SPDX-License-Identifier: MIT */
#include "coll_types.h"

#include <string.h>

/* A further name for a number; the name that is printed is in the tables below. */
struct alias {
	const char *name;
	int number;
};

static const struct {
	const char *name;
	const char *suffix; /* of kernels */
	uint32_t size;
	bool is_float;
} dtypes[RX_DTYPE_N] = {
	[RX_INT8] = {"int8", "i8", 1, false},
	[RX_UINT8] = {"uint8", "u8", 1, false},
	[RX_INT32] = {"int32", "i32", 4, false},
	[RX_UINT32] = {"uint32", "u32", 4, false},
	[RX_INT64] = {"int64", "i64", 8, false},
	[RX_UINT64] = {"uint64", "u64", 8, false},
	[RX_FLOAT16] = {"float16", "f16", 2, true},
	[RX_FLOAT32] = {"float32", "f32", 4, true},
	[RX_FLOAT64] = {"float64", "f64", 8, true},
	[RX_BFLOAT16] = {"bfloat16", "bf16", 2, true},
	[RX_FLOAT8E4M3] = {"float8e4m3", "e4m3", 1, true},
	[RX_FLOAT8E5M2] = {"float8e5m2", "e5m2", 1, true},
};

static const char *const redops[RX_REDOP_N] = {
	[RX_SUM] = "sum",
	[RX_PROD] = "prod",
	[RX_MAX] = "max",
	[RX_MIN] = "min",
	[RX_AVG] = "avg",
	[RX_PREMUL_SUM] = "premul_sum",
};

static const struct {
	const char *name;
	bool reduces;
} colls[RX_COLL_N] = {
	[RX_BARRIER] = {"barrier", false},
	[RX_ALL_REDUCE] = {"all_reduce", true},
	[RX_ALL_GATHER] = {"all_gather", false},
	[RX_REDUCE_SCATTER] = {"reduce_scatter", true},
	[RX_ALL_TO_ALL] = {"all_to_all", false},
	[RX_BROADCAST] = {"broadcast", false},
	[RX_REDUCE] = {"reduce", true},
	[RX_GATHER] = {"gather", false},
	[RX_SCATTER] = {"scatter", false},
	[RX_SEND] = {"send", false},
	[RX_RECV] = {"recv", false},
	[RX_ALL_GATHER_V] = {"all_gather_v", false},
	[RX_REDUCE_SCATTER_V] = {"reduce_scatter_v", true},
	[RX_ALL_TO_ALL_V] = {"all_to_all_v", false},
};

static const struct alias dtype_aliases[] = {
	{"char", RX_INT8},
	{"byte", RX_UINT8},
	{"int", RX_INT32},
	{"uint", RX_UINT32},
	{"long", RX_INT64},
	{"half", RX_FLOAT16},
	{"fp16", RX_FLOAT16},
	{"f16", RX_FLOAT16},
	{"float", RX_FLOAT32},
	{"fp32", RX_FLOAT32},
	{"f32", RX_FLOAT32},
	{"double", RX_FLOAT64},
	{"fp64", RX_FLOAT64},
	{"f64", RX_FLOAT64},
	{"bf16", RX_BFLOAT16},
	{"fp8_e4m3", RX_FLOAT8E4M3},
	{"f8e4m3", RX_FLOAT8E4M3},
	{"float8_e4m3", RX_FLOAT8E4M3},
	{"fp8_e5m2", RX_FLOAT8E5M2},
	{"f8e5m2", RX_FLOAT8E5M2},
	{"float8_e5m2", RX_FLOAT8E5M2},
};

static const struct alias redop_aliases[] = {
	{"add", RX_SUM},
	{"product", RX_PROD},
	{"mul", RX_PROD},
	{"maximum", RX_MAX},
	{"minimum", RX_MIN},
	{"average", RX_AVG},
	{"mean", RX_AVG},
	{"premulsum", RX_PREMUL_SUM},
};

/* Beside these, every name is understood without its underscores. */
static const struct alias coll_aliases[] = {
	{"bcast", RX_BROADCAST},
	{"a2a", RX_ALL_TO_ALL},
};

static int find_alias(const struct alias *aliases, size_t n_aliases, const char *name)
{
	for (size_t i = 0; i < n_aliases; i++) {
		if (strcmp(aliases[i].name, name) == 0)
			return aliases[i].number;
	}
	return -1;
}

/* Equal, where underscores of @full may be absent from @name? */
static bool same_but_underscores(const char *full, const char *name)
{
	for (; *full; full++) {
		if (*full == *name)
			name++;
		else if (*full != '_')
			return false;
	}
	return *name == '\0';
}

uint32_t rx_dtype_size(uint32_t dtype)
{
	return dtype < RX_DTYPE_N ? dtypes[dtype].size : 0;
}

const char *rx_dtype_name(uint32_t dtype)
{
	return dtype < RX_DTYPE_N ? dtypes[dtype].name : "?";
}

const char *rx_dtype_suffix(uint32_t dtype)
{
	return dtype < RX_DTYPE_N ? dtypes[dtype].suffix : "?";
}

const char *rx_redop_name(uint32_t op)
{
	return op < RX_REDOP_N ? redops[op] : "?";
}

const char *rx_coll_name(uint32_t coll)
{
	return coll < RX_COLL_N ? colls[coll].name : "?";
}

int rx_dtype_parse(const char *name)
{
	for (int i = 0; i < RX_DTYPE_N; i++) {
		if (strcmp(dtypes[i].name, name) == 0)
			return i;
	}
	return find_alias(dtype_aliases, RX_ARRAY_SIZE(dtype_aliases), name);
}

int rx_redop_parse(const char *name)
{
	for (int i = 0; i < RX_REDOP_N; i++) {
		if (strcmp(redops[i], name) == 0)
			return i;
	}
	return find_alias(redop_aliases, RX_ARRAY_SIZE(redop_aliases), name);
}

int rx_coll_parse(const char *name)
{
	for (int i = 0; i < RX_COLL_N; i++) {
		if (same_but_underscores(colls[i].name, name))
			return i;
	}
	return find_alias(coll_aliases, RX_ARRAY_SIZE(coll_aliases), name);
}

bool rx_dtype_is_float(uint32_t dtype)
{
	return dtype < RX_DTYPE_N && dtypes[dtype].is_float;
}

bool rx_coll_reduces(uint32_t coll)
{
	return coll < RX_COLL_N && colls[coll].reduces;
}
