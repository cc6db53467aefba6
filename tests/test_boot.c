/* How the processes of `--cuda` find each other, by what variables, and who is let go: strangers
 * that know no token, say half a word, nothing, or come in crowds. Real sockets and processes, on
 * ports that the system gives. What they do then is test_nccl's. */
#include "base/clock.h"
#include "base/file.h"
#include "engine/boot.h"
#include "engine/nccl_calls.h"
#include "layout/mesh.h"
#include "support/support.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- variables ---- */
static const char *const variables[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "TORCHELASTIC_RUN_ID",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMIX_NAMESPACE",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_NUM_NODES",
                                        PLACE_TOKEN,
                                        PLACE_LISTENER};
/* "A=1 B=2" is all that is set of them. */
static bool find(Place *p, const PlaceLack **lack, const char *set) {
    char text[512], *save = NULL;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    snprintf(text, sizeof text, "%s", set);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(w, '=');
        *eq = 0;
        setenv(w, eq + 1, 1);
    }
    memset(p, 0, sizeof *p);
    return place_find(p, lack);
}
#define SLURM                                                                                      \
    "SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=4(x2) "       \
    "SLURM_STEP_NODELIST=gpu[007-8] SLURM_STEP_NUM_NODES=2 "
#define TORCH "RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "
static void test_launchers(void **state) {
    (void)state;
    static const struct {
        const char *set, *title, *host;
        int rank, ranks, local, beside;
    } of[] = {
        {TORCH "MASTER_ADDR=node1 MASTER_PORT=29500", "torchrun", "node1", 3, 8, 1, 2},
        {TORCH "MASTER_ADDR=fe80::1 MASTER_PORT=1 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6",
         "torchrun", "fe80::1", 3, 8, 1, 2},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=2 "
         "OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=2",
         "Open MPI", "127.0.0.1", 2, 4, 2, 4},
        {"PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 MASTER_ADDR=h MASTER_PORT=9",
         "MPICH", "h", 1, 4, 1, 2},
        {SLURM "SLURM_JOB_ID=9", "Slurm", "gpu007", 5, 8, 1, 4},
        {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n1 SLURM_STEP_NUM_NODES=1 "
         "PMIX_RANK=1",
         "Slurm", "127.0.0.1", 1, 2, 0, 1},
        /* srun by PMI-2, and a script's own words: which GPU is whose, Slurm knows */
        {"PMI_RANK=5 PMI_SIZE=8 " SLURM "SLURM_JOB_ID=9", "Slurm", "gpu007", 5, 8, 1, 4},
        {"RANK=5 WORLD_SIZE=8 MASTER_ADDR=h MASTER_PORT=9 " SLURM, "Slurm", "h", 5, 8, 1, 4},
        {"PMI_RANK=2 PMI_SIZE=16 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2 MASTER_ADDR=h "
         "MASTER_PORT=9 " SLURM,
         "MPICH", "h", 2, 16, 0, 2},
    };
    const PlaceLack *lack;
    Place p;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_true(find(&p, &lack, of[i].set));
        assert_string_equal(p.by->title, of[i].title);
        assert_string_equal(p.host, of[i].host);
        assert_int_equal(p.rank, of[i].rank);
        assert_int_equal(p.ranks, of[i].ranks);
        assert_int_equal(p.local, of[i].local);
        assert_int_equal(p.beside, of[i].beside);
        assert_true(p.port > 0 && p.port + p.ports <= 65536 && p.ports >= 1);
    }
}
static void test_no_launchers(void **state) {
    (void)state;
    /* nobody: none, half of one, a batch script of Slurm */
    static const char *const none[] = {"",
                                       "RANK=0",
                                       "RANK=abc",
                                       "WORLD_SIZE=2",
                                       "RANK= WORLD_SIZE=2",
                                       "SLURM_PROCID=0 SLURM_JOB_ID=7"};
    /* somebody who is no rank, or cannot be met */
    static const struct {
        const char *set, *what;
    } lacks[] = {
        {"RANK=2 WORLD_SIZE=2", "no rank"},
        {"RANK=-1 WORLD_SIZE=2", "no rank"},
        {"RANK=1x WORLD_SIZE=2", "no rank"},
        {"RANK=abc WORLD_SIZE=2 PMI_RANK=0 PMI_SIZE=2", "no rank"},
        {"RANK=0 WORLD_SIZE=0", "no rank"},
        {"RANK=0 WORLD_SIZE=2.0", "no rank"},
        {"RANK=0 WORLD_SIZE=99999999999999999999", "no rank"},
        {"PMI_RANK=4 PMI_SIZE=4", "no rank"},
        {TORCH "MASTER_PORT=1", "MASTER_ADDR does not say"},
        {TORCH "MASTER_ADDR=h", "at which port they meet"},
        {"PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=2 MASTER_ADDR=h", "at which port they meet"},
        {TORCH "MASTER_ADDR=h MASTER_PORT=70000", "MASTER_PORT"},
        {TORCH "MASTER_ADDR=h MASTER_PORT=0", "MASTER_PORT"},
        {TORCH "MASTER_ADDR=h MASTER_PORT=abc", "MASTER_PORT"},
    };
    const PlaceLack *lack;
    Place p;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(find(&p, &lack, none[i]));
        assert_null(lack);
    }
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        assert_false(find(&p, &lack, lacks[i].set));
        if (!lack) fail_msg("%s: nobody", lacks[i].set);
        assert_non_null(strstr(lack->what, lacks[i].what));
        assert_true(strlen(lack->help) > 0);
    }
    char set[400] = TORCH "MASTER_ADDR=";
    memset(set + strlen(set), 'a', 300);
    assert_false(find(&p, &lack, set));
    assert_non_null(lack);
    assert_non_null(strstr(lack->what, "too long"));
}
/* All processes of a run know the same token, and those of another run another. */
static void test_tokens(void **state) {
    (void)state;
    static const char *const run[] = {
        "RANK=%d WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500",
        "RANK=%d WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29501",
        "RANK=%d WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x",
        "RANK=%d WORLD_SIZE=2 MASTER_ADDR=h SLURM_JOB_ID=3 SLURM_STEP_ID=0",
        "RANK=%d WORLD_SIZE=2 MASTER_ADDR=h SLURM_JOB_ID=3 SLURM_STEP_ID=1",
        "RANK=%d WORLD_SIZE=2 MASTER_ADDR=h SHARDPROOF_TOKEN=0123456789abcdef0123456789abcdef",
    };
    enum { N = sizeof run / sizeof *run };
    Place p[N][2];
    const PlaceLack *lack;
    for (int i = 0; i < N; i++)
        for (int r = 0; r < 2; r++) {
            char set[200];
            snprintf(set, sizeof set, run[i], r);
            assert_true(find(&p[i][r], &lack, set));
            assert_string_equal(p[i][r].token, p[i][0].token);
            assert_int_equal(p[i][r].port, p[i][0].port);
            for (int k = 0; k < i; k++) assert_string_not_equal(p[i][r].token, p[k][r].token);
        }
    assert_string_equal(p[N - 1][0].token, "0123456789abcdef0123456789abcdef");
}
static void test_hosts(void **state) {
    (void)state;
    static const char *const of[][2] = {
        {"node1", "node1"},           {"node1,node2", "node1"}, {"gpu[007-9,12],login", "gpu007"},
        {"a[3,5-6]b[1-2]c", "a3b1c"}, {"x[1-2", "x1"},          {"r[1]n-2,z", "r1n-2"},
    };
    char out[16];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_true(place_first_host(of[i][0], out, sizeof out));
        assert_string_equal(out, of[i][1]);
    }
    assert_false(place_first_host("", out, sizeof out));
    assert_true(place_first_host("a-name-that-is-longer-than-its-room", out, sizeof out));
    assert_int_equal(strlen(out), sizeof out - 1);
}

/* ---- meeting ---- */
enum { RANKS = 4, NO_DEADLINE = 60 };
static void lives(void *arg) { ++*(int *)arg; }
static Place place(int64_t rank, int64_t ranks, const char *host, int port) {
    Place p = {
        .rank = rank, .ranks = ranks, .beside = ranks, .port = port, .ports = 1, .listener = -1};
    snprintf(p.host, sizeof p.host, "%s", host);
    snprintf(p.token, sizeof p.token, "00112233445566778899aabbccddeeff");
    return p;
}
typedef struct {
    BootEnd end;
    int64_t missing;
    char why[200];
    int link[RANKS];
} Met;
static Met meet(const Place *p, double deadline) {
    int beats = 0;
    BootAsk ask = {p, deadline, lives, &beats};
    Met m = {.missing = -2};
    m.end = boot_meet(&ask, m.link, &m.missing, m.why, sizeof m.why);
    return m;
}
/* Another rank: a process that meets and says so by its exit code. */
static pid_t other(const Place *p, double deadline) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid) return pid;
    Met m = meet(p, deadline);
    char c = 'x';
    if (m.end == BOOT_MET && send(m.link[0], &c, 1, 0) != 1) _exit(9);
    _exit(m.end == BOOT_REFUSED ? 10 + (strstr(m.why, "counts 4") != NULL) : (int)m.end);
}
static int code_of(pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}
static int call(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) fail_msg("no connection");
    return fd;
}
/* Rank 0 meets ranks 1 to n-1, on whose links one byte then comes. */
static void all_met(const Met *m, int64_t ranks, const pid_t *pid) {
    assert_int_equal(m->end, BOOT_MET);
    for (int64_t r = 1; r < ranks; r++) {
        assert_int_equal(code_of(pid[r]), BOOT_MET);
        char c = 0;
        assert_int_equal(recv(m->link[r], &c, 1, 0), 1);
        assert_int_equal(c, 'x');
        close(m->link[r]);
    }
    assert_int_equal(m->link[0], -1);
}
static void on_address(const char *host) {
    pid_t pid[RANKS];
    int port, listener = boot_listen(host, 0, 1, &port);
    if (listener < 0) {
        print_message("this machine has no %s: not tried\n", host);
        return;
    }
    for (int r = RANKS - 1; r > 0; r--) {
        Place p = place(r, RANKS, host, port);
        pid[r] = other(&p, NO_DEADLINE * slow_machine());
    }
    Place p = place(0, RANKS, host, port);
    p.listener = listener;
    Met m = meet(&p, NO_DEADLINE * slow_machine());
    all_met(&m, RANKS, pid);
}
static void test_addresses(void **state) {
    (void)state;
    on_address("127.0.0.1");
    on_address("::1");
    on_address("localhost");
}
/* As the operator of Kubernetes for PyTorch does: rank 0 is told that it is at localhost, the
 * others its name; on several machines that is not where it listens alone. */
static void test_names_differ(void **state) {
    (void)state;
    int port, fd = boot_listen("127.0.0.1", 0, 1, &port);
    close(fd);
    Place p = place(0, 2, "localhost", port), one = place(1, 2, "127.0.0.2", port);
    p.beside = one.beside = 1;
    p.ports = one.ports = PLACE_PORTS;
    pid_t pid[2] = {0, other(&one, NO_DEADLINE * slow_machine())};
    Met m = meet(&p, NO_DEADLINE * slow_machine());
    all_met(&m, 2, pid);
}
/* Somebody else, who says nothing, is at the first port; so rank 0 is at one behind it, and the
 * others find it there. */
static void test_taken_port(void **state) {
    (void)state;
    pid_t pid[RANKS];
    int port, got, silent;
    do silent = boot_listen("127.0.0.1", 0, 1, &port);
    while (port + PLACE_PORTS > 65536);
    int probe = boot_listen("127.0.0.1", port, PLACE_PORTS, &got);
    if (probe < 0) fail_msg("%d ports in a row are taken", PLACE_PORTS);
    assert_true(got > port);
    close(probe);
    for (int r = 0; r < RANKS; r++) {
        Place p = place(r, RANKS, "127.0.0.1", port);
        p.ports = PLACE_PORTS;
        if (r) pid[r] = other(&p, NO_DEADLINE * slow_machine());
    }
    Place p = place(0, RANKS, "127.0.0.1", port);
    p.ports = PLACE_PORTS;
    Met m = meet(&p, NO_DEADLINE * slow_machine());
    all_met(&m, RANKS, pid);
    close(silent);
}
/* Before the ranks, between them, and more of them than there is room for. */
static void test_strangers(void **state) {
    (void)state;
    enum { CROWD = 100 };
    static const char *const says[] = {"", "G", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SPBOOT1",
                                       "SPBOOT1\0\1\0\0\0"};
    int port, listener = boot_listen("127.0.0.1", 0, 1, &port), fd[CROWD];
    pid_t pid[RANKS];
    char zeros[4096] = {0}, ones[4096];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < CROWD; i++) {
        const char *s = says[i % 5];
        fd[i] = call(port);
        if (i % 7 == 5) send(fd[i], zeros, sizeof zeros, MSG_NOSIGNAL);
        else if (i % 7 == 6) send(fd[i], ones, sizeof ones, MSG_NOSIGNAL);
        else if (i % 5 == 4) send(fd[i], s, 12, MSG_NOSIGNAL);
        else send(fd[i], s, strlen(s), MSG_NOSIGNAL);
        if (i % 11 == 3) shutdown(fd[i], SHUT_RDWR);
    }
    Place wrong = place(2, RANKS, "127.0.0.1", port);
    wrong.token[5] ^= 1; /* a stranger who knows all but one letter */
    pid_t stranger = other(&wrong, NO_DEADLINE);
    for (int r = RANKS - 1; r > 0; r--) {
        Place p = place(r, RANKS, "127.0.0.1", port);
        pid[r] = other(&p, NO_DEADLINE * slow_machine());
    }
    Place p = place(0, RANKS, "127.0.0.1", port);
    p.listener = listener;
    Met m = meet(&p, NO_DEADLINE * slow_machine());
    all_met(&m, RANKS, pid);
    kill(stranger, SIGKILL);
    assert_int_equal(code_of(stranger), 100 + SIGKILL); /* it was never let in */
    for (int i = 0; i < CROWD; i++) close(fd[i]);
}
/* Two who say that they are rank 1: one of them is; the run does not begin with the other. False:
 * somebody had no processor for so long, which says nothing. */
static bool twice(double deadline) {
    int port, listener = boot_listen("127.0.0.1", 0, 1, &port), met = 0, refused = 0;
    pid_t pid[3];
    for (int k = 0; k < 3; k++) {
        Place p = place(k < 2 ? 1 : 2, 3, "127.0.0.1", port);
        pid[k] = k < 2 ? other(&p, deadline) : fork();
        if (pid[k]) continue;
        usleep(300000); /* nobody is to be counted in its stead */
        _exit(code_of(other(&p, deadline)));
    }
    Place p = place(0, 3, "127.0.0.1", port);
    p.listener = listener;
    Met m = meet(&p, deadline);
    for (int k = 0; k < 3; k++) {
        int code = code_of(pid[k]);
        met += code == BOOT_MET;
        refused += code == 10 || code == BOOT_LATE; /* rank 0 may have met all by then */
    }
    if (m.end == BOOT_LATE) return false;
    assert_int_equal(m.end, BOOT_MET);
    assert_int_equal(met, 2);
    assert_int_equal(refused, 1);
    return true;
}
static void test_twice(void **state) {
    (void)state;
    double deadline = 3.0 * slow_machine(), longer = deadline;
    for (int k = 0; k < 4 && !twice(longer); k++) longer *= 4;
    assert_true(longer < 200 * deadline);
}
/* Who counts other ranks is told so at once; a rank that never comes is named in time. False: one
 * of those that are there had no processor for so long, which says nothing. */
static bool not_all(double deadline) {
    int port, listener = boot_listen("127.0.0.1", 0, 1, &port);
    Place odd = place(1, 8, "127.0.0.1", port), here = place(1, RANKS, "127.0.0.1", port),
          p = place(0, RANKS, "127.0.0.1", port);
    pid_t pid[3] = {0, other(&odd, deadline), other(&here, deadline)};
    p.listener = listener;
    double begin = clock_seconds();
    Met m = meet(&p, deadline);
    assert_int_equal(m.end, BOOT_LATE);
    int code = code_of(pid[1]);
    if (m.missing != 2 || code == BOOT_LATE) {
        kill(pid[2], SIGKILL);
        code_of(pid[2]);
        return false;
    }
    assert_int_equal(code, 11);
    assert_int_equal(code_of(pid[2]), BOOT_OVER);
    assert_true(clock_seconds() - begin < deadline + 60 * slow_machine());
    return true;
}
static void test_not_all(void **state) {
    (void)state;
    double begin, deadline = 3.0 * slow_machine(), longer = deadline;
    for (int k = 0; k < 4 && !not_all(longer); k++) longer *= 4;
    assert_true(longer < 200 * deadline);
    int port;
    close(boot_listen("127.0.0.1", 0, 1, &port));
    Place here = place(1, RANKS, "127.0.0.1", port);
    Met m;
    /* and where there is no rank 0 */
    begin = clock_seconds();
    assert_int_equal(meet(&here, deadline).end, BOOT_LATE);
    assert_true(clock_seconds() - begin < deadline + 60 * slow_machine());
    Place nowhere = place(1, RANKS, "no.such.machine.invalid", port);
    m = meet(&nowhere, deadline);
    assert_int_equal(m.end, BOOT_REFUSED);
    assert_non_null(strstr(m.why, "no.such.machine.invalid"));
}

/* A deadline that is shorter than what lies between two looks at the clock ends, too. */
static void test_short_deadline(void **state) {
    (void)state;
    int port, listener = boot_listen("127.0.0.1", 0, 1, &port);
    Place p = place(0, RANKS, "127.0.0.1", port), one = place(1, RANKS, "127.0.0.1", port);
    p.listener = listener;
    alarm((unsigned)(60 * slow_machine()));
    Met m = meet(&p, 0.02);
    assert_int_equal(m.end, BOOT_LATE);
    assert_int_equal(m.missing, 1);
    assert_int_equal(meet(&one, 0.001).end, BOOT_LATE);
    alarm(0);
}
/* Rank 0 without a file for one more connection says so at once, and does not wait for the rank
 * that is there; strangers who hold the last files are let go. */
static int without_files(int more, int crowd) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid) return code_of(pid);
    int port, listener = boot_listen("127.0.0.1", 0, 1, &port);
    pid_t rank[RANKS];
    Place p = place(0, RANKS, "127.0.0.1", port);
    for (int r = 1; r < RANKS; r++) {
        Place q = place(r, RANKS, "127.0.0.1", port);
        rank[r] = other(&q, NO_DEADLINE * slow_machine());
    }
    for (int i = 0; i < crowd; i++) call(port);
    int free_one = dup(0);
    close(free_one);
    setrlimit(RLIMIT_NOFILE,
              &(struct rlimit){(rlim_t)(free_one + more), (rlim_t)(free_one + more)});
    p.listener = listener;
    Met m = meet(&p, NO_DEADLINE * slow_machine());
    for (int r = 1; r < RANKS; r++) kill(rank[r], SIGKILL);
    _exit(m.end == BOOT_REFUSED && !strstr(m.why, "Too many open files") ? 99 : (int)m.end);
}
static void test_no_files(void **state) {
    (void)state;
    double begin = clock_seconds();
    assert_int_equal(without_files(0, 0), BOOT_REFUSED);
    assert_int_equal(without_files(2, 0), BOOT_REFUSED);
    assert_true(clock_seconds() - begin < NO_DEADLINE * slow_machine());
    assert_int_equal(without_files(3, 20), BOOT_MET);
}

/* ---- sums as calls ---- */
/* What calls of NCCL do, by its manual: the sum of blocks of integers. */
static void interpret(const NcclCall *c, int n, int64_t members, int64_t total,
                      int64_t (*out)[64]) {
    for (int i = 0; i < n; i++)
        for (int64_t to = 0; to < members; to++) {
            int64_t from = c[i].kind == NCCL_REDUCE_SCATTER ? to * c[i].count : c[i].from;
            if (c[i].kind == NCCL_REDUCE && c[i].root != to) continue;
            for (int64_t k = 0; k < c[i].count; k++) {
                assert_true(from + k < total);
                for (int64_t r = 0; r < members; r++) out[to][k] += (r + 1) * 1000 + from + k;
            }
        }
}
static void one_sum(const int64_t *each, int64_t members, int64_t total) {
    NcclCall calls[16];
    int64_t out[16][64] = {{0}}, at = 0;
    EngineSum s = {.n = total, .each = each};
    int n = nccl_calls(&s, members, calls);
    assert_true(n <= members);
    interpret(calls, n, members, total, out);
    for (int64_t to = 0; to < members; to++) {
        int64_t mine = each ? each[to] : total;
        for (int64_t k = 0; k < 64; k++) {
            int64_t want = 0;
            for (int64_t r = 0; k < mine && r < members; r++) want += (r + 1) * 1000 + at + k;
            assert_int_equal(out[to][k], want);
        }
        at += each ? mine : 0;
    }
}
static void test_calls(void **state) {
    (void)state;
    static const int64_t each[][5] = {{3, 3, 3}, {3, 3, 2}, {0, 5, 1}, {4, 4, 0}, {0, 0, 0}, {7}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        int64_t members = i == 5 ? 1 : 3, total = 0;
        for (int64_t k = 0; k < members; k++) total += each[i][k];
        one_sum(each[i], members, total);
        one_sum(NULL, members, total);
    }
}
/* What ncclCommSplit makes of colours and places is the group that the mesh says, in its order: for
 * every set of axes of every shipped mesh. */
static void split(const Mesh *m, const AxisList *axes) {
    for (int64_t rank = 0; rank < m->nranks; rank++) {
        int64_t color = mesh_member(m, axes, rank, 0), n = mesh_size(m, axes), found = 0;
        for (int64_t key = 0; key < n; key++)
            for (int64_t r = 0; r < m->nranks; r++) {
                if (mesh_member(m, axes, r, 0) != color || mesh_index_in(m, axes, r) != key)
                    continue;
                assert_int_equal(r, mesh_member(m, axes, rank, key));
                found++;
            }
        assert_int_equal(found, n);
        assert_true(color >= 0 && color <= INT32_MAX);
    }
}
static void test_splits(void **state) {
    (void)state;
    int meshes = 0;
    for (PlanFiles f = plan_files("plans/[0-9]*.yaml", NULL); plan_files_next(&f);) {
        PipelineReport rep = plan_run(f.a, f.path, f.text, false).rep;
        Mesh mesh = {.naxes = rep.plan ? rep.plan->n_axes : 0}, *m = &mesh;
        for (int k = 0; k < mesh.naxes; k++)
            mesh.axis[k] =
                (MeshAxis){.name = rep.plan->axes[k].name, .size = rep.plan->axes[k].size};
        if (!mesh.naxes || !mesh_finish(m) || m->nranks > 64) continue;
        meshes++;
        for (int set = 1; set < 1 << m->naxes; set++) {
            AxisList axes = {0};
            for (int k = 0; k < m->naxes; k++)
                if (set >> k & 1) axes.a[axes.n++] = (uint8_t)k;
            split(m, &axes);
        }
    }
    assert_true(meshes > 20);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers),      cmocka_unit_test(test_no_launchers),
        cmocka_unit_test(test_short_deadline), cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_tokens),         cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_addresses),      cmocka_unit_test(test_names_differ),
        cmocka_unit_test(test_taken_port),     cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_twice),          cmocka_unit_test(test_not_all),
        cmocka_unit_test(test_calls),          cmocka_unit_test(test_splits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
