/* SPDX-License-Identifier: MIT */
/* Things that wait for each other, each in a thread of its own. */
#ifndef NCCL_TOGETHER_H
#define NCCL_TOGETHER_H

#include <pthread.h>
#include <stddef.h>

/** together_run() - @run for each of @n items of @bytes at @items, all at the same time
 *
 * Returns when all are done. One of them runs in the caller's thread, so that one alone costs no
 * thread.
 *
 * Return: 0, or a positive errno and none has run
 */
int together_run(void (*run)(void *item), void *items, size_t bytes, size_t n);

/** together_start_thread() - a thread of ours takes no signals: those are the program's */
int together_start_thread(pthread_t *thread_p, void *(*run)(void *arg), void *arg);

#endif
