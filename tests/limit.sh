#!/bin/bash
# SPDX-License-Identifier: MIT
#
# limit.sh TEST [ARGUMENT...]: run a test that has its own time limits, and end it if even those
# fail. What its processes were waiting for is printed first, as nobody can look afterwards.
# RCCLX_TEST_LIMIT: seconds (default 900; no limit with RCCLX_LONG=1).
set -u
limit=${RCCLX_TEST_LIMIT:-900}
[ "${RCCLX_LONG:-0}" != 1 ] || exec "$@"

setsid "$@" &
test_pid=$!

# The processes of the test's session, and where each thread of theirs is.
show() {
	local pid task
	ps -e -o sid=,pid=,ppid=,stat=,time=,args= | awk -v s="$test_pid" '$1 == s'
	for pid in $(ps -e -o sid=,pid= | awk -v s="$test_pid" '$1 == s { print $2 }'); do
		for task in "/proc/$pid/task/"*; do
			printf '%s %s: %s\n' "$pid" "${task##*/}" \
				"$(cat "$task/comm" "$task/wchan" "$task/syscall" 2>/dev/null | tr '\n' ' ')"
		done
	done
}

end_all() {
	ps -e -o sid=,pid= | awk -v s="$test_pid" '$1 == s { print $2 }' | xargs -r kill -KILL
}

trap 'end_all; exit 1' HUP INT TERM

(
	sleep "$limit" &
	trap 'kill $! 2>/dev/null; exit' TERM
	wait
	printf 'limit.sh: %s runs for more than %s s and is ended; its processes:\n' "$1" "$limit"
	show
	end_all
) &
watch_pid=$!

wait "$test_pid"
status=$?
kill -TERM "$watch_pid" 2>/dev/null
wait "$watch_pid" 2>/dev/null
exit $status
