/* SPDX-License-Identifier: MIT */
/* rcclxctl explain: the plan of an operation, or of all sizes, and what it follows from. */
#include "explain.h"
#include "explain_devices.h"
#include "number.h"
#include "print.h"
#include "thresholds.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#define ALL_BYTES_MAX (1ull << 30)

enum cores { CORES_BY_NUMBER, CORES_OWN, CORES_SHARED };

struct request {
	struct rx_plan_query query;
	struct explain_precision precision;
	enum cores cores;
	uint32_t n_devices; /* 0: host memory */
	bool all;
	bool json;
	const char *socket;
};

static enum ctl_exit help(void)
{
	printf("Usage: rcclxctl explain COLLECTIVE DTYPE COUNT --ranks N [OPTIONS]\n"
	       "       rcclxctl explain COLLECTIVE DTYPE --ranks N --all [OPTIONS]\n"
	       "What serves an operation, by which rule, and where the rule comes from.\n\n"
	       "  COUNT                     elements, as the collective counts them; K, M, G\n"
	       "  --ranks N                 1 to 64\n"
	       "  --op OP                   sum, prod, max, min, avg, premul_sum (sum)\n"
	       "  --registered, --private   the memory of all ranks (registered); where only some is\n"
	       "                            registered, direct_min does not count\n"
	       "  --single-copy             private memory that the ranks may read, where it pays\n"
	       "  --cores-shared[=yes|no]   is there no core for each rank? (by the node's "
	       "cores)\n"
	       "  --precision exact|fp8|int8  what the call asks for (what the communicator has)\n"
	       "  --low-precision[=fp8|int8]  in a communicator that has it switched on (fp8)\n"
	       "  --devices N               and on the memory of so many GPUs\n"
	       "  --all                     all sizes from 1 element to 1 GiB\n"
	       "  --json, --socket PATH     as for all commands\n\n"
	       "Without a daemon the compiled defaults are explained.\n");
	return CTL_EXIT_OK;
}

static enum ctl_exit bad(const char *what, const char *value, const char *expected)
{
	fprintf(stderr, "rcclxctl: explain: %s \"%s\": expected %s\n", what, value, expected);
	return CTL_EXIT_USAGE;
}

static enum ctl_exit set_ranks(struct request *request, const char *text)
{
	uint64_t n = 0;

	if (!number_parse(text, 1, RX_MAX_RANKS, &n))
		return bad("--ranks", text, "1 to 64");
	request->query.n_ranks = (uint32_t)n;
	return CTL_EXIT_OK;
}

static enum ctl_exit set_devices(struct request *request, const char *text)
{
	uint64_t n = 0;

	if (!number_parse(text, 1, RX_MAX_RANKS, &n))
		return bad("--devices", text, "1 to 64");
	request->n_devices = (uint32_t)n;
	return CTL_EXIT_OK;
}

static enum ctl_exit set_op(struct request *request, const char *text)
{
	int op = rx_redop_parse(text);

	if (op < 0)
		return bad("--op", text, "sum, prod, max, min, avg or premul_sum");
	request->query.op = (uint32_t)op;
	return CTL_EXIT_OK;
}

static enum ctl_exit set_precision(struct request *request, const char *text)
{
	if (strcmp(text, "exact") == 0)
		request->precision.request = RX_PRECISION_EXACT;
	else if (strcmp(text, "fp8") == 0)
		request->precision.request = RX_PRECISION_FP8;
	else if (strcmp(text, "int8") == 0)
		request->precision.request = RX_PRECISION_INT8;
	else
		return bad("--precision", text, "exact, fp8 or int8");
	return CTL_EXIT_OK;
}

static enum ctl_exit set_low_precision(struct request *request, const char *text)
{
	request->precision.on = true;
	request->precision.int8 = text && strcmp(text, "int8") == 0;
	if (text && !request->precision.int8 && strcmp(text, "fp8") != 0)
		return bad("--low-precision", text, "fp8 or int8");
	return CTL_EXIT_OK;
}

static enum ctl_exit set_cores(struct request *request, const char *text)
{
	if (!text || strcmp(text, "yes") == 0)
		request->cores = CORES_SHARED;
	else if (strcmp(text, "no") == 0)
		request->cores = CORES_OWN;
	else
		return bad("--cores-shared", text, "yes or no");
	return CTL_EXIT_OK;
}

static enum ctl_exit apply(struct request *request, int c)
{
	switch (c) {
	case 'r':
		return set_ranks(request, optarg);
	case 'd':
		return set_devices(request, optarg);
	case 'o':
		return set_op(request, optarg);
	case 'c':
		return set_cores(request, optarg);
	case 'p':
		return set_precision(request, optarg);
	case 'l':
		return set_low_precision(request, optarg);
	case 'R':
		request->query.registered = true;
		return CTL_EXIT_OK;
	case 'P':
		request->query.registered = false;
		return CTL_EXIT_OK;
	case 'S':
		request->query.registered = false;
		request->query.reachable = true;
		return CTL_EXIT_OK;
	case 'a':
		request->all = true;
		return CTL_EXIT_OK;
	case 'j':
		request->json = true;
		return CTL_EXIT_OK;
	case 's':
		request->socket = optarg;
		return CTL_EXIT_OK;
	default:
		return CTL_EXIT_USAGE;
	}
}

static enum ctl_exit take_words(struct request *request, int n, char **words)
{
	int coll = n > 0 ? rx_coll_parse(words[0]) : -1;
	int dtype = n > 1 ? rx_dtype_parse(words[1]) : -1;
	bool barrier = coll == RX_BARRIER;
	int n_words = barrier ? 1 : (request->all ? 2 : 3);

	if (n > 0 && coll < 0)
		return bad("collective", words[0], "all_reduce, all_gather, ...");
	if (n != n_words) {
		fprintf(stderr,
			"rcclxctl: explain: expected COLLECTIVE%s%s; see rcclxctl explain "
			"--help\n",
			barrier ? "" : " DTYPE", barrier || request->all ? "" : " COUNT");
		return CTL_EXIT_USAGE;
	}
	request->query.coll = (uint32_t)coll;
	request->query.dtype = RX_UINT8;
	if (barrier)
		return CTL_EXIT_OK;
	if (dtype < 0)
		return bad("type", words[1], "float32, bfloat16, half, int32, ...");
	request->query.dtype = (uint32_t)dtype;
	if (!request->all && (!number_parse(words[2], 0, UINT64_MAX, &request->query.count) ||
				     !explain_query_ok(&request->query)))
		return bad("count", words[2], "a number of elements");
	return CTL_EXIT_OK;
}

static enum ctl_exit parse(const struct ctl_options *options, struct request *request)
{
	static const struct option long_options[] = {
		{"ranks", required_argument, NULL, 'r'},
		{"devices", required_argument, NULL, 'd'},
		{"op", required_argument, NULL, 'o'},
		{"registered", no_argument, NULL, 'R'},
		{"private", no_argument, NULL, 'P'},
		{"single-copy", no_argument, NULL, 'S'},
		{"cores-shared", optional_argument, NULL, 'c'},
		{"precision", required_argument, NULL, 'p'},
		{"low-precision", optional_argument, NULL, 'l'},
		{"all", no_argument, NULL, 'a'},
		{"json", no_argument, NULL, 'j'},
		{"socket", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	int c = 0;

	optind = 0; /* glibc: start afresh */
	while ((c = getopt_long(options->argc, options->argv, "", long_options, NULL)) != -1) {
		enum ctl_exit status = apply(request, c);

		if (status != CTL_EXIT_OK)
			return status;
	}
	if (request->query.n_ranks == 0) {
		fprintf(stderr, "rcclxctl: explain: say how many: --ranks N\n");
		return CTL_EXIT_USAGE;
	}
	if (request->n_devices > request->query.n_ranks ||
		(request->n_devices > 0 && request->all)) {
		fprintf(stderr, "rcclxctl: explain: expected --devices for one size, and at most "
				"one for each rank\n");
		return CTL_EXIT_USAGE;
	}
	return take_words(request, options->argc - optind, options->argv + optind);
}

/* ---- text ---- */

static const char *executor_name(const struct explanation *what)
{
	return what->by_daemon ? "daemon" : "inline";
}

static const char *algorithm_name(const struct explanation *what)
{
	return what->by_daemon ? "copy" : rx_algorithm_name(what->plan.algorithm);
}

static bool has_chunks(const struct explanation *what)
{
	return !what->by_daemon && !what->low && what->plan.algorithm == RX_ALG_STAGED;
}

static uint64_t chunk_bytes(const struct rx_plan_query *query, const struct explanation *what)
{
	return what->plan.chunk_count * rx_dtype_size(query->dtype);
}

static const char *rule(
	const struct explanation *what, const struct rx_tuning_entry *entry, char cell[PRINT_CELL])
{
	if (what->decided_by == EXPLAIN_NONE)
		return what->reason;
	(void)snprintf(cell, PRINT_CELL, "%s %s %" PRIu64, what->relation,
		explain_threshold_name(what->decided_by), explain_value(entry, what->decided_by));
	return cell;
}

static const char *source(const struct thresholds *thresholds, const struct rx_plan_query *query,
	enum explain_threshold threshold)
{
	return threshold == EXPLAIN_NONE
		       ? "fixed"
		       : thresholds_from(thresholds, query->coll, query->n_ranks, threshold);
}

static void print_basis(const struct thresholds *thresholds)
{
	if (!thresholds->of_daemon)
		printf("no rcclxd answers: this follows from the compiled defaults\n");
	else
		printf("thresholds of epoch %" PRIu64 ", files of %s\n", thresholds->table.epoch,
			thresholds->dir ? thresholds->dir : "no folder");
}

static void print_subject(const struct rx_plan_query *query, const char *amount)
{
	printf("%s%s%s%s%s%s%s, %u ranks %s, %s memory%s\n", rx_coll_name(query->coll),
		*amount ? " of " : "", amount, query->coll == RX_BARRIER ? "" : " ",
		query->coll == RX_BARRIER ? "" : rx_dtype_name(query->dtype),
		rx_coll_reduces(query->coll) ? ", " : "",
		rx_coll_reduces(query->coll) ? rx_redop_name(query->op) : "", query->n_ranks,
		query->cores_shared ? "that share cores" : "with a core each",
		query->registered ? "registered" : "private",
		query->reachable ? " that the ranks may read" : "");
}

static const char *precision_name(const struct explanation *what)
{
	bool int8 = what->format == RX_MX_INT8;

	if (what->why_precision == RX_WHY_IF_LARGE)
		return int8 ? "int8 or exact" : "fp8 or exact";
	return what->low ? rx_mx_codec_of(what->format)->name : "exact";
}

static bool by_threshold(const struct explanation *what)
{
	return what->why_precision == RX_WHY_LARGE || what->why_precision == RX_WHY_SMALL;
}

static void show_precision(const struct rx_plan_query *query, const struct thresholds *thresholds,
	const struct rx_tuning_entry *entry, const struct explanation *what)
{
	printf("precision  %s\n", precision_name(what));
	if (by_threshold(what))
		printf("  because  %" PRIu64 " bytes in the larger buffer %s low_precision_min %u  "
		       "[%s]\n",
			what->precision_bytes, what->low ? ">=" : "<", entry->low_precision_min,
			source(thresholds, query, EXPLAIN_LOW_PRECISION_MIN));
	else
		printf("  because  %s\n", explain_why(what->why_precision));
	if (what->low || what->why_precision == RX_WHY_IF_LARGE)
		printf("  but      exact on GPUs, %s\n",
			what->format == RX_MX_INT8
				? "which have no int8"
				: "where nothing is checked, with an accuracy budget");
}

static void show_one(const struct request *request, const struct thresholds *thresholds,
	const struct rx_tuning_entry *entry)
{
	const struct rx_plan_query *query = &request->query;
	struct explanation what = explain(query, &request->precision, entry);
	char amount[PRINT_CELL] = "", cell[PRINT_CELL];

	if (query->coll != RX_BARRIER)
		(void)print_count(query->count, amount);
	print_subject(query, amount);
	printf("bytes      %" PRIu64 " (what one rank has for others)\n", what.bytes);
	show_precision(query, thresholds, entry, &what);
	printf("executor   %s%s\n", executor_name(&what),
		what.by_daemon ? "" : ", in blocking calls; a started operation is the daemon's");
	printf("algorithm  %s\n", algorithm_name(&what));
	printf("  because  %s%s  [%s]\n", what.decided_by == EXPLAIN_NONE ? "" : "bytes ",
		rule(&what, entry, cell), source(thresholds, query, what.decided_by));
	if (has_chunks(&what))
		printf("chunk      %" PRIu64 " bytes  [%s]\n", chunk_bytes(query, &what),
			source(thresholds, query, EXPLAIN_CHUNK));
	if (!what.low)
		printf("streaming  %s: bytes %s stream_min %" PRIu64 "  [%s]\n",
			what.plan.stream ? "yes" : "no", what.plan.stream ? ">=" : "<",
			entry->stream_min, source(thresholds, query, EXPLAIN_STREAM_MIN));
	if (request->n_devices > 0 && query->coll != RX_BARRIER)
		explain_devices_show(query, request->n_devices, &what, thresholds);
	print_basis(thresholds);
}

static bool show_ranges(const struct request *request, const struct thresholds *thresholds,
	const struct rx_tuning_entry *entry, const struct explain_range *ranges, size_t n)
{
	static const char *const headings[] = {">FROM", ">TO", "EXECUTOR", "ALGORITHM", "PRECISION",
		">CHUNK", "STREAM", "BECAUSE BYTES", "SOURCE", NULL};
	const struct rx_plan_query *query = &request->query;
	uint32_t size = rx_dtype_size(query->dtype);
	struct table table;
	bool ok = false;

	print_subject(query, "");
	table_init(&table, headings);
	for (size_t i = 0; i < n; i++) {
		const struct explanation *what = &ranges[i].what;
		char from[PRINT_CELL], to[PRINT_CELL], chunk[PRINT_CELL], why[PRINT_CELL];

		table_add(&table,
			(const char *[]){print_count(ranges[i].first * size, from),
				print_count(ranges[i].last * size, to), executor_name(what),
				algorithm_name(what), precision_name(what),
				has_chunks(what) ? print_count(chunk_bytes(query, what), chunk)
						 : "-",
				what->plan.stream ? "yes" : "no", rule(what, entry, why),
				source(thresholds, query, what->decided_by)});
	}
	ok = table_print(&table, "", stdout);
	table_deinit(&table);
	print_basis(thresholds);
	return ok;
}

/* ---- JSON ---- */

static json_t *to_json(const struct request *request, const struct thresholds *thresholds,
	const struct rx_tuning_entry *entry, const struct explanation *what)
{
	const struct rx_plan_query *query = &request->query;
	bool fixed = what->decided_by == EXPLAIN_NONE;
	json_t *why = fixed ? json_pack("{s:s, s:s}", "text", what->reason, "from", "fixed")
			    : json_pack("{s:s, s:s, s:I, s:s}", "threshold",
				      explain_threshold_name(what->decided_by), "relation",
				      what->relation, "value",
				      (json_int_t)explain_value(entry, what->decided_by), "from",
				      source(thresholds, query, what->decided_by));
	json_t *stream = json_pack("{s:s, s:I, s:s}", "threshold", "stream_min", "value",
		(json_int_t)entry->stream_min, "from",
		source(thresholds, query, EXPLAIN_STREAM_MIN));
	json_t *low = by_threshold(what)
			      ? json_pack("{s:s, s:s, s:I, s:s}", "threshold", "low_precision_min",
					"relation", what->low ? ">=" : "<", "value",
					(json_int_t)entry->low_precision_min, "from",
					source(thresholds, query, EXPLAIN_LOW_PRECISION_MIN))
			      : json_pack("{s:s, s:s}", "text", explain_why(what->why_precision),
					"from", "fixed");
	json_t *chunk =
		has_chunks(what) ? json_integer((json_int_t)chunk_bytes(query, what)) : json_null();

	return json_pack("{s:s, s:s, s:o, s:b, s:o, s:o, s:s, s:o}", "executor",
		executor_name(what), "algorithm", algorithm_name(what), "chunk_bytes", chunk,
		"stream", what->plan.stream, "rule", why, "stream_rule", stream, "precision",
		precision_name(what), "precision_rule", low);
}

static json_t *subject_json(const struct request *request, const struct thresholds *thresholds)
{
	const struct rx_plan_query *query = &request->query;

	return json_pack("{s:s, s:s, s:s, s:i, s:s, s:b, s:b, s:s, s:I}", "collective",
		rx_coll_name(query->coll), "dtype", rx_dtype_name(query->dtype), "op",
		rx_coll_reduces(query->coll) ? rx_redop_name(query->op) : "none", "ranks",
		(int)query->n_ranks, "memory", query->registered ? "registered" : "private",
		"single_copy", query->reachable, "cores_shared", query->cores_shared, "thresholds",
		thresholds->of_daemon ? "daemon" : "compiled defaults", "tuning_epoch",
		(json_int_t)thresholds->table.epoch);
}

static json_t *one_json(const struct request *request, const struct thresholds *thresholds,
	const struct rx_tuning_entry *entry)
{
	struct explanation what = explain(&request->query, &request->precision, entry);
	json_t *json = subject_json(request, thresholds);
	json_t *plan = to_json(request, thresholds, entry, &what);

	if (request->n_devices > 0 && json)
		(void)json_object_set_new(json, "devices",
			explain_devices_json(
				&request->query, request->n_devices, &what, thresholds));
	if (json && plan &&
		json_object_set_new(
			json, "count", json_integer((json_int_t)request->query.count)) == 0 &&
		json_object_set_new(json, "bytes", json_integer((json_int_t)what.bytes)) == 0 &&
		json_object_update(json, plan) == 0) {
		json_decref(plan);
		return json;
	}
	json_decref(json);
	json_decref(plan);
	return NULL;
}

static json_t *ranges_json(const struct request *request, const struct thresholds *thresholds,
	const struct rx_tuning_entry *entry, const struct explain_range *ranges, size_t n)
{
	uint32_t size = rx_dtype_size(request->query.dtype);
	json_t *json = subject_json(request, thresholds);
	json_t *array = json_array();
	bool ok = json && array;

	for (size_t i = 0; ok && i < n; i++) {
		json_t *range = to_json(request, thresholds, entry, &ranges[i].what);

		ok = range &&
		     json_object_set_new(range, "from_bytes",
			     json_integer((json_int_t)(ranges[i].first * size))) == 0 &&
		     json_object_set_new(range, "to_bytes",
			     json_integer((json_int_t)(ranges[i].last * size))) == 0 &&
		     json_array_append(array, range) == 0;
		json_decref(range);
	}
	if (ok && json_object_set(json, "ranges", array) == 0) {
		json_decref(array);
		return json;
	}
	json_decref(array);
	json_decref(json);
	return NULL;
}

static enum ctl_exit show(const struct request *request, const struct thresholds *thresholds)
{
	const struct rx_plan_query *query = &request->query;
	const struct rx_tuning_entry *entry =
		rx_tuning_for(&thresholds->table, query->coll, query->n_ranks);
	struct explain_range ranges[EXPLAIN_RANGES_MAX];
	size_t n = 0;
	bool ok = true;

	if (request->all && query->coll != RX_BARRIER) {
		n = explain_ranges(query, &request->precision, entry,
			ALL_BYTES_MAX / rx_dtype_size(query->dtype), ranges);
		ok = request->json ? json_print(ranges_json(request, thresholds, entry, ranges, n))
				   : show_ranges(request, thresholds, entry, ranges, n);
	} else if (request->json) {
		ok = json_print(one_json(request, thresholds, entry));
	} else {
		show_one(request, thresholds, entry);
	}
	if (ok)
		return CTL_EXIT_OK;
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

enum ctl_exit cmd_explain(const struct ctl_options *options)
{
	struct request request = {
		.query = {.op = RX_SUM, .registered = true},
		.json = options->json,
		.socket = options->socket,
	};
	struct thresholds thresholds;
	enum ctl_exit status = CTL_EXIT_OK;

	if (options->argc > 1 && strcmp(options->argv[1], "--help") == 0)
		return help();
	status = parse(options, &request);
	if (status == CTL_EXIT_OK)
		status = thresholds_get(request.socket, &thresholds);
	if (status != CTL_EXIT_OK)
		return status;
	request.query.cores_shared = request.cores == CORES_BY_NUMBER
					     ? request.query.n_ranks > thresholds.n_cores
					     : request.cores == CORES_SHARED;
	status = show(&request, &thresholds);
	thresholds_deinit(&thresholds);
	return status;
}
