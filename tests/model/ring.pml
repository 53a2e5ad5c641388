/* SPDX-License-Identifier: MIT */
/*
 * A session's rings (shm/rx_ring.c) on a machine with store buffers (TSO, as x86-64).
 *
 * The client submits N entries through a ring of two and reaps N completions; both sides sleep
 * whenever they have nothing to do. Nothing here times out, so that a lost wake-up is a deadlock,
 * which spin reports as an invalid end state. Payload goes through the store buffers too: an entry
 * that is read too early or overwritten too early fails an assertion.
 *
 * Each word has one writer, which knows its own value: nobody reads what is in his own buffer, so
 * forwarding from it is left out.
 *
 * Mutations, each of which must be found:
 *   NO_FENCE     tail and need_wakeup are stored without a full fence behind them
 *   NO_RECHECK   the daemon does not look at the tail again after setting need_wakeup
 *   EVENT_LATE   the client reads cq_event after its last look at cq_tail, not before
 */
#define N       4
#define ENTRIES 2

#define SQ_TAIL 0
#define CQ_HEAD 1
#define SQ_HEAD 2
#define NEED    3
#define CQ_TAIL 4
#define EVENT   5
#define SQE     6 /* and 7 */
#define CQE     8 /* and 9, 10, 11: twice as many */
#define WORDS   12

#define CLIENT 0
#define DAEMON 1

byte mem[WORDS];
chan buffer[2] = [5] of { byte, byte };
bool doorbell;
bool client_asleep;

#define STORE(me, word, value) buffer[me] ! word, value
#define DRAINED(me)            (empty(buffer[me]))

#ifdef NO_FENCE
#define FENCE(me) skip
#else
#define FENCE(me) DRAINED(me)
#endif

active [2] proctype store_buffer()
{
	byte word, value;

end:	do
	:: atomic { buffer[_pid] ? word, value -> mem[word] = value; value = 0; word = 0 }
	od
}

inline submit()
{
	STORE(CLIENT, SQE + sent % ENTRIES, sent + 1);
	sent++;
	STORE(CLIENT, SQ_TAIL, sent);
	FENCE(CLIENT);
	if
	:: mem[NEED] == 1 -> doorbell = true
	:: else
	fi
}

inline look()
{
#ifndef EVENT_LATE
	event = mem[EVENT];
#endif
	tail = mem[CQ_TAIL];
	if
	:: tail != reaped ->
		assert(tail - reaped <= 2 * ENTRIES);
		assert(mem[CQE + reaped % (2 * ENTRIES)] == reaped + 1);
		reaped++;
		STORE(CLIENT, CQ_HEAD, reaped)
	:: else ->
#ifdef EVENT_LATE
		event = mem[EVENT];
#endif
		/* The kernel compares and enqueues in one step. */
		atomic {
			if
			:: mem[EVENT] == event -> client_asleep = true
			:: else
			fi
		}
		!client_asleep
	fi
}

active proctype client()
{
	byte sent, reaped, event, tail;

	do
	:: reaped == N -> break
	:: reaped < N && sent < N && sent - mem[SQ_HEAD] < ENTRIES -> submit()
	:: reaped < N && (sent == N || sent - mem[SQ_HEAD] >= ENTRIES) -> look()
	od
}

inline answer()
{
	assert(taken - mem[CQ_HEAD] < 2 * ENTRIES);
	STORE(DAEMON, CQE + taken % (2 * ENTRIES), value);
	taken++;
	STORE(DAEMON, SQ_HEAD, taken);
	STORE(DAEMON, CQ_TAIL, taken);
	STORE(DAEMON, EVENT, taken);
	/* The kernel has a full fence before it looks for sleepers. */
	atomic { DRAINED(DAEMON) -> client_asleep = false }
}

active proctype server()
{
	byte taken, tail, value;
	bool need;

	do
	:: taken == N -> break
	:: else ->
		tail = mem[SQ_TAIL];
		if
		:: tail != taken ->
			assert(tail - taken <= ENTRIES);
			value = mem[SQE + taken % ENTRIES];
			assert(value == taken + 1);
			answer()
		:: else ->
			if
			:: !need ->
				need = true;
				STORE(DAEMON, NEED, 1);
				FENCE(DAEMON)
			:: else
			fi;
#ifndef NO_RECHECK
			tail = mem[SQ_TAIL];
#endif
			if
			:: tail != taken
			:: else ->
				atomic { doorbell -> doorbell = false };
				need = false;
				STORE(DAEMON, NEED, 0)
			fi
		fi
	od
}
