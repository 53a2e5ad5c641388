/* SPDX-License-Identifier: MIT */
/*
 * The default floating point environment, for as long as something is computed. The caller may have
 * set flush-to-zero, another rounding mode or traps; its peers may not.
 */
#ifndef RX_FLOAT_ENV_H
#define RX_FLOAT_ENV_H

#include "../../shm/rx_base.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef uint32_t rx_float_env;

/** rx_float_env_enter() - Return: what rx_float_env_leave() takes */
static inline rx_float_env rx_float_env_enter(void)
{
	const uint32_t control_default = 0x1f80;
	uint32_t before = _mm_getcsr();

	if (rx_unlikely((before & ~0x3fu) != control_default))
		_mm_setcsr(control_default);
	return before;
}

static inline void rx_float_env_leave(rx_float_env before)
{
	if (rx_unlikely((before & ~0x3fu) != (_mm_getcsr() & ~0x3fu)))
		_mm_setcsr(before);
}
#else
#include <fenv.h>

typedef fenv_t rx_float_env;

static inline rx_float_env rx_float_env_enter(void)
{
	rx_float_env before;

	(void)fegetenv(&before);
	(void)fesetenv(FE_DFL_ENV);
	return before;
}

static inline void rx_float_env_leave(rx_float_env before)
{
	(void)fesetenv(&before);
}
#endif

#endif
