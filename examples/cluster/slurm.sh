#!/bin/bash
# sbatch slurm.sh PLAN: one process for each rank of the mesh, here 2 machines x 4. Slurm's PMIx starts processes of Open MPI;
# for MPICH use --mpi=pmi2. Slurm ends the job where a rank dies; a rank that hangs ends it by --deadline.
#SBATCH --job-name=shardproof
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --time=00:30:00
#SBATCH --kill-on-bad-exit=1
set -eu
plan=${1:?PLAN}; shift
exec srun --mpi="${SLURM_MPI:-pmix}" "${SHARDPROOF:-shardproof}" check "$plan" --mpi --trace "trace-$SLURM_JOB_ID.jsonl" "$@"
