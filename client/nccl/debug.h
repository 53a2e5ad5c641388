/* SPDX-License-Identifier: MIT */
/* NCCL_DEBUG and NCCL_DEBUG_FILE. The environment is read at the first message. */
#ifndef NCCL_DEBUG_H
#define NCCL_DEBUG_H

enum debug_level {
	DEBUG_NONE,
	DEBUG_VERSION,
	DEBUG_WARN,
	DEBUG_INFO,
	DEBUG_TRACE,
};

/** debug_log() - one line, if NCCL_DEBUG asks for @level */
void debug_log(enum debug_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** debug_wants() - would debug_log() write? */
int debug_wants(enum debug_level level);

/** debug_greet() - once per process: the version, and which variables have no meaning here */
void debug_greet(void);

#endif
