/* SPDX-License-Identifier: MIT */
/*
 * A private daemon in a directory of its own, with its log in a file, and the check at the end
 * that it gave everything back.
 *
 * Functions whose failure means that the test failed do not return then: they report to cmocka.
 * Only the test process calls them, never a rank.
 */
#ifndef TEST_NODE_H
#define TEST_NODE_H

#include "proc.h"

#include <stddef.h>

#define NODE_EXPECTS 16u

/* A warning or error that the test provokes. */
struct log_expect {
	const char *text; /* part of the line */
	unsigned int min;
	unsigned int max;
};

struct node_options {
	const char *config;   /* text of its configuration file; NULL: stalls are reported late */
	const char *preload;  /* library for LD_PRELOAD; NULL: none */
	const char *env_name; /* one more environment variable; NULL: none */
	const char *env_value;
	uint64_t n_files; /* RLIMIT_NOFILE; 0: as is */
};

struct node {
	bool used;
	char dir[64];
	char socket[96];
	char admin[96];
	char log[96];
	char config[96];
	struct node_options options;
	pid_t pid;    /* 0: not running */
	int lifeline; /* the daemon ends when this end closes */
	struct proc_use at_start;
	bool any_maps; /* only those of memory files count */
	struct log_expect expects[NODE_EXPECTS];
	unsigned int n_expects;
};

/** node_start() - start a daemon in a new directory and wait until it answers; NULL: defaults */
struct node *node_start(const struct node_options *options);

/** node_expect() - the log may (min..max times) have a warning or error with @text */
void node_expect(struct node *node, const char *text, unsigned int min, unsigned int max);

/** node_log_count() - lines of the log that contain all of @a and @b (NULL: anything) */
unsigned int node_log_count(const struct node *node, const char *a, const char *b);

/** node_wait_log() - wait until a line contains @a and @b; fails the test after @ms */
void node_wait_log(const struct node *node, const char *a, const char *b, uint64_t ms);

/**
 * node_check_idle() - within 2 s: no session, communicator or region; fds and maps as at the start
 *
 * With a sanitizer only mappings of memory files are counted, its own come and go.
 */
void node_check_idle(struct node *node);

/**
 * node_use_is_fine() - descriptors may be as many as now, instead of as at the start, and only maps
 * of memory files count, as the daemon has started threads
 *
 * Waits until all memory files are unmapped.
 */
void node_use_is_fine(struct node *node);

/** node_stop() - node_check_idle(), SIGTERM, exit status 0, log as expected; removes its files */
void node_stop(struct node *node);

/** node_wait_end() - wait until it has ended by itself: exit status 0, no socket left */
void node_wait_end(struct node *node, uint64_t ms);

/** node_kill() - SIGKILL, in the middle of whatever it does */
void node_kill(struct node *node);

/** node_restart() - start again on the same path after node_kill() */
void node_restart(struct node *node);

/** node_forget() - remove its files after node_kill(); the log is checked as by node_stop() */
void node_forget(struct node *node);

/** node_end_leftovers() - end what a failed test left, after showing its log */
void node_end_leftovers(void);

/** node_kill_leftovers() - async-signal-safe part of it, for the time limit */
void node_kill_leftovers(void);

#endif
