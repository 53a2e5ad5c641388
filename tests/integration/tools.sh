#!/bin/bash
# SPDX-License-Identifier: MIT
# rcclx-perf and rcclxctl with a real daemon: results, exit statuses, what they say when things go
# wrong, and that they leave nothing behind.
set -uo pipefail

build=$(cd "${RCCLX_BUILDDIR:-.}" && pwd)
perf=$build/client/perf/rcclx-perf
ctl=$build/client/ctl/rcclxctl
export RCCLXD=${RCCLXD:-$build/daemon/rcclxd}
unset RCCLX_SOCKET RCCLX_ADMIN_SOCKET XDG_RUNTIME_DIR RCCLX_PERF_ID_FILE RANK WORLD_SIZE PMI_RANK \
	OMPI_COMM_WORLD_RANK SLURM_PROCID

command -v pgrep >/dev/null || { echo "skipped: pgrep is not installed (procps)"; exit 77; }
for program in "$perf" "$ctl" "$RCCLXD"; do
	[ -x "$program" ] || {
		echo "tools: $program is missing"
		exit 1
	}
done

dir=$(mktemp -d "${TMPDIR:-/tmp}/rcclx-tools.XXXXXX")
export TMPDIR=$dir
sock=$dir/s
admin=$dir/admin.sock
pids=()
finish() {
	local pid
	for pid in "${pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	rm -rf "$dir"
}
trap finish EXIT

n_failed=0
name=
begin() {
	name=$1
	echo "tools: $name"
}
fail() {
	echo "tools: FAILED: $name: $1"
	cat "$dir/out" "$dir/err"
	n_failed=$((n_failed + 1))
}
run() { # STATUS COMMAND...: exits as expected?
	local expected=$1 status=0
	shift
	timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
	[ "$status" -eq "$expected" ] || fail "exit status $status, expected $expected: $*"
}
says() { # FILE REGEX: a line matches?
	grep -qE -- "$2" "$dir/$1" || fail "no line in std$1 matches: $2"
}
until_true() { # COMMAND...: within 10 s
	local _
	for _ in $(seq 500); do
		"$@" && return 0
		sleep 0.02
	done
	fail "not within 10 s: $*"
	return 1
}
nothing_left() { # of a private daemon
	! compgen -G "$dir/rcclx-perf.*" >/dev/null || fail "left in $dir: $(ls "$dir")"
}

# ---- without a daemon ----

begin "usage"
run 2 "$perf"
run 2 "$perf" all_to_nobody
run 2 "$ctl"
run 2 "$ctl" explode
says err 'unknown command explode'
run 0 "$perf" --help
run 0 "$ctl" help
says out '^  drain '

begin "no daemon"
run 1 "$perf" all_reduce --socket "$dir/nobody"
says err 'nobody'
run 3 "$ctl" --socket "$dir/nobody" status
says err 'no rcclxd answers; tried .*/nobody \(No such file'
says err 'systemctl start rcclxd'
run 0 "$ctl" --socket "$dir/nobody" version
says out 'rcclxd +not reached'
run 0 "$ctl" --socket "$dir/nobody" --json version
says out '"rcclxd": null'

begin "private daemon that does not come"
RCCLXD=/bin/false run 1 "$perf" all_reduce --private
says err 'rcclxd exited with status 1'
RCCLXD=$dir/none run 1 "$perf" all_reduce --private
says err 'cannot execute .*/none'
nothing_left

# ---- rcclx-perf with a private daemon ----

begin "table"
run 0 "$perf" all_reduce --private --ranks 3 -b 8 -e 4K -f 8 --check
says out '^# +size +count +type +redop +time +p50 +p99 +algbw +busbw +#wrong$'
says out '^ +4096 +1024 +float32 +sum( +[0-9]+\.[0-9]{2}){5} +0$'
says out '^# Wrong elements +: 0 OK$'
[ "$(grep -c '^ ' "$dir/out")" -eq 4 ] || fail "not 4 rows"
nothing_left

begin "json"
run 0 "$perf" all_reduce --private --ranks 2 -b 1M -e 1M -n 3 -d bf16 -o avg --json --check \
	--memory private
number='[0-9]+\.[0-9]+'
says out "^\{\"collective\": \"all_reduce\", \"bytes\": 1048576, \"count\": 524288, \"dtype\": \"bfloat16\", \"op\": \"avg\", \"ranks\": 2, \"executor\": \"inline\", \"algorithm\": \"[a-z]+\", \"memory\": \"private\", \"in_place\": false, \"touch\": false, \"root\": null, \"time_us_p50\": $number, \"time_us_p99\": $number, \"algbw_gbs\": $number, \"busbw_gbs\": $number, \"precision\": \"exact\", \"link_rate\": 0, \"wrong\": 0\}$"
[ "$(wc -l <"$dir/out")" -eq 1 ] || fail "more than one line"

begin "barrier, sizes from zero, in place"
run 0 "$perf" barrier --private --ranks 2 -n 50
says out '^ +0 +0 +none +none '
run 0 "$perf" all_reduce --private --ranks 2 -b 0 -e 64K -f 64 -n 5 --in-place --check -d half
says out '^ +0 +0 +float16 '

begin "low precision"
for format in fp8 int8; do
	for executor in inline daemon; do
		for coll in all_reduce all_gather reduce_scatter all_to_all_v; do
			run 0 "$perf" "$coll" --private --ranks 3 -b 4K -e 256K -f 64 -n 2 -w 1 \
				--precision "$format" --executor "$executor" --json -d bf16
			says out "\"precision\": \"$format\".*\"error_l2\": [0-9].*\"wrong\": 0}"
		done
	done
done
run 2 "$perf" all_reduce --private --precision int4
says err "exact, fp8 or int8"
run 0 "$ctl" explain all_reduce float32 8M --ranks 2 --low-precision=int8
says out "^precision  int8$"
says out "^  but      exact on GPUs, which have no int8$"
run 0 "$ctl" explain all_reduce float32 8M --ranks 2 --low-precision
says out "^precision  fp8$"
run 0 "$ctl" explain all_to_all_v float32 8M --ranks 2 --low-precision=int8
says out "^precision  int8 or exact"
run 2 "$ctl" explain all_reduce float32 8M --ranks 2 --precision int4
says err "expected exact, fp8 or int8"

begin "every type, operation and executor is right"
for executor in inline daemon; do
	for memory in registered private; do
		for type in int8 uint64 half float double bfloat16 fp8_e4m3 fp8_e5m2; do
			run 0 "$perf" all_reduce --private --ranks 2 -b 64 -e 256K -f 64 -n 2 -w 1 \
				--check --executor "$executor" --memory "$memory" -d "$type" -o premul_sum
		done
		for op in sum prod min max avg; do
			run 0 "$perf" all_reduce --private --ranks 3 -b 64 -e 256K -f 64 -n 2 -w 1 \
				--check --executor "$executor" --memory "$memory" -o "$op"
		done
	done
done

begin "every collective is right"
for executor in inline daemon; do
	for memory in registered private; do
		for place in --touch --in-place; do
			run 0 "$perf" all --private --ranks 3 -b 0 -e 300K -f 7 -n 3 -w 1 --check \
				--executor "$executor" --memory "$memory" "$place" --root 1
			[ "$(grep -c '^# Wrong elements *: 0 OK$' "$dir/out")" -eq 12 ] ||
				fail "not 12 collectives are right: $executor $memory $place"
		done
	done
done
says out '^# Summary: 3 ranks, private memory$'
says out '^# +all_to_all_v +[0-9]+\.[0-9]{2} +0 +[0-9]+\.[0-9]{2} +0$'
says out '^# +barrier +- +0 +[0-9]+\.[0-9]{2} +N/A$'
run 0 "$perf" scatter --private --ranks 3 -b 100 -e 100 -n 3 -d int8 --root 2 --check
says out ' root 2$'
says out '^ +99 +33 +int8 +none '
run 2 "$perf" scatter --private --ranks 3 --root 3
says err '--root 3: there are 3 ranks'
run 2 "$perf" all_to_all --private --in-place
says err 'all_to_all cannot be in place'

begin "a rank is killed"
"$perf" all_reduce --private --ranks 3 -b 1M -e 1M -n 10000000 >"$dir/out" 2>"$dir/err" &
parent=$!
pids=("$parent")
until_true pgrep -P "$parent" -f -- '--spawned 1:' >"$dir/victim"
sleep 0.5
victim=$(head -n 1 "$dir/victim")
kill -KILL "$victim"
wait "$parent"
status=$?
pids=()
[ "$status" -eq 1 ] || fail "exit status $status, expected 1"
says err "rank 1 \(pid $victim\) was killed by signal 9"
nothing_left

begin "interrupted"
"$perf" all_reduce --private --ranks 2 -b 1M -e 1M -n 10000000 >"$dir/out" 2>"$dir/err" &
parent=$!
pids=("$parent")
until_true pgrep -P "$parent" -f -- '--spawned 1:' >"$dir/ranks"
kill -TERM "$parent"
wait "$parent"
status=$?
pids=()
[ "$status" -eq 143 ] || fail "exit status $status, expected 143"
! kill -0 "$(head -n 1 "$dir/ranks")" 2>/dev/null || fail "a rank lives"
nothing_left

# ---- with a daemon that others use too ----

start_daemon() {
	"$RCCLXD" --private --socket "$sock" 2>"$dir/daemon.log" &
	pids=("$!")
	until_true test -S "$admin"
}

begin "ranks of a launcher"
start_daemon
export RCCLX_SOCKET=$sock
RANK=1 WORLD_SIZE=2 timeout 60 "$perf" all_reduce -e 4K -n 10 --check --id-file "$dir/id" \
	>"$dir/out1" 2>&1 &
other=$!
sleep 0.2
RANK=0 WORLD_SIZE=2 run 0 "$perf" all_reduce -e 4K -n 10 --check --id-file "$dir/id"
says out '^# Wrong elements +: 0 OK$'
wait "$other" || fail "rank 1: $(cat "$dir/out1")"
[ ! -s "$dir/out1" ] || fail "rank 1 printed: $(cat "$dir/out1")"
[ ! -e "$dir/id" ] || fail "$dir/id is left"
touch "$dir/id"
RANK=0 WORLD_SIZE=2 run 1 "$perf" all_reduce --id-file "$dir/id"
says err 'id exists: another run uses it'
RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 run 2 "$perf" all_reduce
RANK=0 WORLD_SIZE=1 run 2 "$perf" all_reduce --private
says err 'does not work under torchrun'

for mpirun in mpirun.openmpi mpirun.mpich; do
	command -v "$mpirun" >/dev/null || continue
	begin "ranks of $mpirun"
	options=()
	[ "$mpirun" = mpirun.mpich ] || options=(--bind-to none --oversubscribe)
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 run 0 \
		"$mpirun" "${options[@]}" -np 3 "$perf" all_reduce -b 4K -e 4K -n 10 --check
	says out '^# Wrong elements +: 0 OK$'
done

begin "rcclxctl"
run 0 "$ctl" status
says out '^rcclxd [0-9.]+, pid [0-9]+: serving, up '
says out '^sessions '
says out '^LIMIT +USED +OF$'
run 0 "$ctl" comms
says out '^no communicators$'
run 0 "$ctl" clients
says out '^no sessions$'
run 0 "$ctl" --json comms
says out '^\[\]$'
"$perf" all_reduce --ranks 2 -b 1K -e 1K -n 10000000 >"$dir/out1" 2>&1 &
parent=$!
pids+=("$parent")
two_sessions() {
	[ "$("$ctl" --json clients | grep -c '"program": "rcclx-perf"')" -eq 2 ] &&
		"$ctl" comms | grep -q '^communicator .* rcclx-perf: ready, 2 ranks'
}
until_true two_sessions
run 0 "$ctl" clients
says out '^ +SESSION +PID +UID '
says out ' rcclx-perf$'
run 0 "$ctl" comms
says out '^ +RANK +STATUS '
says out '^ +1 +alive '
run 0 "$ctl" --json status
says out '"late": \[\]'
says out '"state": "serving"'
run 0 "$ctl" --json version
says out '"rcclxd": "[0-9.]+"'

begin "a stopped rank is named"
stopped=$(pgrep -P "$parent" -f -- '--spawned 1:')
kill -STOP "$stopped"
is_late() {
	"$ctl" status 2>&1 | grep -qE "late: communicator [0-9]+ rcclx-perf: rank 1 \(pid $stopped\) at all_reduce of 256 float32"
}
until_true is_late
run 0 "$ctl" comms
says out '^ +1 +alive, late '
run 0 "$ctl" --json comms
says out '"late": true'
kill -CONT "$stopped"
not_late() {
	! "$ctl" status | grep -q late:
}
until_true not_late

begin "permission"
if [ "$(id -u)" -eq 0 ] && chmod 755 "$dir" && command -v setpriv >/dev/null &&
	setpriv --reuid 65534 --regid 65534 --clear-groups "$ctl" help >/dev/null 2>&1; then
	run 4 setpriv --reuid 65534 --regid 65534 --clear-groups "$ctl" --socket "$admin" status
	says err 'sudo rcclxctl'
else
	echo "skipped: needs root, and a build directory that others can read"
fi

begin "drain"
run 0 "$ctl" drain
says out '^draining'
run 0 "$ctl" status
says out ': draining,'
run 1 "$perf" all_reduce --ranks 2 -e 8
kill -TERM "$parent"
wait "$parent"

if [ "$n_failed" -gt 0 ]; then
	echo "tools: $n_failed checks failed"
	exit 1
fi
echo "tools: passed"
