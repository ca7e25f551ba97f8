#!/usr/bin/env bash
# A build in shards as a Slurm array, and its merge when all of them are done.
#   CORPUS='/data/text/*.txt' OUT=/data/pairs N=64 bash deploy/slurm.sh [further options of cecdata build]
set -euo pipefail
: "${CORPUS:?a file or a quoted glob}" "${OUT:?the output folder, on a shared file system}"
N=${N:-16}
printf -v options ' %q' "$@"
array=$(sbatch --parsable --job-name=cecdata --array="1-$N" --cpus-per-task="${CPUS:-8}" --requeue \
  --wrap "cecdata build $(printf %q "$CORPUS") --out $(printf %q "$OUT") --shard \$SLURM_ARRAY_TASK_ID/$N$options")
sbatch --job-name=cecdata-merge --dependency="afterok:$array" --wrap "cecdata merge $(printf %q "$OUT")"
