#!/bin/bash
# SPDX-License-Identifier: MIT
# What systemd.sh runs in its container, as root: an operator and users alice, bob (of the group
# rcclx) and carol (not). The report ends with "guest: passed" if all is well.
set -uo pipefail
exec >/report 2>&1
n_failed=0

ok() { # WHAT COMMAND...: must succeed
	local what=$1
	shift
	if "$@" >/tmp/out 2>&1; then
		echo "guest: ok: $what"
	else
		echo "guest: FAILED: $what: $*"
		cat /tmp/out
		n_failed=$((n_failed + 1))
	fi
}
is() { # WHAT EXPECTED ACTUAL
	ok "$1 is $2" test "$2" = "$3"
	[ "$2" = "$3" ] || echo "    but: $3"
}
within() { # SECONDS COMMAND...
	local i
	for ((i = 0; i < $1 * 20; i++)); do
		"${@:2}" && return 0
		sleep 0.05
	done
	return 1
}
show() { systemctl show -P "$2" "$1"; }
as() { runuser -u "$1" -- "${@:2}"; }
is_state() { [ "$(show "$1" ActiveState)/$(show "$1" SubState)" = "$2" ]; }
# Not what systemd itself says about the service before it runs.
own_log() { journalctl --no-pager -o cat _SYSTEMD_UNIT=rcclxd.service _COMM=rcclxd "$@"; }
log_has() { own_log "${@:2}" | grep -qE -- "$1"; }

# pair SECONDS: alice and bob; waits for them, and leaves their exit statuses in "statuses"
pair() {
	pair_start "$1"
	pair_wait
}
pair_start() {
	rm -f /run/pair/id
	as alice pair 0 2 /run/pair/id "$1" >/tmp/alice 2>&1 &
	alice=$!
	as bob pair 1 2 /run/pair/id "$1" >/tmp/bob 2>&1 &
	bob=$!
}
pair_wait() {
	local a=0 b=0
	wait "$alice" || a=$?
	wait "$bob" || b=$?
	statuses="$a $b"
	cat /tmp/alice /tmp/bob
}
formed() { grep -q formed /tmp/alice && grep -q formed /tmp/bob; }
restarted() { # OLD-PID
	[ "$(show rcclxd NRestarts)" = 1 ] && is_state rcclxd active/running &&
		[ "$(show rcclxd MainPID)" != "$1" ]
}

# ---- install, as README.md says ----
ok "users and groups" systemd-sysusers
ok "daemon-reload" systemctl daemon-reload
ok "enable" systemctl enable --now rcclxd.socket rcclxd-admin.socket
for user in alice bob carol; do
	useradd -m "$user"
done
usermod -aG rcclx alice
usermod -aG rcclx bob
install -d -o root -g rcclx -m 2770 /run/pair

is "socket unit" active "$(show rcclxd.socket ActiveState)"
is "service before anybody connects" inactive "$(show rcclxd ActiveState)"
is "control socket" "660 root:rcclx" "$(stat -c '%a %U:%G' /run/rcclx/rcclxd.sock)"
is "admin socket" "600 root:root" "$(stat -c '%a %U:%G' /run/rcclx/admin.sock)"

# ---- who may ----
rm -f /run/pair/id
as carol pair 0 1 /tmp/carol-id 0 >/tmp/carol 2>&1
is "exit status of a stranger (10 + RCCLX_ERR_DENIED)" 20 $?
is "service after the stranger" inactive "$(show rcclxd ActiveState)"

# ---- started by the socket, used by two users ----
pair 1
is "exit statuses of alice and bob" "0 0" "$statuses"
is "service" "active" "$(show rcclxd ActiveState)"
is "user of the daemon" rcclxd "$(ps_user() { stat -c %U "/proc/$1"; }; ps_user "$(show rcclxd MainPID)")"
status_line() { systemctl status --no-pager rcclxd | grep -qE 'Status: "serving: [0-9]+ sessions, [0-9]+ communicators"'; }
ok "status line" within 3 status_line
systemctl status --no-pager rcclxd | sed -n 1,12p
ok "system call filter in force" grep -qx $'Seccomp:\t2' "/proc/$(show rcclxd MainPID)/status"
ok "no new privileges" grep -qx $'NoNewPrivs:\t1' "/proc/$(show rcclxd MainPID)/status"
ok "rcclxctl for root" sh -c 'rcclxctl status | grep -q serving'
as alice rcclxctl status >/tmp/out 2>&1
ok "no rcclxctl for alice" test $? != 0

# ---- reload ----
ok "reload" systemctl reload rcclxd
ok "reload in the journal" within 5 log_has 'configuration read again'
ok "running after the reload" is_state rcclxd active/running

# ---- killed in the middle ----
pid=$(show rcclxd MainPID)
pair_start 60
ok "alice and bob at work" within 10 formed
began=$(date +%s%N)
systemctl kill --signal=KILL --kill-who=main rcclxd
pair_wait
took_ms=$((($(date +%s%N) - began) / 1000000))
is "exit statuses (10 + RCCLX_ERR_DAEMON_LOST)" "13 13" "$statuses"
ok "they were told within 2 s ($took_ms ms)" test $took_ms -lt 2000
ok "restarted" within 10 restarted "$pid"
pair 0
is "exit statuses with the new daemon" "0 0" "$statuses"

# ---- stop, and again by the socket ----
ok "stop" systemctl stop rcclxd
is "result of the stop" success "$(show rcclxd Result)"
is "socket unit after the stop" active "$(show rcclxd.socket ActiveState)"
pair 0
is "exit statuses, started by the socket again" "0 0" "$statuses"

# ---- the journal ----
ok "start in the journal" log_has '^rcclxd [0-9.]+ serves at /run/rcclx/rcclxd.sock'
is "starts in the journal" 3 "$(own_log | grep -c 'serves at')"
is "warnings and errors of the daemon" "" "$(own_log -p warning)"
own_log

[ "$n_failed" = 0 ] && echo "guest: passed"
