#!/bin/bash
# SPDX-License-Identifier: MIT
# Every way in which a program comes to the NCCL interface, and the daemon that comes with a job.
set -euo pipefail
builddir=${RCCLX_BUILDDIR:?run by make check}
srcdir=${RCCLX_SRCDIR:?run by make check}
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
folder=$builddir/client/nccl/.libs
client=$srcdir/tests/integration/nccl_client.py
dir=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; rm -rf "$dir"' EXIT
export RCCLXD=$builddir/daemon/rcclxd
unset VLLM_NCCL_SO_PATH SGLANG_NCCL_SO_PATH LD_PRELOAD RCCLX_AUTOSTART RCCLX_SOCKET

fail() { echo "FAILED: $*"; exit 1; }
said() { [[ $2 == *"$1"* ]] || fail "expected \"$1\" in: $2"; }

# Loading needs no daemon, and finds every function; the version has three parts.
said 2.28.3 "$(RCCLX_SOCKET=/nonexistent VLLM_NCCL_SO_PATH=$folder/libnccl.so.2 python3 "$client" load)"
out=$(RCCLX_SOCKET=/nonexistent VLLM_NCCL_SO_PATH=$folder/libnccl.so.2 python3 "$client" run 1 2>&1) && fail "without a daemon"
said RCCLX_AUTOSTART=1 "$out"

"$RCCLXD" --private --socket "$dir/sock" --log-level warn & daemon=$!
for _ in $(seq 200); do [ ! -S "$dir/sock" ] || break; sleep 0.05; done
export RCCLX_SOCKET=$dir/sock
for variable in VLLM_NCCL_SO_PATH SGLANG_NCCL_SO_PATH; do
	for lib in librccl.so.1 libnccl.so.2; do
		said good "$(env $variable="$folder/$lib" python3 "$client" run 3)"
	done
done
said good "$(LD_LIBRARY_PATH=$folder python3 "$client" run 3)"
said good "$(LD_PRELOAD=$folder/libnccl.so.2 python3 "$client" run 3)"

# Linked: every function is found, with all symbols bound at the start.
sed -n 's/^\tF(\([A-Za-z0-9]*\), NCCL_[A-Z]*).*/\1/p' "$srcdir/client/nccl/functions.h" >"$dir/names"
{
	printf '#include "nccl.h"\n#include <stdio.h>\nstatic void (*const all[])(void) = {\n'
	while read -r name; do printf '(void (*)(void))%s, (void (*)(void))p%s,\n' "$name" "$name"; done <"$dir/names"
	printf '};\nint main(void)\n{\nfor (unsigned long i = 0; i < sizeof(all) / sizeof(all[0]); i++)\nif (!all[i]) return 1;\n'
	printf 'int version = 0;\nif (ncclGetVersion(&version)) return 1;\nprintf("linked %%d\\n", version);\nreturn 0;\n}\n'
} >"$dir/all.c"
for lib in libnccl.so.2 librccl.so.1; do
	# shellcheck disable=SC2086 # CC may have options
	${CC:-cc} -Wall -Wextra -Wno-cast-function-type -I"$srcdir/client/nccl" "$dir/all.c" -o "$dir/all" \
		-L"$folder" -l:$lib -Wl,-rpath,"$folder" -Wl,-z,defs -Wl,-z,now
	said "linked 22803" "$("$dir/all")"
done

# Beside a real NCCL, if there is one: each answers for itself.
# A folder that is not there is no error.
real=$({ find /usr/local/cuda*/lib* /usr/lib -name 'libnccl.so.2' -not -path '*rcclxd*' 2>/dev/null || true; } | head -1)
if [ -n "$real" ]; then
	versions=$(python3 - "$real" "$folder/libnccl.so.2" <<-'PY'
		import ctypes, os, sys
		for path in sys.argv[1:]:
		    try:
		        lib = ctypes.CDLL(path, mode=os.RTLD_GLOBAL)
		    except OSError as e:
		        print("cannot be loaded:", e)
		        continue
		    version = ctypes.c_int()
		    lib.ncclGetVersion(ctypes.byref(version))
		    print(version.value)
	PY
	)
	said 22803 "$(tail -1 <<<"$versions")"
	[[ $(head -1 <<<"$versions") != 22803 ]] || fail "the real NCCL answers as ours"
fi

# NCCL_DEBUG.
out=$(NCCL_DEBUG=INFO NCCL_ALGO=Ring NCCL_DEBUG_FILE=$dir/log.%h.%p VLLM_NCCL_SO_PATH=$folder/libnccl.so.2 \
	python3 "$client" run 1)
log=$(cat "$dir/log.$(hostname -s)".*)
said "NCCL version 2.28.3" "$log"
said "without meaning for rcclxd: NCCL_ALGO" "$log"
said "NCCL INFO rank 0 of 1" "$log"

# rcclxctl run, which, abi-check.
ctl=$builddir/client/ctl/rcclxctl
export RCCLX_NCCL_DIR=$folder
out=$("$ctl" run -- python3 "$client" run 3 2>&1)
said "3 processes used rcclxd" "$out"
out=$("$ctl" run sh -c 'exit 7' 2>&1) && fail "the command's exit status is lost"
[ "$("$ctl" run sh -c 'exit 7' >/dev/null 2>&1; echo $?)" = 7 ] || fail "another exit status"
said "no process formed a communicator" "$out"
# shellcheck disable=SC2016 # for the inner shell
"$ctl" run sh -c 'trap "exit 9" TERM; : >"$0"; while :; do sleep 0.1; done' "$dir/up" 2>/dev/null &
launcher=$!
for _ in $(seq 100); do [ -e "$dir/up" ] && break; sleep 0.1; done
kill "$launcher"
status=0
wait "$launcher" || status=$?
[ $status = 9 ] || fail "SIGTERM has not reached the command: status $status"
out=$("$ctl" run /nonexistent/command 2>&1) && fail "ran what is not there"
out=$(RCCLX_NCCL_DIR=/nonexistent "$ctl" run true 2>&1) && fail "ran without the library"
said "set RCCLX_NCCL_DIR" "$out"
# shellcheck disable=SC2016 # for the inner shell
said "libnccl.so.2.0.0: rcclxd's" "$(LD_PRELOAD=$folder/libnccl.so.2 sh -c '"$0" which $$; :' "$ctl")"
out=$("$ctl" which $$) && fail "this shell has an NCCL"
[ "$("$ctl" which 0 >/dev/null 2>&1; echo $?)" = 2 ] || fail "which 0"
out=$("$ctl" abi-check "$dir/all")
said "ncclAllReduce " "$out"
said "ncclCommGrow " "$(grep refused <<<"$out")"
said "$((2 * $(wc -l <"$dir/names"))) functions of NCCL" "$out"
said " 0 missing" "$out"
printf 'extern int ncclOfTomorrow(void);\nint f(void);\nint f(void) { return ncclOfTomorrow(); }\n' >"$dir/new.c"
# shellcheck disable=SC2086
${CC:-cc} "$dir/new.c" -o "$dir/new" -shared -fPIC
out=$("$ctl" abi-check "$dir/new") && fail "a missing function is none"
said "1 missing" "$out"
[ "$("$ctl" abi-check "$client" >/dev/null 2>&1; echo $?)" = 2 ] || fail "abi-check of a script"

kill "$daemon"; wait "$daemon"; daemon=

# A daemon of the job's own: one, whichever process needs it first, and none when the job is over.
unset RCCLX_SOCKET
if [ -S /run/rcclx/rcclxd.sock ] || [ -S "${XDG_RUNTIME_DIR:-/nonexistent}/rcclx/rcclxd.sock" ]; then
	echo "not tried: RCCLX_AUTOSTART, since this node has a daemon"
	exit 0
fi
export RCCLX_AUTOSTART=1 RCCLX_JOB="test of $dir" VLLM_NCCL_SO_PATH=$folder/libnccl.so.2
said good "$(python3 "$client" run 4)"
for _ in 1 2 3 4 5; do python3 "$client" run 1 >>"$dir/out" & done
wait
[ "$(grep -c good "$dir/out")" = 5 ] || fail "not all of 5 processes got a daemon"
# Whoever comes while another process starts one waits for its turn.
for lock in "/tmp/rcclx-once-$(id -u)"/*.lock; do flock "$lock" sleep 1 & done
said good "$(python3 "$client" run 1)"
wait
# Ranks that see themselves in another job find it by the id.
sed "s/stdin=subprocess.PIPE,/env={**os.environ, 'RCCLX_JOB': f'{os.getpid()}.{r}'}, stdin=subprocess.PIPE,/" "$client" >"$dir/client.py"
grep -q "RCCLX_JOB" "$dir/client.py" || fail "the client does not look as expected"
said good "$(python3 "$dir/client.py" run 3)"
for _ in $(seq 100); do
	# The brackets keep grep from finding itself.
	grep -aqs "/tmp/rcclx-once-$(id -u)[/]" /proc/[0-9]*/cmdline || exit 0
	sleep 0.1
done
fail "a daemon outlives its job"
