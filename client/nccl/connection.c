/* SPDX-License-Identifier: MIT */
#include "connection.h"

#include "autostart.h"
#include "debug.h"
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX 8u

/* Operations in flight: an all-to-all of 64 ranks by sends and receives, several times. */
#define SQ_ENTRIES 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection *table[CONNECTIONS_MAX];

/* A forked child has its parent's connections in the table, and may not use them. */
static bool is_ours(const struct connection *connection)
{
	return connection->pid == (int)getpid();
}

static struct connection **find(const char *socket)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (table[i] && is_ours(table[i]) && strcmp(table[i]->socket, socket) == 0)
			return &table[i];
	return NULL;
}

static struct connection **find_free(void)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (!table[i] || !is_ours(table[i]))
			return &table[i];
	return NULL;
}

static ncclResult_t dial(struct connection *connection, const char *socket)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	rcclx_result r = RCCLX_OK;

	config.sq_entries = SQ_ENTRIES;
	r = rcclx_connect(socket[0] ? socket : NULL, &config, &connection->client);
	if (r == RCCLX_ERR_NO_DAEMON && (socket[0] || autostart_wanted()))
		return autostart_connect(socket, &config, &connection->client, connection->socket);
	return error_of(r, false);
}

static ncclResult_t connect_locked(const char *socket, struct connection **connection_p)
{
	struct connection **place = find(socket);
	struct connection *connection = NULL;
	ncclResult_t r = ncclSuccess;

	if (place) {
		(*place)->n_users++;
		*connection_p = *place;
		return ncclSuccess;
	}
	place = find_free();
	if (!place)
		return error_set(ncclSystemError, "ids of more than %u daemons in one process",
			CONNECTIONS_MAX);
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return error_set(ncclSystemError, "out of memory");
	(void)strncpy(connection->socket, socket, sizeof(connection->socket) - 1);
	r = dial(connection, socket);
	if (r != ncclSuccess) {
		free(connection);
		return r;
	}
	connection->n_users = 1;
	connection->pid = (int)getpid();
	*place = connection;
	*connection_p = connection;
	debug_log(DEBUG_INFO, "connected to rcclxd%s%s", connection->socket[0] ? " at " : "",
		connection->socket);
	return ncclSuccess;
}

ncclResult_t connection_get(const char *socket, struct connection **connection_p)
{
	ncclResult_t r = ncclSuccess;

	debug_greet();
	runtime_look();
	(void)pthread_mutex_lock(&lock);
	r = connect_locked(socket, connection_p);
	(void)pthread_mutex_unlock(&lock);
	return r;
}

struct connection *connection_again(struct connection *connection)
{
	(void)pthread_mutex_lock(&lock);
	connection->n_users++;
	(void)pthread_mutex_unlock(&lock);
	return connection;
}

static void forget(struct connection *connection)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (table[i] == connection)
			table[i] = NULL;
}

/* Everything of it has been given back, so that disconnecting cannot fail but in a forked child. */
static void close_unused(struct connection *connection)
{
	if (connection->n_users > 0 || connection->pinned || !is_ours(connection))
		return;
	forget(connection);
	if (rcclx_disconnect(connection->client) != RCCLX_OK)
		debug_log(DEBUG_WARN, "%s", rcclx_last_error());
	free(connection);
}

void connection_put(struct connection *connection)
{
	(void)pthread_mutex_lock(&lock);
	connection->n_users--;
	close_unused(connection);
	(void)pthread_mutex_unlock(&lock);
}

void connection_pin(struct connection *connection)
{
	(void)pthread_mutex_lock(&lock);
	connection->pinned = true;
	(void)pthread_mutex_unlock(&lock);
}

void connection_unpin(struct connection *connection)
{
	(void)pthread_mutex_lock(&lock);
	connection->pinned = false;
	(void)pthread_mutex_unlock(&lock);
}

void connection_lost(struct connection *connection)
{
	(void)pthread_mutex_lock(&lock);
	connection->pinned = false;
	forget(connection);
	(void)pthread_mutex_unlock(&lock);
}
