/* SPDX-License-Identifier: MIT */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number_p)
{
	uint64_t number = 0;
	uint64_t unit = 1;
	char *end = NULL;

	/* strtoull() would take a sign and leading space. */
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	switch (toupper((unsigned char)*end)) {
	case 'G':
		unit <<= 10;
		/* fallthrough */
	case 'M':
		unit <<= 10;
		/* fallthrough */
	case 'K':
		unit <<= 10;
		end++;
		break;
	default:
		break;
	}
	if (errno || *end || !rx_mul_u64(number, unit, &number) || number < min || number > max)
		return false;
	*number_p = number;
	return true;
}
