/* The groups of ranks that a trace speaks of: axes, named groups and the groups that collectives
 * use, and what they carry. */
#ifndef SP_RENDER_MESH_H
#define SP_RENDER_MESH_H
#include "render/furniture/furniture.h"

enum { MESH_MAX_COMMS = 16 };

typedef struct {
    const char *name; /* "tp = sp", "dp·cp" */
    const char *axes; /* for the colour */
    RankGroups groups;
    const char *cuts;    /* "cuts H, K, F": dims that it cuts; "" */
    const char *carries; /* "4 collectives, sends 64 KiB"; "" */
    const char *link;    /* "inside a node, 370 GB/s", "across nodes, 42 GB/s"; "": not known */
    bool axis;           /* one mesh axis */
    bool part; /* some ranks of the axes: the two that have copies of a pipeline's stage */
} MeshComm;

/* Fills comm[] and returns the number: axes of size > 1, slowest first, then products that
 * collectives use; what each carries is the rank's. */
int mesh_comms(Arena *a, const Trace *t, int64_t rank, MeshComm *comm);
/* "rank = tp + 2·(cp + 2·dp)" */
const char *mesh_formula(Arena *a, const Trace *t);
/* Members of the group of `rank` as a slice "0:8:2" or, if they are no slice, spelled out. */
const char *mesh_slice(Arena *a, const RankGroups *g, int64_t rank);
/* A group's members, "{0,8,16}"; of more than `most` the first ones and the last, "{0,8,…,56}". */
const char *mesh_spelled(Arena *a, const RankGroups *g, int64_t group, int64_t most);
/* The axes larger than one rank in such a list as "dp*cp" (a group's name stands for its axes), bit
 * i for t->axes[i]. */
unsigned mesh_axes(const Trace *t, const char *list);

/* Some axes of the mesh together, outermost first, as t->axes numbers them. */
typedef struct {
    int n;
    int axis[TRACE_MAX_AXES];
    int64_t size;
} MeshSide;
/* How the experts' weights lie on the ranks: axes that divide the experts, that cut each of them,
 * and over which there are copies. w NULL: no model with experts. */
typedef struct {
    const TraceParam *w;
    MeshSide ep, inside, copies;
    const char *title; /* "ep=4 (dp·cp) · tp=2 inside each expert" */
    /* "dp 2 · cp 2 · tp 2 for dense weights, ep 4 · tp 2 for experts": the ranks as a mesh of the
     * one and as one of the other; NULL: both have the same */
    const char *two;
} MeshExperts;
MeshExperts mesh_experts(Arena *a, const Trace *t);
/* What a rank has of them: "E2-3, part 1". */
const char *mesh_experts_of(Arena *a, const Trace *t, const MeshExperts *m, int64_t rank);
#endif
