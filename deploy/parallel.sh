#!/usr/bin/env bash
# A build in shards by GNU parallel, on this machine or on those of an sshlogin file.
#   CORPUS='/data/text/*.txt' OUT=/data/pairs N=8 bash deploy/parallel.sh [further options of cecdata build]
# HOSTS=hosts.txt runs the jobs on its machines, which must see CORPUS and OUT under the same paths.
set -euo pipefail
: "${CORPUS:?a file or a quoted glob}" "${OUT:?the output folder}"
N=${N:-8}
hosts=()
[ -z "${HOSTS:-}" ] || hosts=(--sshloginfile "$HOSTS" --workdir "$PWD")
parallel --halt soon,fail=1 --retries 3 --jobs "${JOBS:-2}" "${hosts[@]}" --quote \
  cecdata build "$CORPUS" --out "$OUT" --shard "{}/$N" "$@" ::: $(seq "$N")
cecdata merge "$OUT"
