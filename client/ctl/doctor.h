/* SPDX-License-Identifier: MIT */
/* What of this machine decides whether GPUs can be used, and what to do about it. */
#ifndef CTL_DOCTOR_H
#define CTL_DOCTOR_H

#include "../../shm/rx_base.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_NOTE, /* works, and could be better; or is only good to know */
	DOCTOR_BAD,
	_DOCTOR_LEVEL_N
};

struct doctor_finding {
	enum doctor_level level;
	char topic[24];
	char text[256];
	char fix[200]; /* "": nothing to do */
};

struct doctor {
	const char *root; /* in front of all paths: "" but for tests */
	struct doctor_finding *findings;
	size_t n;
	bool failed; /* out of memory: some are missing */
};

/** doctor_add() - @fix may be NULL; the text is formatted */
void doctor_add(struct doctor *doctor, enum doctor_level level, const char *topic, const char *fix,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/** doctor_examine() - the machine, as the caller sees it; runtimes are looked for, not started */
void doctor_examine(struct doctor *doctor);

void doctor_deinit(struct doctor *doctor);

const char *doctor_level_name(enum doctor_level level);

#endif
