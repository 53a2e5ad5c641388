/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include "region.h"
#include "session.h"

int gate_find(const struct session *session, const struct rx_sqe *sqe, struct gate *gate_p)
{
	struct gate gate = {0};
	struct rx_gates *gates = NULL;
	bool captured = sqe->flags & RX_SQE_CAPTURED;
	uint64_t bell = RX_BELL_NONE;

	if (sqe->gate == RX_GATE_NONE) {
		*gate_p = gate;
		return captured ? GATE_E_BAD : 0;
	}
	if (!session->gates || sqe->gate >= RX_GATES)
		return GATE_E_BAD;
	gates = region_at(session->gates, 0);
	gate.area = session->gates;
	gate.word = &gates->gates[sqe->gate];
	gate.value = captured ? sqe->gate : rx_gate_done(gate.word) + 1;
	if (captured) {
		bell = rx_gate_bell(gate.word);
		if (bell == RX_BELL_NONE || bell >= RX_BELLS)
			return GATE_E_BAD;
		gate.bell = &gates->bells[bell];
	}
	*gate_p = gate;
	return 0;
}

struct gate gate_keep(const struct gate *gate)
{
	if (gate->area)
		(void)region_ref(gate->area);
	return *gate;
}

void gate_deinit(struct gate *gate)
{
	gate->area = region_unref(gate->area);
	*gate = (struct gate){0};
}
