/* SPDX-License-Identifier: MIT */
#include "job.h"

#include "../../shm/rx_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Pairs: both have to be there; the second may be NULL. */
static const struct {
	const char *first;
	const char *second;
} launchers[] = {
	{"RCCLX_JOB", NULL},
	{"TORCHELASTIC_RUN_ID", "MASTER_PORT"},
	{"SLURM_JOB_ID", "SLURM_STEP_ID"},
	{"PMIX_NAMESPACE", NULL},
	{"OMPI_MCA_ess_base_jobid", NULL},
	{"PMI_JOBID", NULL},
};

bool job_name(char *text, size_t bytes)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(launchers); i++) {
		const char *first = getenv(launchers[i].first);
		const char *second = launchers[i].second ? getenv(launchers[i].second) : "";

		if (!first || !first[0] || !second)
			continue;
		(void)snprintf(text, bytes, "%s=%s/%s", launchers[i].first, first, second);
		return true;
	}
	(void)snprintf(text, bytes, "session=%d", (int)getsid(0));
	return false;
}
