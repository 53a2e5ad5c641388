/* SPDX-License-Identifier: MIT */
/* rcclxctl abi-check: the NCCL functions that a program imports, and what rcclxd does with each. */
#include "ctl.h"
#include "elf_file.h"

#include "../nccl/functions.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum nccl_answer answer;
} functions[] = {
#define FUNCTION(name, answer) {#name, answer},
	NCCL_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

struct count {
	unsigned int n;
	unsigned int refused;
	unsigned int missing;
};

/* A function or its twin; or a C++ name that has it inside. */
static bool is_nccl(const char *name)
{
	const char *plain = name[0] == 'p' ? name + 1 : name;

	return strncmp(plain, "nccl", 4) == 0 || strncmp(plain, "msccl", 5) == 0 ||
	       (strncmp(name, "_Z", 2) == 0 && strstr(name, "ncclComm") != NULL);
}

static const char *answer_of(const char *name, struct count *count)
{
	static const char *const texts[] = {
		[NCCL_WORKS] = "works",
		[NCCL_REMARK] = "works, with a remark in nccl(7)",
		[NCCL_REFUSED] = "refused: ncclInvalidUsage",
	};
	const char *plain = name[0] == 'p' ? name + 1 : name;

	for (size_t i = 0; i < RX_ARRAY_SIZE(functions); i++) {
		if (strcmp(functions[i].name, plain) != 0)
			continue;
		count->refused += functions[i].answer == NCCL_REFUSED;
		return texts[functions[i].answer];
	}
	count->missing++;
	return "missing: the program may not start";
}

static void on_symbol(void *owner, const char *name)
{
	struct count *count = owner;

	if (!is_nccl(name))
		return;
	count->n++;
	printf("%-40s %s\n", name, answer_of(name, count));
}

static void on_library(void *owner, const char *name)
{
	(void)owner;
	if (strstr(name, "nccl.so") || strstr(name, "rccl.so"))
		printf("%-40s named as a library that it needs\n", name);
}

enum ctl_exit cmd_abi_check(const struct ctl_options *options)
{
	struct count count = {0};
	const char *wrong = NULL;

	if (options->argc != 2 || options->argv[1][0] == '-') {
		fprintf(stderr, "usage: rcclxctl abi-check FILE\n"
				"List the functions of NCCL that a program or library imports.\n"
				"Exit status: 0 all are there, 1 some are missing, 2 usage.\n");
		return CTL_EXIT_USAGE;
	}
	wrong = elf_file_imports(options->argv[1], on_symbol, on_library, &count);
	if (wrong) {
		fprintf(stderr, "rcclxctl: %s: %s\n", options->argv[1], wrong);
		return CTL_EXIT_USAGE;
	}
	printf("%u functions of NCCL, %u refused, %u missing%s\n", count.n, count.refused,
		count.missing,
		count.n ? ""
			: "; what a program looks up when it runs, as Python does, is not seen "
			  "here: rcclxctl which PID");
	return count.missing ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
