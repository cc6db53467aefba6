/* The variables of launchers, as one table. See place.h. It is part of the program and of the
 * plug-ins whose processes meet by themselves. */
#include "engine/place.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Inside an allocation of Slurm the variables of mpirun are the nearer ones, and torchrun's nearer
 * still. A batch script of Slurm has SLURM_PROCID and is no rank: of a step alone it says how many
 * there are. */
static const Launcher launchers[] = {
    {NULL, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
     "TORCHELASTIC_RUN_ID"},
    {"openmpi", "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"openmpi", "Open MPI", "PMIX_RANK", NULL, NULL, NULL, "PMIX_NAMESPACE"},
    {"mpich", "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
    {NULL, "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID"},
};
const Launcher *place_launchers(int *n) {
    *n = (int)(sizeof launchers / sizeof *launchers);
    return launchers;
}
static const char *text_of(const char *name) {
    const char *s = name ? getenv(name) : NULL;
    return s && *s ? s : NULL;
}
int64_t place_number(const char *name, int64_t otherwise) {
    const char *s = text_of(name);
    char *end;
    long long n = s ? strtoll(s, &end, 10) : 0;
    return s && !*end && n >= 0 ? n : otherwise;
}
/* Slurm writes "4(x2)" and "4,3": of the first machine. */
static int64_t beside_of(const char *name) {
    const char *s = text_of(name);
    long long n = s ? strtoll(s, NULL, 10) : 0;
    return n > 0 ? n : 1;
}

/* ---- what all processes of a run know ---- */
static uint64_t mix(uint64_t h, const char *s) {
    for (; s && *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return (h ^ 0xff) * 0x100000001b3u;
}
/* What /proc says of a process, cut to the room; the bytes that were read. */
static size_t proc_text(pid_t pid, const char *of, char *to, size_t room) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, of);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(to, 1, room - 1, f) : 0;
    if (f) fclose(f);
    to[n] = 0;
    return n;
}
/* Has it been started with that variable, as a launcher sets it? */
static bool has_from_start(pid_t pid, const char *name) {
    enum { ROOM = 1 << 17 };
    char *text = malloc(ROOM);
    size_t n = text ? proc_text(pid, "environ", text, ROOM) : 0, k = strlen(name);
    bool has = false;
    for (size_t i = 0; i < n && !has; i += strlen(text + i) + 1)
        has = strncmp(text + i, name, k) == 0 && text[i + k] == '=';
    free(text);
    return has;
}
/* The launcher's own process: whatever stands between it and this one, a shell of each rank's, has
 * the rank's variable as well. */
static pid_t starter(const char *rank) {
    enum { MOST = 64 };
    pid_t pid = getppid();
    for (int i = 0; i < MOST && pid > 1 && has_from_start(pid, rank); i++) {
        char text[512];
        proc_text(pid, "stat", text, sizeof text);
        const char *name_end = strrchr(text, ')'); /* "12 (sh) S 11 ..." */
        if (!name_end || strlen(name_end) < 5) break;
        pid = (pid_t)atol(name_end + 4);
    }
    return pid;
}
/* Of a run that a launcher has started: its job. Two jobs of one machine must not meet, so where
 * neither a job nor a port is named it is whoever started the processes. */
static uint64_t job_of(const Launcher *by) {
    /* not MASTER_ADDR: rank 0 may be told another name of its machine than the others */
    static const char *const also[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "MASTER_PORT"};
    char parent[32] = "";
    uint64_t h = mix(0xcbf29ce484222325u, text_of(by->job));
    for (size_t i = 0; i < sizeof also / sizeof *also; i++) h = mix(h, text_of(also[i]));
    if (!text_of(by->job) && !text_of("MASTER_PORT"))
        snprintf(parent, sizeof parent, "%ld", (long)starter(by->rank));
    return mix(h, parent);
}
static void token_of(const Launcher *by, char *out, int room) {
    const char *token = text_of(PLACE_TOKEN);
    if (token) snprintf(out, (size_t)room, "%s", token);
    else snprintf(out, (size_t)room, "%016llx", (unsigned long long)job_of(by));
}
/* Who says which rank of how many this process is; NULL: nobody. Of two who say the same it is the
 * one who knows its place on the machine: srun sets PMI's variables too, and a script of its own
 * RANK, and neither which GPU is whose. */
static const Launcher *launcher(void) {
    const Launcher *by = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const Launcher *x = &launchers[i];
        if (!text_of(x->rank) || !text_of(x->ranks)) continue;
        if (!by) by = x;
        else if (!text_of(by->local) && text_of(x->local) &&
                 place_number(x->rank, -1) == place_number(by->rank, -2) &&
                 place_number(x->ranks, -1) == place_number(by->ranks, -2))
            return x;
    }
    return by;
}
void place_job(char *out, int room) {
    size_t i = 0, last = sizeof launchers / sizeof *launchers - 1;
    const Launcher *by = launcher();
    while (i < last && !text_of(launchers[i].rank)) i++;
    token_of(by ? by : &launchers[i], out, room);
}
bool place_first_host(const char *list, char *out, int room) {
    int n = 0;
    for (; *list && *list != ','; list++) {
        if (*list == '[') {
            for (list++; *list && !strchr(",-]", *list); list++)
                if (n < room - 1) out[n++] = *list;
            while (*list && *list != ']') list++;
            if (!*list) break;
        } else if (n < room - 1) out[n++] = *list;
    }
    out[n] = 0;
    return n > 0;
}
static const PlaceLack no_rank = {"the launcher's variables are no rank of a run",
                                  "as torchrun sets them: RANK=0 to 7 for WORLD_SIZE=8; or unset "
                                  "both, and a process is started here for each rank"},
                       no_host = {"the processes are on several machines, and MASTER_ADDR does not "
                                  "say where rank 0 is",
                                  "name the machine of rank 0 for all processes: mpirun -x "
                                  "MASTER_ADDR=node1"},
                       no_meeting = {"the processes are on several machines, and nothing that "
                                     "they all know says at which port they meet",
                                     "the same for all processes: MASTER_PORT=29500 (mpirun -genv "
                                     "MASTER_PORT 29500)"},
                       long_host = {"MASTER_ADDR is too long for the name of a machine",
                                    "name the machine of rank 0, or its address"},
                       no_port = {"MASTER_PORT is no port",
                                  "MASTER_PORT=29500, or another number from 1 to 65535, the same "
                                  "for all processes"};
static bool find_host(Place *p, const PlaceLack **lack) {
    const char *named = text_of("MASTER_ADDR"), *nodes = text_of("SLURM_STEP_NODELIST");
    *lack = &long_host;
    if (named) return snprintf(p->host, sizeof p->host, "%s", named) < (int)sizeof p->host;
    if (nodes && place_number("SLURM_STEP_NUM_NODES", 1) > 1)
        return place_first_host(nodes, p->host, sizeof p->host);
    snprintf(p->host, sizeof p->host, "127.0.0.1");
    *lack = &no_host;
    return p->beside >= p->ranks || (nodes && place_number("SLURM_STEP_NUM_NODES", 1) == 1);
}
/* Without a port and a job's name the port follows from who has started the processes, which on
 * another machine is another. */
static bool can_meet(const Place *p) {
    return !text_of(p->by->beside) || p->beside >= p->ranks || text_of(p->by->job) ||
           text_of("MASTER_PORT");
}
static bool find_port(Place *p, uint64_t job) {
    int64_t port =
        place_number("MASTER_PORT", text_of("MASTER_PORT") ? 0 : 20000 + (int)(job % 20000));
    p->port = (int)(port <= 65535 ? port : 0);
    return p->port > 0;
}
bool place_find(Place *p, const PlaceLack **lack) {
    const Launcher *by = launcher();
    *lack = NULL;
    if (!by) return false;
    int64_t rank = place_number(by->rank, -1), ranks = place_number(by->ranks, 0);
    *p = (Place){.by = by, .ranks = 1, .beside = 1, .listener = -1};
    *lack = &no_rank;
    if (rank < 0 || ranks <= rank || ranks > INT32_MAX) return false;
    *p = (Place){.by = by, .rank = rank, .ranks = ranks, .ports = PLACE_PORTS, .listener = -1};
    p->beside = beside_of(by->beside);
    p->local = place_number(by->local, rank % p->beside);
    if (!find_host(p, lack)) return false;
    token_of(by, p->token, sizeof p->token);
    *lack = &no_meeting;
    if (!can_meet(p)) return false;
    /* torchrun's own store may be at MASTER_PORT: those behind it are tried too */
    *lack = &no_port;
    if (!find_port(p, job_of(by))) return false;
    int64_t listener = rank ? -1 : place_number(PLACE_LISTENER, -1);
    p->listener = (int)listener;
    if (text_of(PLACE_LISTENER)) p->ports = 1;
    if (p->port + p->ports > 65536) p->ports = 65536 - p->port;
    *lack = NULL;
    return true;
}
