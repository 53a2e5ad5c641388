/* SPDX-License-Identifier: MIT */
/* How far results are from what fp64 arithmetic gives. */
#ifndef PERF_ERROR_H
#define PERF_ERROR_H

#include "check.h"

/* Sums over the elements that were compared, so that ranks can add theirs up. */
struct perf_error {
	double error2; /* squares of differences */
	double exact2; /* squares of what should be */
	double worst;  /* largest difference */
};

/** perf_error_known() - is there such a comparison for this type and operation? */
bool perf_error_known(const struct perf_coll *coll, uint32_t dtype, uint32_t op);

/** perf_error_add() - compare all of the layout's elements at @result */
void perf_error_add(struct perf_error *error, struct perf_fold *fold, const void *result);

/** perf_error_l2() - relative L2 error */
double perf_error_l2(const struct perf_error *error);

#endif
