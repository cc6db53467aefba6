#!/bin/sh
# A plan on machines that are reached by ssh: sh run.sh HOSTFILE PLAN [OPTION...]. HOSTFILE is Open MPI's ("node1 slots=4").
# The program, its plug-in and the plan lie in the same place on all of them (a shared folder, or `make install` on each);
# results are written where rank 0 runs, the first line's machine. MPIRUN: another launcher, or options of your network
# (MPIRUN="mpirun --mca btl_tcp_if_include eth0"). SHARDPROOF: the program.
set -eu
hosts=${1:?HOSTFILE}; shift
plan=${1:?PLAN}; shift
n=$(sed -n 's/^[^#]*slots=\([0-9]*\).*/\1/p' "$hosts" | awk '{ n += $1 } END { print n + 0 }')
[ "$n" -gt 0 ] || { echo "$hosts: no line such as 'node1 slots=4'" >&2; exit 2; }
exec ${MPIRUN:-mpirun} --hostfile "$hosts" -n "$n" "${SHARDPROOF:-shardproof}" check "$plan" --mpi "$@"
