#!/bin/bash
# sbatch slurm-gpu.sh PLAN: one process and one GPU for each rank of the mesh, here 2 machines x 4, through NCCL. The processes meet
# by Slurm's own variables; a secret of the job keeps others out. NCCL_SOCKET_IFNAME names the network where there are several.
#SBATCH --job-name=shardproof
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --time=00:30:00
#SBATCH --kill-on-bad-exit=1
set -eu
plan=${1:?PLAN}; shift
SHARDPROOF_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export SHARDPROOF_TOKEN
exec srun "${SHARDPROOF:-shardproof}" check "$plan" --cuda --trace "trace-$SLURM_JOB_ID.jsonl" "$@"
