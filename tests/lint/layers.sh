#!/bin/bash
# SPDX-License-Identifier: MIT
# Who may include whom, and that every header stands alone.
. "$(dirname "$0")/lib.sh"

declare -A may=(
	[shm]="shm"
	[proto]="proto shm"
	[kernels]="kernels shm"
	[client]="client kernels proto shm"
	[daemon]="daemon kernels proto shm"
)
bad=0

for layer in shm proto kernels client daemon; do
	while IFS=: read -r file line text; do
		target=${text#*\"} target=${target%%\"*}
		case $target in
		config.h | proto/rcclx.pb-c.h) continue ;;
		esac
		path=$(realpath -m --relative-to=. "$(dirname "$file")/$target")
		folder=${path%%/*}
		if [[ " ${may[$layer]} " != *" $folder "* ]]; then
			echo "$file:$line: $layer/ may not include $path"
			bad=1
		elif [ ! -e "$path" ]; then
			echo "$file:$line: no such header: $path"
			bad=1
		fi
	done < <(grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' -r "$layer" --include='*.[ch]')
done

cc=${CC:-gcc}
while IFS= read -r header; do
	case $header in
	# Templates: included several times with macros set by the includer.
	kernels/device/dev_fold.h | kernels/device/dev_*_type.h | kernels/device/dev_types.h | kernels/host/fold*.h | kernels/host/vec*.h) continue ;;
	esac
	# shellcheck disable=SC2086 # CC may have options
	$cc -std=gnu17 -D_GNU_SOURCE -DRX_GPU_HIP -I"$builddir" -I"$srcdir/client" -fsyntax-only -x c "$header" -Wall -Werror || bad=1
done < <(find shm proto kernels client daemon -name '*.h' ! -name '*.pb-c.h' | sort)

if command -v g++ >/dev/null; then
	g++ -std=c++17 -fsyntax-only -x c++ client/rcclx.h -Wall -Wextra -Werror || bad=1
fi
exit $bad
