#!/bin/bash
# SPDX-License-Identifier: MIT
# Thresholds from files to operations: a daemon with a tuning folder, what explain says of it, what
# rcclx-perf does by it, bad files, reloads, and rcclxctl tune.
set -uo pipefail

build=$(cd "${RCCLX_BUILDDIR:-.}" && pwd)
perf=$build/client/perf/rcclx-perf
ctl=$build/client/ctl/rcclxctl
export RCCLXD=${RCCLXD:-$build/daemon/rcclxd}
unset RCCLX_SOCKET RCCLX_ADMIN_SOCKET XDG_RUNTIME_DIR RCCLX_PERF RANK WORLD_SIZE PMI_RANK \
	OMPI_COMM_WORLD_RANK SLURM_PROCID

dir=$(mktemp -d "${TMPDIR:-/tmp}/rxt.XXXXXX")
export TMPDIR=$dir
pid=
finish() {
	[ -z "$pid" ] || { kill -KILL "$pid"; wait "$pid"; } 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT

n_failed=0
name=
begin() {
	name=$1
	echo "tuning: $name"
}
fail() {
	echo "tuning: FAILED: $name: $1"
	cat "$dir/out" "$dir/err"
	n_failed=$((n_failed + 1))
}
run() { # STATUS COMMAND...: exits as expected?
	local expected=$1 status=0
	shift
	timeout 120 "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
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
tune_folders() {
	compgen -G "$dir/rcclx-tune.*" >/dev/null
}

mkdir "$dir/tuning"
cat >"$dir/tuning/10-first.conf" <<'TEXT'
# earlier files give way to later ones
default = { ranks_2 = { flat_max = 200; chunk = 1024; }; };
all_reduce = { ranks_4 = { device_tree_min = 4194305; }; };
TEXT
cat >"$dir/tuning/20-second.conf" <<'TEXT'
all_reduce = {
    ranks_2 = {
        flat_max = 512;
        direct_min = 65536;
        stream_min = 1048576;
    };
};
TEXT

begin "without a daemon"
run 0 "$ctl" explain all_reduce bfloat16 1048576 --ranks 8
says out '^no rcclxd answers: .*compiled defaults'
says out '\[compiled default\]'
run 3 "$ctl" topo

begin "a bad file is refused with file, line and key"
echo 'all_reduce = { ranks_2 = {
    chunk = 77; }; };' >"$dir/tuning/15-bad.conf"
run 1 "$RCCLXD" --private --socket "$dir/s" --tuning-dir "$dir/tuning"
says err '/15-bad\.conf:2: chunk: '
run 1 "$RCCLXD" --private --tuning-dir "$dir/tuning" --check-config
says err '/15-bad\.conf:2: chunk: '
run 1 "$RCCLXD" --private --socket "$dir/s" --tuning-dir "$dir/absent"
says err 'absent: No such file'
rm "$dir/tuning/15-bad.conf"

"$RCCLXD" --private --socket "$dir/s" --tuning-dir "$dir/tuning" 2>"$dir/log" &
pid=$!
export RCCLX_SOCKET=$dir/s
until_true test -S "$dir/admin.sock"

begin "explain shows the rule, its file and line"
run 0 "$ctl" explain all_reduce float 256 --ranks 2 --private --cores-shared=no
says out '^bytes +1024 '
says out '^algorithm +staged'
says out 'bytes > flat_max 512 +\[.*/20-second\.conf:3\]'
says out '^chunk +1024 bytes +\[.*/10-first\.conf:2\]'
says out '^thresholds of epoch 2, files of '
run 0 "$ctl" --json explain all_gather float 50 --ranks 2 --private --cores-shared=no
says out '"algorithm": "flat"'
says out '"from": ".*/10-first\.conf:2"'
run 0 "$ctl" explain all_reduce float --ranks 2 --all --cores-shared=no
says out '^ +4 +96 +inline +tiny '
says out '^ +100 +512 +inline +flat '
says out '^ +516 +65532 +inline +staged '
says out '^ +65536 +1048572 +inline +direct .* no '
says out '^ *1048576 +1073741824 +inline +direct .* yes '
run 0 "$ctl" explain all_reduce float 1M --ranks 4 --devices 2
says out '^on 2 GPUs  direct, exact$'
says out '^  because  4194304 bytes in the larger buffer < device_tree_min 4194305  \[.*/10-first\.conf:[0-9]+\]'
run 0 "$ctl" explain all_reduce float 2M --ranks 4 --devices 4 --precision fp8
says out '^on 4 GPUs  tree, fp8, encoded between GPUs$'
says out 'device_slots_min 1048576  \[compiled default\]'
run 0 "$ctl" --json explain all_reduce float 2M --ranks 4 --devices 2
says out '"algorithm": "tree"'
says out '"threshold": "device_tree_min"'
run 2 "$ctl" explain all_reduce float 1 --ranks 2 --devices 3
says err 'at most one for each rank'
run 2 "$ctl" explain all_reduce float 1
says err '--ranks'
run 2 "$ctl" explain all_reduce floot 1 --ranks 2
says err '"floot"'
run 2 "$ctl" explain nothing float 1 --ranks 2
says err '"nothing"'

begin "topo"
run 0 "$ctl" topo
says out '^[0-9]+ packages, .* [0-9]+ cores, [0-9]+ CPUs$'
says out '^core '
run 0 "$ctl" topo --json
says out "\"cpus\": $(nproc --all)"

begin "operations use the thresholds"
if [ "$(nproc)" -ge 2 ]; then
	run 0 "$perf" all_reduce --ranks 2 -b 64 -e 4M -f 8 -n 20 --check --json
	says out '"bytes": 64, .*"algorithm": "tiny"'
	says out '"bytes": 512, .*"algorithm": "flat"'
	says out '"bytes": 4096, .*"algorithm": "staged"'
	says out '"bytes": 2097152, .*"algorithm": "direct"'
	run 0 "$perf" all_reduce --ranks 2 -b 64 -e 4M -f 8 -n 20 --check --json --memory private
	says out '"bytes": 2097152, .*"algorithm": "staged"'
fi

begin "a reload counts for new communicators, and bad files change nothing"
"$perf" all_reduce --ranks 2 -b 1K -e 1K -n 10000000 >"$dir/busy" 2>&1 &
busy=$!
epoch_of_comm() {
	"$ctl" comms --json 2>/dev/null | grep -q "\"tuning_epoch\": $1,"
}
until_true epoch_of_comm 2
echo 'all_reduce = { ranks_2 = { flat_max = 256; }; };' >"$dir/tuning/30-third.conf"
kill -HUP "$pid"
reloaded() {
	"$ctl" explain all_reduce float 1 --ranks 2 | grep -q "epoch $1,"
}
until_true reloaded 3
epoch_of_comm 2 || fail "the communicator's epoch has changed"
run 0 "$ctl" comms
says out 'cores of one .*, thresholds of epoch 2$'
kill -TERM "$busy"
wait "$busy"
run 0 "$ctl" explain all_reduce float 100 --ranks 2 --private --cores-shared=no
says out '/30-third\.conf:1\]'
echo 'all_reduce = { ranks_2 = { flat_max = "a"; }; };' >"$dir/tuning/40-bad.conf"
kill -HUP "$pid"
until_true grep -qE 'configuration not changed: .*/40-bad\.conf:1: flat_max: ' "$dir/log"
run 0 "$ctl" explain all_reduce float 1 --ranks 2
says out 'epoch 3,'
rm "$dir/tuning/40-bad.conf"
kill -HUP "$pid"
until_true grep -q 'configuration read again' "$dir/log"
run 0 "$ctl" explain all_reduce float 1 --ranks 2
says out 'epoch 3,'
kill -TERM "$pid"
wait "$pid"
pid=
unset RCCLX_SOCKET

begin "tune"
start=$(date +%s%N)
run 0 "$ctl" tune --seconds 1 --collectives all_reduce --ranks 2 --out "$dir/tuning/50-measured.conf"
took=$((($(date +%s%N) - start) / 1000000))
[ "$took" -lt 3000 ] || fail "took $took ms instead of 1000"
says out '^all_reduce, 2 ranks: '
says out '^all_reduce, 2 ranks: .*no time to measure'
! grep -q single_min "$dir/out" || fail "single copy does not serve all_reduce"
says out 'thresholds changed; written to '
says err '^ *[0-9]+ %, about .* left: all_reduce, 2 ranks: '
run 0 "$RCCLXD" --private --tuning-dir "$dir/tuning" --check-config
! tune_folders || fail "left its folder"
run 0 "$ctl" tune --seconds 15 --collectives all_gather --ranks 2 --out "$dir/single.conf"
says out '^all_gather, 2 ranks: single_min (was|stays) '
! grep -q 'single_min.*no time' "$dir/out" || fail "15 seconds were too little"
run 2 "$ctl" tune --ranks 1
says err '--ranks "1"'
run 2 "$ctl" tune --collectives barrier
run 1 "$ctl" tune --seconds 1 --collectives all_reduce --ranks 2 --out "$dir/absent/x.conf"

begin "an interrupted tune leaves nothing"
"$ctl" tune --seconds 600 --collectives all_reduce --ranks 2 --out "$dir/not.conf" \
	>"$dir/out" 2>"$dir/err" &
tuner=$!
until_true tune_folders
sleep 0.5
# A shell starts jobs with SIGINT ignored, but rcclxctl asks for it.
kill -INT "$tuner"
status=0
wait "$tuner" || status=$?
[ "$status" -eq 130 ] || fail "exit status $status, expected 130"
says err '^interrupted: nothing is written$'
! tune_folders || fail "left its folder"
! compgen -G "$dir/not.conf*" >/dev/null || fail "left a file"
! pgrep -f -- "--private.*$dir" >/dev/null || fail "left processes"

if [ "$n_failed" -gt 0 ]; then
	echo "tuning: $n_failed checks failed"
	exit 1
fi
echo "tuning: passed"
