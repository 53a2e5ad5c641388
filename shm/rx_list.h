/* SPDX-License-Identifier: MIT */
/* Intrusive doubly linked list; unlinking twice is harmless. */
#ifndef RX_LIST_H
#define RX_LIST_H

#include "rx_base.h"

struct rx_list {
	struct rx_list *next;
	struct rx_list *prev;
};

static inline void rx_list_init(struct rx_list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool rx_list_empty(const struct rx_list *head)
{
	return head->next == head;
}

/** rx_list_push() - append @node, which is not linked, at the end of @head */
static inline void rx_list_push(struct rx_list *head, struct rx_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void rx_list_unlink(struct rx_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	rx_list_init(node);
}

#define rx_list_entry(node, type, member) rx_container_of(node, type, member)

/* The body must not unlink anything. */
#define rx_list_for_each(pos, head)                                                                \
	for (struct rx_list *pos = (head)->next; pos != (head); pos = pos->next)

/* The body may unlink @pos, and nothing else. */
#define rx_list_for_each_safe(pos, head)                                                           \
	for (struct rx_list *pos = (head)->next, *pos##_next = pos->next; pos != (head);           \
		pos = pos##_next, pos##_next = pos->next)

#endif
