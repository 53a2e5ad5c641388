/* SPDX-License-Identifier: MIT */
/*
 * Ranks that wait for each other's entries (shm/rx_fabric.h, rx_fabric.c) on a machine with store
 * buffers (TSO, as x86-64).
 *
 * Each rank goes through OPS ops: it fills its entry (op & 1), stores the sequence number, looks
 * at the peers' sleeper words, wakes; then it waits for each peer and reads the peer's entry.
 * Nobody spins and nothing times out, so that a lost wake-up is a deadlock. An entry that is read
 * before it is filled, or after its owner has filled it anew, fails an assertion: this is the
 * claim that two entries are enough and an op needs no barrier at its end.
 *
 * The futex of the model has no fence of its own where it compares; the real one has, and nothing
 * relies on it.
 *
 * Mutations, each of which must be found:
 *   NO_FENCE    no full fence behind the stores of sequence number and sleeper word
 *   NO_RECHECK  the sleeper waits for a change of the word without looking at what it is
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef OPS
#define OPS 4
#endif

/* Words of a rank: two of each kind. */
#define SEQ     0
#define SLEEPER 2
#define DATA    4
#define PER     6
#define WORD(rank, kind, op) ((rank) * PER + (kind) + ((op) & 1))

byte mem[RANKS * PER];
chan buffer[RANKS] = [5] of { byte, byte };
byte asleep_on[RANKS]; /* word + 1, 0 awake */

#define STORE(word, value) buffer[me] ! word, value
#define DRAINED            (empty(buffer[me]))

#ifdef NO_FENCE
#define FENCE skip
#else
#define FENCE DRAINED
#endif

active [RANKS] proctype store_buffer()
{
	byte word, value;

end:	do
	:: atomic { buffer[_pid] ? word, value -> mem[word] = value; value = 0; word = 0 }
	od
}

inline wake(word)
{
	/* The kernel has a full fence before it looks for sleepers. */
	atomic {
		DRAINED ->
		peer = 0;
		do
		:: peer == RANKS -> break
		:: peer < RANKS && asleep_on[peer] == word + 1 -> asleep_on[peer] = 0; peer++
		:: peer < RANKS && asleep_on[peer] != word + 1 -> peer++
		od;
		peer = 0
	}
}

inline publish()
{
	STORE(WORD(me, DATA, op), op);
	STORE(WORD(me, SEQ, op), op);
	FENCE;
	any = false;
	peer = 0;
	do
	:: peer == RANKS -> break
	:: peer < RANKS ->
		if
		:: peer != me && mem[WORD(peer, SLEEPER, op)] == 1 -> any = true
		:: peer == me || mem[WORD(peer, SLEEPER, op)] == 0
		fi;
		peer++
	od;
	peer = 0;
	if
	:: any -> wake(WORD(me, SEQ, op))
	:: !any
	fi;
	any = false
}

inline sleep_on(word)
{
	STORE(WORD(me, SLEEPER, op), 1);
	FENCE;
	seen = mem[word];
	if
#ifdef NO_RECHECK
	:: true ->
#else
	:: seen >= op
	:: seen < op ->
#endif
		/* The kernel compares and enqueues in one step. */
		atomic {
			if
			:: mem[word] == seen -> asleep_on[me] = word + 1
			:: mem[word] != seen
			fi
		}
		asleep_on[me] == 0
	fi;
	STORE(WORD(me, SLEEPER, op), 0)
}

inline wait_for_peers()
{
	peer = 0;
	do
	:: peer == RANKS -> break
	:: peer < RANKS && peer == me -> peer++
	:: peer < RANKS && peer != me ->
		seen = mem[WORD(peer, SEQ, op)];
		if
		:: seen >= op -> seen = 0; peer++
		:: seen < op -> sleep_on(WORD(peer, SEQ, op)); seen = 0
		fi
	od;
	peer = 0
}

inline read_all()
{
	do
	:: peer == RANKS -> break
	:: peer < RANKS ->
		/* The own entry may still be in the own buffer. */
		assert(peer == me || mem[WORD(peer, DATA, op)] == op);
		peer++
	od;
	peer = 0
}

active [RANKS] proctype rank()
{
	byte me = _pid - RANKS;
	byte op = 1;
	byte peer, seen;
	bool any;

	do
	:: op > OPS -> break
	:: op <= OPS ->
		publish();
		wait_for_peers();
		read_all();
		op++
	od
}
