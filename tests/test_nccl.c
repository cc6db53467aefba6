/* `--cuda` as users start it, one process for each rank, on a machine without a GPU: the launch,
 * the joining under a launcher's variables, the meeting, and the plug-in of NCCL itself, on a NCCL
 * and a CUDA runtime of the tests' own (tests/trip/nccl.c). Its ranks compute on the host, or on a
 * GPU that is the process itself. Traces are those of the virtual run; errors of NCCL and of CUDA,
 * a rank that is killed, stopped or absent, and Ctrl-C, end all processes in time. */
#include "base/clock.h"
#include "engine/boot.h"
#include "support/child.h"
#include "support/mpi.h"
#include "support/random_plan.h"
#include "support/same_records.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A copy of the program beside the file that is to be its plug-in of NCCL; NULL: beside none. */
static const char *program_with(Arena *a, const char *engine, const char *name) {
    const char *dir = temp_path(a, name), *e = temp_path(a, "e");
    mpi_expect(line_code("/dev/null", e, "rm -rf %s && mkdir %s && cp -L %s %s/sp", dir, dir,
                         mpi_program(), dir),
               0, e, "");
    if (engine)
        mpi_expect(line_code("/dev/null", e,
                             "cp \"%s\" %s/shardproof-nccl.so && cp \"%s\" %s/fake_nccl.so", engine,
                             dir, child_beside(a, "fake_nccl.so"), dir),
                   0, e, "");
    return arena_printf(a, "%s/sp", dir);
}
/* Its ranks compute on a GPU, which here is the process itself (tests/trip/gpu.c), where FAKE_GPU
 * is not "host". */
static const char *program_with_gpu(Arena *a) {
    const char *p = program_with(a, child_beside(a, "nccl.so"), "gpus"), *e = temp_path(a, "e");
    mpi_expect(line_code("/dev/null", e, "cp \"%s\" %s/shardproof-cuda.so",
                         child_beside(a, "gpu.so"), temp_path(a, "gpus")),
               0, e, "");
    return p;
}
static const char *program(void) {
    static Arena *keep;
    static const char *path;
    if (path) return path;
    keep = arena_new();
    return path = program_with(keep, child_beside(keep, "nccl.so"), "nccl");
}

/* ---- the same as virtually ---- */
static SameRecords by_nccl(const char *words) {
    return (SameRecords){program(), "", false, words, "nccl", 1};
}
static void test_shipped_plans(void **state) {
    (void)state;
    const SameRecords by = by_nccl("--cuda");
    int ran = same_folder(&by, "plans/[0-9]*.yaml");
    print_message("%d plans\n", ran);
    assert_true(ran >= (getenv("SHARDPROOF_SAMPLE") ? 2 : 15));
}
static void test_planted_mistakes(void **state) {
    (void)state;
    const SameRecords by = by_nccl("--cuda");
    assert_true(same_folder(&by, "plans/bugs/*.yaml") >= (getenv("SHARDPROOF_SAMPLE") ? 2 : 20));
}
static void test_other_plans(void **state) {
    (void)state;
    const SameRecords by = by_nccl("--cuda");
    same_other_plans(&by);
}
static void test_engine_sums(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e");
    size_t n;
    mpi_expect(line_code(o, e,
                         "%s check plans/05*.yaml plans/06*.yaml plans/18*.yaml "
                         "plans/19*.yaml --cuda --sum engine",
                         program()),
               0, e, "");
    assert_non_null(strstr(child_read(a, o, &n), "4 plans hold"));
    arena_free(a);
}

/* Each process computes on a GPU: values are
 * held by the bounds of a device with orders of its own, moves by bits. */
static void test_on_gpus(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program_with_gpu(a);
    size_t n;
    mpi_expect(line_code(o, e,
                         "export FAKE_GPU=; %s check plans/05*.yaml --cuda && %s check "
                         "plans/bugs/01*.yaml --cuda",
                         p, p),
               0, e, "");
    const char *text = child_read(a, o, &n);
    assert_non_null(strstr(text, "equivalent, 49 checks"));
    assert_non_null(strstr(text, "different, first wrong value layers.0.o_proj"));
    /* a cause is found with the kernels that made the numbers; quick: blocks stay with their
     * processes and are projected there */
    mpi_expect(line_code(o, e, "FAKE_GPU= %s run plans/bugs/38*.yaml --cuda", p), 0, e,
               "ranks 1-3: positions are counted from 0 on each rank");
    mpi_expect(line_code(o, e,
                         "export FAKE_GPU=; %s check plans/05*.yaml --cuda --check quick && %s run "
                         "plans/bugs/38*.yaml --cuda --check quick",
                         p, p),
               0, e, "ranks 1-3: positions are counted from 0 on each rank");
    assert_non_null(strstr(child_read(a, o, &n), "products by projections"));
    /* a GPU that cannot be opened ends all of them; rank 0 says why */
    mpi_expect(line_code(o, e, "SHARDPROOF_GPU=broken FAKE_GPU= %s check %s --cuda", p,
                         "plans/02-toymodel-2.yaml"),
               5, e, "the GPU cannot be used");
    arena_free(a);
}

/* Blocks go from GPU to GPU where they lie, on a stream for each group of axes: the records are
 * those of the virtual run but for times and magnitudes, in bf16 too, with the engine's sums, where
 * lists of rows say what is sent, and where a mistake is planted. */
static void test_from_gpu_to_gpu(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const rows[][2] = {
        {"plans/05*.yaml", "--set data.dtype=bf16"},
        {"plans/22*.yaml", ""},
        {"plans/19*.yaml", "--sum engine"},
        {"plans/30*.yaml", ""},
        {"plans/04*.yaml", "--set data.dtype=bf16 --sum engine"},
        {"plans/bugs/53*.yaml", ""},
        {"plans/bugs/46*.yaml", ""},
        {"plans/47*.yaml", "--set data.dtype=f64"},
    };
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *v = temp_path(a, "v.jsonl"),
               *c = temp_path(a, "c.jsonl"), *p = program_with_gpu(a);
    size_t n, few = getenv("SHARDPROOF_SAMPLE") ? 3 : sizeof rows / sizeof *rows;
    for (size_t i = 0; i < few; i++) {
        const char *plain = strstr(rows[i][1], "--set");
        plain = !plain                  ? ""
                : strstr(plain, "bf16") ? "--set data.dtype=bf16"
                                        : "--set data.dtype=f64";
        print_message("%s %s\n", rows[i][0], rows[i][1]);
        mpi_expect(line_code(o, e, "%s check %s %s --trace %s", p, rows[i][0], plain, v), 0, e, "");
        mpi_expect(line_code(o, e, "FAKE_ORDER=events FAKE_GPU= %s check %s --cuda %s --trace %s",
                             p, rows[i][0], rows[i][1], c),
                   0, e, "");
        mpi_expect(line_code(o, e, "%s diff %s %s", p, v, c), 0, e, "");
        assert_non_null(strstr(child_read(a, o, &n), "the records of virtual and nccl are equal"));
    }
    /* where a stream does not wait for the mark of another, nothing orders what both do */
    mpi_expect(line_code(o, e,
                         "FAKE_FORGETS=cudaStreamWaitEvent FAKE_ORDER=events FAKE_GPU= %s check "
                         "plans/05*.yaml --cuda",
                         p),
               5, e, "no event orders what streams do: ");
    arena_free(a);
}

/* What a rank needs of its GPU is told before the first step, and is what it takes: buffers that
 * moves lend and what is put side by side to be sent included. Of experts' rows it is what
 * is expected, and a sixteenth of the room is left alone. */
static void test_memory_told(void **state) {
    (void)state;
    static const struct {
        const char *words, *env;
        double enough;
    } rows[] = {{"plans/22*.yaml --cuda", "", 1.01},
                {"plans/40*.yaml --cuda --set data.dtype=bf16", "", 1.01},
                {"plans/37*.yaml --cuda", "", 16.0 / 15},
                {"plans/19*.yaml --cuda --sum engine", "", 1.01},
                {"plans/05*.yaml --cuda=share", "FAKE_GPUS=1", 1.01}};
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program_with_gpu(a);
    size_t n, few = getenv("SHARDPROOF_SAMPLE") ? 2 : sizeof rows / sizeof *rows;
    for (size_t i = 0; i < few; i++) {
        const char *with = arena_printf(a, "%s FAKE_GPU=", rows[i].env);
        mpi_expect(
            line_code(o, e, "%s SHARDPROOF_GPU=\"room 4096\" %s check %s", with, p, rows[i].words),
            5, e, "the values of rank ");
        double told = bytes_behind(child_read(a, e, &n), "take about ");
        print_message("%s: %.0f bytes\n", rows[i].words, told);
        mpi_expect(line_code(o, e, "%s SHARDPROOF_GPU=\"limit %.0f\" %s check %s", with,
                             rows[i].enough * told, p, rows[i].words),
                   0, e, "");
        mpi_expect(line_code(o, e, "%s SHARDPROOF_GPU=\"limit %.0f\" %s check %s", with, 0.9 * told,
                             p, rows[i].words),
                   5, e, "has no room for ");
    }
    arena_free(a);
}

/* How often nothing orders a kernel and what NCCL does, on the rank where that is least often; -1:
 * not on each of `ranks`. */
static long beside_nccl(const char *text, const char *kernel, int ranks) {
    long least = -1;
    for (const char *at = text; (at = strstr(at, kernel)); at++, ranks--) {
        long n = strtol(at + strlen(kernel), NULL, 10);
        if (least < 0 || n < least) least = n;
    }
    return ranks ? -1 : least;
}
/* In a walk that nobody checks a hop of a ring goes on while the part of attention before it is
 * computed, and the sums of gradients while others are made: neither an event nor the host orders
 * them. */
static void test_overlap(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *b = temp_path(a, "beside"),
               *p = program_with_gpu(a);
    size_t n;
    mpi_expect(line_code(o, e, "rm -f %s; FAKE_BESIDE=%s FAKE_GPU= %s check plans/41*.yaml --cuda",
                         b, b, p),
               0, e, "");
    const char *text = child_read(a, b, &n);
    assert_true(beside_nccl(text, "attention | NCCL: ", 4) >= 6); /* hops of a rank, forward */
    assert_true(beside_nccl(text, "merge | NCCL: ", 4) + beside_nccl(text, "NCCL | merge: ", 4) >=
                3);
    arena_free(a);
}

/* Several ranks on one GPU: refused, unless =share asks for it; then each is a machine of its own
 * for older NCCLs, newer ones are told by their switch. Without either the tests' NCCL refuses it,
 * as the real one does. */
static void test_share(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *t = temp_path(a, "t.jsonl"),
               *p = program();
    size_t n;
    static const char *const versions[] = {"22809", "23007"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const char *v = versions[i];
        mpi_expect(line_code(o, e,
                             "export FAKE_GPUS=1 FAKE_NCCL_VERSION=%s; %s check plans/05*.yaml "
                             "plans/18*.yaml --cuda=share",
                             v, p),
                   0, e, "4 ranks share a GPU, which NVIDIA does not support");
        assert_null(strstr(strstr(child_read(a, e, &n), "W0602") + 1, "W0602"));
        assert_non_null(strstr(child_read(a, o, &n), "2 plans hold"));
        mpi_expect(line_code(o, e,
                             "FAKE_GPUS=1 FAKE_NCCL_VERSION=%s %s check plans/05*.yaml --cuda", v,
                             p),
                   5, e, "rank 1: it has the GPU of rank 0");
        assert_non_null(strstr(child_read(a, e, &n), "--cuda=share"));
    }
    mpi_expect(line_code(o, e, "FAKE_GPUS=1 FAKE_MODE=3 %s check %s --cuda=share", p,
                         "plans/02-toymodel-2.yaml"),
               5, e, "its GPU is for one process alone");
    /* two of three GPUs have a rank each, the third two; with enough of them nobody shares */
    mpi_expect(line_code(o, e, "FAKE_GPUS=3 %s check plans/05*.yaml --cuda=share", p), 0, e,
               "2 ranks share a GPU");
    mpi_expect(line_code(o, e, "FAKE_GPUS=4 %s check plans/05*.yaml --cuda=share --trace %s", p, t),
               0, e, "");
    assert_int_equal(strlen(child_read(a, e, &n)), 0);
    assert_non_null(strstr(child_read(a, t, &n), "\"backend\":\"nccl\""));
    /* times of ranks that take turns are no measure of anything, and are said to be none */
    mpi_expect(line_code(o, e, "FAKE_GPUS=1 %s check plans/05*.yaml --cuda=share --trace %s", p, t),
               0, e, "");
    assert_non_null(strstr(child_read(a, t, &n), "\"backend\":\"nccl-share\""));
    mpi_expect(line_code(o, e, "%s times %s", p, t), 0, e, "");
    assert_non_null(strstr(child_read(a, o, &n), "these times say nothing"));
    assert_null(strstr(child_read(a, o, &n), "times that)"));
    mpi_expect(line_code(o, e, "%s draw %s --view timeline --measured --format svg", p, t), 0, e,
               "");
    assert_non_null(strstr(child_read(a, o, &n), "times say nothing"));
    assert_null(strstr(child_read(a, o, &n), "·  ·")); /* no profile, no empty item for it */
    assert_null(strstr(child_read(a, o, &n), "Modelled: ."));
    mpi_expect(line_code(o, e, "%s draw %s --view block --format svg", p, t), 0, e, "");
    assert_non_null(strstr(child_read(a, o, &n), "4 processes that share a GPU"));
    arena_free(a);
}
/* A rank with a GPU of its own is no virtual one, whatever computes. */
static void test_backend_named(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *t = temp_path(a, "t.jsonl"),
               *p = program_with_gpu(a);
    size_t n;
    mpi_expect(
        line_code(o, e, "FAKE_GPU= %s check plans/02-toymodel-2.yaml --cuda --trace %s", p, t), 0,
        e, "");
    assert_non_null(strstr(child_read(a, t, &n), "\"backend\":\"nccl\""));
    /* each step of each rank is measured once, though the GPU has a clock too */
    int measured = 0;
    for (const char *s = child_read(a, t, &n); (s = strstr(s, "\"measured\"")); s++) measured++;
    assert_int_equal(measured, 6 * 2);
    mpi_expect(line_code(o, e, "%s draw %s --view shards --format svg", p, t), 0, e, "");
    assert_non_null(strstr(child_read(a, o, &n), "2 processes, a GPU for each"));
    arena_free(a);
}

/* ---- joining ---- */
static const char plan[] = "plans/02-toymodel-2.yaml";
static int free_port(void) {
    int port, fd = boot_listen("127.0.0.1", 0, 1, &port);
    assert_true(fd >= 0);
    close(fd);
    return port;
}
/* Ranks that somebody else has started, by the variables of each launcher, in any order; rank 0 is
 * the last of the line, whose code it is. */
static void test_joined(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const by[] = {
        "MASTER_ADDR=127.0.0.1 MASTER_PORT=%d WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 LOCAL_RANK=%d "
        "RANK=%d",
        "MASTER_ADDR=localhost MASTER_PORT=%d OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
        "OMPI_COMM_WORLD_LOCAL_RANK=%d OMPI_COMM_WORLD_RANK=%d",
        "MASTER_PORT=%d PMI_SIZE=2 MPI_LOCALNRANKS=2 MPI_LOCALRANKID=%d PMI_RANK=%d",
        "MASTER_PORT=%d SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n SLURM_STEP_NUM_NODES=1 "
        "SLURM_LOCALID=%d SLURM_PROCID=%d",
    };
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program();
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        int port = free_port();
        Str line = str_new(a);
        for (int r = 1; r >= 0; r--) {
            str_add(&line, "env ");
            str_addf(&line, by[i], port, r, r);
            str_addf(&line, " %s check %s --cuda %s ", p, plan,
                     r ? "&" : "; code=$?; wait; exit $code");
        }
        mpi_expect(line_code(o, e, "%s", line.s), 0, e, "");
        size_t n;
        assert_non_null(strstr(child_read(a, o, &n), "equivalent"));
        assert_null(strstr(strstr(child_read(a, o, &n), "equivalent") + 1, "equivalent"));
    }
    /* MPICH names no job: it is the launcher's process, behind a shell of each rank's */
    const char *in_shell = arena_printf(a, "sh -c \"%s check %s --cuda; exit \\$?\"", p, plan);
    mpi_expect(line_code(o, e,
                         "export PMI_SIZE=2 MPI_LOCALNRANKS=2; PMI_RANK=1 MPI_LOCALRANKID=1 %s & "
                         "PMI_RANK=0 MPI_LOCALRANKID=0 %s; code=$?; wait; exit $code",
                         in_shell, in_shell),
               0, e, "");
    arena_free(a);
}
/* Ranks 1 to n - 1 and, behind them, rank 0, whose code it is, as torchrun starts them. */
static const char *all_of(Arena *a, int ranks, const char *line) {
    return arena_printf(
        a,
        "export MASTER_ADDR=127.0.0.1 MASTER_PORT=%d WORLD_SIZE=%d "
        "LOCAL_WORLD_SIZE=%d; r=%d; while [ $r -gt 0 ]; do RANK=$r LOCAL_RANK=$r "
        "%s & r=$((r - 1)); done; RANK=0 LOCAL_RANK=0 %s; code=$?; wait; exit $code",
        free_port(), ranks, ranks, ranks - 1, line, line);
}
/* As nccl-tests counts them: of both kinds some, algorithm bandwidth S / t, bus bandwidth that
 * times the share of S that a ring sends. */
static void holds_bandwidths(const char *text, int ranks) {
    static const char *const ops[] = {"#   all_reduce ", "#   reduce_scatter "};
    for (int k = 0; k < 2; k++) {
        int lines = 0;
        double most = 0;
        for (const char *at = text; (at = strstr(at, ops[k])); at++, lines++) {
            double n, size, took, algbw, busbw, share = (k ? 1.0 : 2.0) * (ranks - 1) / ranks;
            assert_int_equal(sscanf(at + strlen(ops[k]),
                                    "%lf ranks S %lf %lf s algbw %lf busbw %lf", &n, &size, &took,
                                    &algbw, &busbw),
                             5);
            assert_true(n == ranks && fabs(size / took / algbw - 1) < 0.02);
            assert_true(fabs(busbw / algbw / share - 1) < 0.02);
            most = size > most ? size : most;
        }
        assert_true(lines > 2 && most == 1024 * 1024 * 4);
    }
}
/* A profile of several ranks with a GPU each: one that `plan` takes, whose links are measured, and
 * that has what NCCL's model of time starts from. */
static void test_calibrate(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *file = temp_path(a, "gpus.yaml"),
               *p = program();
    size_t n;
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        mpi_expect(
            line_code(o, e, "%s",
                      all_of(a, ranks, arena_printf(a, "%s calibrate --cuda -o %s", p, file))),
            0, e, "");
        const char *text = child_read(a, file, &n);
        assert_non_null(
            strstr(text, arena_printf(a, "`shardproof calibrate --cuda` on %d pro", ranks)));
        assert_non_null(strstr(text, arena_printf(a, "processes of NCCL, %d on each", ranks)));
        assert_non_null(strstr(text, "14 all-gathers and reduce-scatters"));
        assert_non_null(strstr(text, "\nnccl:\n  gpu: "));
        holds_bandwidths(text, ranks);
        mpi_expect(line_code(o, e, "%s times %s --hardware %s", p, plan, file), 0, e, "");
        mpi_expect(line_code(o, e, "%s draw %s --view timeline --hardware %s --format json", p,
                             "plans/04-llama3-8b-tp4.yaml", file),
                   0, e, "");
        assert_non_null(strstr(child_read(a, o, &n), "NCCL Ring/"));
    }
    /* one has no links; several on one GPU have no times; neither writes a file */
    mpi_expect(line_code(o, e, "rm %s; %s", file,
                         all_of(a, 1, arena_printf(a, "%s calibrate --cuda -o %s", p, file))),
               5, e, "calibrate wants at least two [E0603]\n  = help: torchrun ");
    mpi_expect(line_code(o, e, "FAKE_GPUS=1; export FAKE_GPUS; %s",
                         all_of(a, 2, arena_printf(a, "%s calibrate --cuda=share -o %s", p, file))),
               5, e, "2 processes share a GPU, whose times say nothing");
    assert_int_not_equal(access(file, F_OK), 0);
    arena_free(a);
}
static void test_refused(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program();
    /* plans of other meshes in one launch: as with mpirun */
    mpi_expect(line_code(o, e, "%s check %s plans/05*.yaml --cuda", p, plan), 5, e,
               "2 processes for a mesh of 4 ranks");
    mpi_expect(line_code(o, e, "%s check none.yaml --cuda", p), 3, e, "[E0101]");
    mpi_expect(line_code(o, e, "%s check %s --cuda --frob", p, plan), 2, e, "[E0212]");
    mpi_expect(line_code(o, e, "%s check %s --cuda --static", p, plan), 2, e, "[E0212]");
    mpi_expect(line_code(o, e, "%s check %s --cuda --mpi", p, plan), 2, e, "[E0212]");
    mpi_expect(line_code(o, e, "%s check - --cuda", p), 2, e, "[E0212]");
    mpi_expect(line_code(o, e, "%s check %s --sum engine", p, plan), 2, e, "[E0212]");
    mpi_expect(line_code(o, e, "%s check plans/shape-only/deepseek*.yaml --cuda", p), 5, e,
               "[E0604]");
    mpi_expect(
        line_code(o, e, "RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 %s check %s --cuda", p, plan), 5, e,
        "");
    mpi_expect(
        line_code(o, e, "RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 %s check %s --cuda", p, plan), 5, e,
        "MASTER_ADDR does not say where rank 0 is [E0603]");
    mpi_expect(line_code(o, e, "RANK=abc WORLD_SIZE=2 %s check %s --cuda", p, plan), 5, e,
               "no rank of a run [E0603]");
    mpi_expect(line_code(o, e,
                         "RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=abc %s check "
                         "%s --cuda",
                         p, plan),
               5, e, "MASTER_PORT is no port [E0603]");
    mpi_expect(line_code(o, e, "RANK=abc %s check %s --cuda", p, plan), 0, e, ""); /* nobody's */
    /* a rank that is not the first one of its run says why it cannot begin: nobody else knows */
    mpi_expect(line_code(o, e, "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 %s check %s --cuda",
                         program_with(a, NULL, "alone"), plan),
               5, e, "rank 1: --cuda: there is no shardproof-nccl.so");
    mpi_expect(line_code(o, e, "FAKE_DRIVER=0 %s check %s --cuda", p, plan), 5, e,
               "--cuda: rank 0: there is no NVIDIA driver on its machine: CUDA driver version");
    mpi_expect(line_code(o, e, "FAKE_DRIVER=12010 %s check %s --cuda", p, plan), 5, e,
               "--cuda: rank 0: its driver is older than the CUDA that the plug-in was built with");
    p = program_with(a, NULL, "alone");
    mpi_expect(line_code(o, e, "%s check %s --cuda", p, plan), 5, e, "no shardproof-nccl.so");
    mpi_expect(line_code(o, e, "%s check %s --cuda", p, plan), 5, e, "make CUDA=1");
    mpi_expect(line_code(o, e, "%s check %s --cuda", program_with(a, plan, "text"), plan), 5, e,
               "[E0601]");
    mpi_expect(line_code(o, e, "ENGINE_FAILS=0 %s check %s --cuda",
                         program_with(a, child_beside(a, "engine.so"), "fails"), plan),
               5, e, "no cable is plugged in [E0607]");
    arena_free(a);
}
/* NCCL's own plug-in, where it could be built, on a machine without a GPU: it says so, and ends. */
static void test_nccl(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e");
    const char *real = child_built(a, "real/shardproof-nccl.so");
    if (!real || access("/dev/nvidiactl", F_OK) == 0) {
        print_message("no toolkit with NCCL's header here, or there is a GPU: not tried\n");
        arena_free(a);
        skip();
    }
    double begin = clock_seconds();
    mpi_expect(line_code(o, e,
                         "env -u SHARDPROOF_NCCL %s check %s --cuda "
                         "--deadline %d",
                         program_with(a, real, "toolkit"), plan, LONGEST),
               5, e,
               "--cuda: rank 0: there is no NVIDIA driver on its machine: CUDA driver version");
    assert_true(clock_seconds() - begin < (double)LONGEST / 2); /* not at the deadline */
    arena_free(a);
}

/* NVIDIA's own library, where it is installed, on a machine without a GPU (of which only CUDA's
 * runtime is the tests' own): its words, said once. */
static void test_real_library(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program(),
               *lib = "/usr/local/cuda/lib/libnccl.so.2";
    if (access(lib, R_OK) != 0) lib = "/usr/lib/x86_64-linux-gnu/libnccl.so.2";
    if (access(lib, R_OK) != 0 || access("/dev/nvidiactl", F_OK) == 0) {
        print_message("no libnccl.so.2 of NVIDIA's here, or there is a GPU: not tried\n");
        arena_free(a);
        skip();
    }
    mpi_expect(line_code(o, e, "SHARDPROOF_NCCL=%s %s check plans/05*.yaml --cuda --deadline %d",
                         lib, p, 20 * slow_machine()),
               5, e, ": ncclCommInitRankConfig: unhandled cuda error ");
    size_t n;
    assert_null(strstr(strstr(child_read(a, e, &n), "[E06") + 1, "[E06"));
    arena_free(a);
}
/* The examples' jobs: Slurm's, with a script in place of srun that starts the processes so. */
static void test_cluster_scripts(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *srun = temp_path(a, "srun");
    size_t n;
    child_write(srun, "#!/bin/sh\nfor r in 3 2 1 0; do\n  export SLURM_PROCID=$r SLURM_LOCALID=$r\n"
                      "  if [ $r = 0 ]; then \"$@\"; code=$?; else \"$@\" & fi\ndone\nwait\n"
                      "exit $code\n");
    chmod(srun, 0755);
    mpi_expect(line_code(o, e,
                         "here=$PWD; cd %s && PATH=$PWD:$PATH SLURM_JOB_ID=%d SHARDPROOF=%s "
                         "SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=4 SLURM_STEP_NODELIST=n "
                         "SLURM_STEP_NUM_NODES=1 MASTER_PORT=%d bash "
                         "\"$here/examples/cluster/slurm-gpu.sh\" "
                         "\"$here/plans/19-llama3-8b-fsdp4.yaml\" && ls trace-*.jsonl",
                         temp_path(a, "."), (int)getpid(), program(), free_port()),
               0, e, "");
    assert_non_null(strstr(child_read(a, o, &n), "equivalent"));
    const char *p = program_with(a, child_beside(a, "nccl.so"), "scripts"),
               *dir = temp_path(a, "scripts");
    mpi_expect(line_code(o, e,
                         "cp \"%s\" %s/shardproof-cuda.so && ln -s %s %s/shardproof && "
                         "SHARDPROOF_EMULATED=%s FAKE_GPU= sh tests/gpu.sh --emulated nccl "
                         "plans/02-toymodel-2.yaml",
                         child_beside(a, "gpu.so"), dir, p, dir, dir),
               0, e, "");
    assert_non_null(strstr(child_read(a, o, &n), "--cuda=share --sum engine (exit 0)"));
    arena_free(a);
}

/* ---- what does not go on ---- */
/* What NCCL or CUDA says on one rank, which is rank `on`: it is said once, with rank, step and
 * collective; or that all wait, where nobody says anything. Every rank gives its communicators up.
 */
static const struct {
    const char *fault, *says;
    int gave_up; /* ranks */
} faults[] = {
    {"1 GroupEnd 3 remote",
     "the engine failed on rank 1, which was at step 12, reduce_scatter of layers.0.o_proj: "
     "ncclGroupEnd: remote process exited or there was a network error; the tests' NCCL: what "
     "went wrong; all ranks end [E0607]",
     4},
    {"1 GroupEnd 3 inprogress", "waited for another", 4},
    {"2 GroupEnd 4 hang", "waited for another", 4},
    {"1 GroupEnd 3 returns system", "ncclGroupEnd: unhandled system error", 4},
    {"0 GroupEnd 2 internal",
     "failed on rank 0, which was at step 4, all_gather of "
     "layers.0.input_norm: ncclGroupEnd: internal error",
     4},
    {"3 GroupEnd 3 cuda",
     "failed on rank 3, which was at step 12, reduce_scatter of "
     "layers.0.o_proj: ncclGroupEnd: unhandled cuda error",
     4},
    {"1 CommInitRankConfig 1 hang", "the engine did not start within ", 4},
    {"1 CommInitRankConfig 1 system",
     "the engine did not start on rank 1: ncclCommInitRankConfig: unhandled system error", 4},
    {"1 CommInitRankConfig 1 returns usage",
     "did not start on rank 1: ncclCommInitRankConfig: invalid usage", 0},
    {"0 GetUniqueId 1 returns system", "did not start on rank 0: ncclGetUniqueId: unhandled", 0},
    {"2 CommSplit 1 hang", "waited for another for ", 4},
    {"2 CommSplit 1 internal",
     "rank 2, which was at step 1, reduce_scatter of embed: ncclCommSplit: internal error", 4},
    {"1 CommFinalize 1 hang", "rank 0 past the last value of its plan", 0},
    {"1 cudaMemcpyAsync 2 address", "copy to the GPU: an illegal memory access", 4},
    {"1 cudaMemcpy 2 address", "copy from the GPU: an illegal memory access", 4},
    {"1 cudaStreamQuery 4 address", ": an illegal memory access", 4},
    {"1 cudaMalloc 1 memory",
     "rank 1, which was at step 1, reduce_scatter of embed: memory for "
     "messages: out of memory",
     4},
    {"1 cudaSetDevice 1 memory", "rank 1: its GPU cannot be used: out of memory [E0601]", 0},
    {"1 Send 1 returns argument", "ncclSend: invalid argument", 4},
    /* one whose abort never returns ends all the same */
    {"1 GroupEnd 3 remote; 2 CommAbort 1 hang", "ncclGroupEnd: remote process exited", 3},
};
enum { RANKS = 4 };
/* One run with that fault: how many ranks gave up their communicators. */
static int one_fault(size_t i) {
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *log = temp_path(a, "log");
    double deadline = 1.5 * slow_machine(), begin;
    int code, ranks = 0;
    do {
        begin = clock_seconds();
        code = line_code(o, e,
                         "rm -f %s; FAKE_LOG=%s FAKE_FAULT=\"%s\" %s check plans/18*.yaml --cuda "
                         "--sum engine --deadline %g",
                         log, log, faults[i].fault, program(), deadline);
        deadline *= 4;
    } while (deadline < LONGEST && !is_said(a, e, faults[i].says));
    print_message("%s: %.1f s\n", faults[i].fault, clock_seconds() - begin);
    mpi_expect(code, 5, e, faults[i].says);
    assert_int_equal(ends_told(e), 1);
    size_t n;
    const char *words = faults[i].gave_up ? child_read(a, log, &n) : NULL;
    for (int r = 0; words && r < RANKS; r++)
        ranks += strstr(words, arena_printf(a, "rank %d gave", r)) != NULL;
    arena_free(a);
    return ranks < faults[i].gave_up ? ranks : faults[i].gave_up;
}
/* They have a second to give up, which may be too short on a busy machine: it is busy for a while,
 * not in each of ten tries. */
static void test_engine_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int most = 0;
        for (int k = 0; k < 10 && (!k || most < faults[i].gave_up); k++) {
            int ranks = one_fault(i);
            most = ranks > most ? ranks : most;
        }
        if (most < faults[i].gave_up)
            print_message("%d of %d ranks gave up their communicators\n", most, faults[i].gave_up);
        assert_true(most > 0 || !faults[i].gave_up);
    }
}
/* A rank that is killed or stopped at a call of its own, not at a moment of the clock: in each
 * phase of a run (tests/trip/falls.c). Who speaks of it says where it was; outputs are whole or not
 * there. Rank 0's guard sees the end of rank 0 and of one that had not met. */
static const struct {
    const char *fault, *says;
} phases[] = {
    {"2 start 1 kill", "rank 2 was ended by signal 9"},   /* the launch */
    {"2 connect 1 kill", "rank 2 was ended by signal 9"}, /* the meeting */
    {"2 tell 1 kill", "rank 2 has ended, last heard of where its engine starts"},
    {"1 CommInitRankConfig 1 kill", "rank 1 has ended, last heard of where its engine starts"},
    {"2 Send 5 kill", "rank 2 has ended, last heard of at step 4, all_gather of"},
    {"2 GroupEnd 3 kill", "rank 2 has ended, last heard of at step 12, reduce_scatter of"},
    {"2 GroupEnd 3 stop", "last heard of at step 12, reduce_scatter of"},
    {"0 GroupEnd 3 kill", "rank 0 has ended, last heard of at step 12, reduce_scatter of"},
    {"2 tell 30 kill", "rank 2 has ended, last heard of where it reads"}, /* what is collected */
    {"0 rename 1 kill", "rank 0 has ended, last heard of "},              /* outputs: of a plan */
    {"0 rename 3 kill", "rank 0 has ended, last heard of "},              /* that it has run */
    {"0 rename 3 stop", "rank 0 has been silent for"},
};
static void test_phases(void **state) {
    (void)state;
    Arena *all = arena_new();
    const char *like = temp_path(all, "like"), *falls = child_preload(all, "falls.so"),
               *o = temp_path(all, "o"), *e = temp_path(all, "e");
    mpi_expect(line_code(o, e,
                         "rm -rf %s; %s run plans/18*.yaml --cuda --save-values %s/values -o "
                         "%s",
                         like, program(), like, like),
               0, e, "");
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        Arena *a = arena_new();
        const char *dir = temp_path(a, "falls");
        double deadline = (strstr(phases[i].fault, "stop") ? 2 : 20) * slow_machine();
        int code;
        do {
            code = line_code(
                o, e,
                "rm -rf %s; mkdir %s; LD_PRELOAD=%s FAKE_FAULT=\"%s\" %s run plans/18*.yaml --cuda "
                "--deadline %g --save-values %s/values -o %s",
                dir, dir, falls, phases[i].fault, program(), deadline, dir, dir);
            deadline *= 4;
        } while (deadline < LONGEST && !is_said(a, e, phases[i].says));
        print_message("%s\n", phases[i].fault);
        mpi_expect(code, 5, e, phases[i].says);
        assert_int_equal(ends_told(e), 1);
        whole_files(a, dir, like);
        arena_free(a);
    }
    arena_free(all);
}
typedef enum { STOP, KILL, CTRL_C, LAUNCHER, KINDS } Kind;
static const char *const kinds[KINDS] = {"stopped", "killed", "Ctrl-C", "launcher killed"};
typedef struct {
    Arena *a;
    pid_t launcher, pid[RANKS];
    const char *out, *err, *dir;
    bool seen; /* all ranks */
} Trial;
static void read_pids(Trial *t, const char *children) {
    size_t size;
    const char *s = child_read(t->a, children, &size);
    int n = 0;
    for (char *end; s && n < RANKS; s = end) { /* in the order of ranks */
        pid_t pid = (pid_t)strtol(s, &end, 10);
        if (end == s) break;
        t->pid[n++] = pid;
    }
    t->seen = n == RANKS;
}
static Trial try_start(Arena *a, double deadline) {
    Trial t = {.a = a, .out = temp_path(a, "out"), .err = temp_path(a, "err")};
    t.dir = temp_path(a, "folder");
    const char *p = program();
    line_code("/dev/null", "/dev/null", "rm -rf %s; mkdir -p %s", t.dir, t.dir);
    const char *line = arena_printf(a,
                                    "exec %s run plans/18*.yaml --cuda --deadline %g --save-values "
                                    "%s/values -o %s/out >%s 2>%s </dev/null",
                                    p, deadline, t.dir, t.dir, t.out, t.err);
    fflush(NULL);
    t.launcher = fork();
    if (t.launcher == 0) {
        signal(SIGINT, SIG_DFL); /* a test that runs in the background was told to ignore it */
        setpgid(0, 0);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    const char *children =
        arena_printf(a, "/proc/%d/task/%d/children", (int)t.launcher, (int)t.launcher);
    siginfo_t x = {0};
    for (int i = 0; !t.seen && !x.si_pid; i++) {
        waitid(P_PID, (id_t)t.launcher, &x, WEXITED | WNOHANG | WNOWAIT);
        read_pids(&t, children);
        if (!t.seen) usleep(1000);
        if (i > 60000 * slow_machine()) fail_msg("the ranks were not started");
    }
    if (!t.seen) waitpid(t.launcher, NULL, 0);
    return t;
}
/* A whole run may be over before this process has looked, where it had no processor: once more. */
static Trial start(Arena *a, double deadline) {
    for (int again = 0; again < 20; again++) {
        Trial t = try_start(a, deadline);
        if (t.seen) return t;
        print_message("the run was over before its ranks were seen: once more\n");
    }
    fail_msg("the ranks were not started");
    return (Trial){0};
}
/* The launcher's exit code; no process is left. One that was stopped and whose launcher was killed
 * ends when it is let go on. */
static int end(const Trial *t, int stopped) {
    int status;
    waitpid(t->launcher, &status, 0);
    for (int r = 0; r < RANKS; r++) {
        for (int k = 0; k < 6000 * slow_machine() && !process_ended(t->pid[r]); k++) usleep(10000);
        if (!process_ended(t->pid[r])) fail_msg("rank %d is left (%d)", r, stopped);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
/* What the run said of its end names the rank, unless it had not met yet, or was over. */
static void judge(const Trial *t, Kind kind, int rank, int code) {
    Arena *a = t->a;
    size_t n;
    const char *err = child_read(a, t->err, &n), *name = arena_printf(a, "rank %d ", rank),
               *said = strstr(err, "[E0605]");
    bool ok = code != 0;
    /* where rank 0 is stopped before all have met those who wait cannot name it, and one of them
     * may be earlier than its guard */
    bool named = strstr(err, name) || (rank == 0 && strstr(err, "did not come together"));
    if (kind == STOP || kind == KILL) ok = code == 5 && said && named;
    if (kind == CTRL_C) ok = code == 128 + SIGINT;
    if (kind == LAUNCHER) ok = code == 128 + SIGKILL;
    if (ok && said) ok = strncmp(said, "[E0605]\n  = help: ", 18) == 0;
    if (ok && said) ok = !strstr(said + 1, "[E0605]"); /* once */
    if (!ok) print_error("%s, rank %d: code %d, %s\n", kinds[kind], rank, code, err);
    assert_true(ok);
}
static void test_random_ends(void **state) {
    (void)state;
    Arena *all = arena_new();
    const char *like = temp_path(all, "like");
    int trials = trials_of(8, "random ends"), late = 0, in_time = 0;
    double deadline = 2.0 * slow_machine(), begin = clock_seconds(), worst = 0;
    Trial first = start(all, 60);
    mpi_expect(end(&first, -1), 0, first.err, "");
    double length = clock_seconds() - begin;
    rename(first.dir, like);
    Rng r = {815};
    for (int i = 0; i < trials;) {
        Arena *a = arena_new();
        Kind kind = i % 8 < 3 ? STOP : i % 8 < 6 ? KILL : i % 8 < 7 ? CTRL_C : LAUNCHER;
        int rank = rng_below(&r, RANKS);
        Trial t = start(a, deadline);
        usleep((useconds_t)(0.8e3 * length * (double)rng_below(&r, 1000)));
        begin = clock_seconds();
        if (kind == STOP || kind == KILL) kill(t.pid[rank], kind == STOP ? SIGSTOP : SIGKILL);
        else kill(t.launcher, kind == CTRL_C ? SIGINT : SIGKILL);
        int code = end(&t, kind == STOP ? rank : -1);
        double took = clock_seconds() - begin;
        int files = whole_files(t.a, t.dir, like);
        bool over = code == 0;
        if (over) assert_true(files > 8);
        else if (deadline < LONGEST && (lost_another(a, t.err, kind <= KILL ? rank : -1) ||
                                        (rank && too_busy(a, t.err)))) {
            deadline *= 2; /* this machine is busier than that: once more */
            arena_free(a);
            continue;
        }
        if (!over) judge(&t, kind, rank, code);
        if (!over) worst = took > worst ? took : worst;
        in_time += !over && took < deadline + 2;
        late += over;
        i += !over;
        if (over) length *= 0.9; /* how long a run takes depends on what else the machine does */
        if (late > 3 * trials + 20) fail_msg("%d runs ended by themselves", late);
        arena_free(a);
    }
    print_message("%d ends, %d within --deadline %g and 2 s, the longest took %.1f s; %d more had "
                  "ended by themselves\n",
                  trials, in_time, deadline, worst, late);
    assert_true(worst < deadline + 60 * slow_machine()); /* nothing hangs, however slow it is */
    arena_free(all);
}
/* Too few open files: said at once, by one, with the true cause; and where there are enough of them
 * by the hard limit, the soft one does not matter. */
static void test_few_files(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program();
    static const int limits[] = {6, 7, 8, 9, 11, 14, 20, 40, 60};
    size_t n;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        double begin = clock_seconds();
        int code = line_code(o, e,
                             "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n %d; %s check "
                             "plans/18*.yaml --cuda --deadline %d",
                             limits[i], p, LONGEST);
        mpi_expect(code, 5, e, "(`ulimit -n`) [E0607]");
        assert_null(strstr(strstr(child_read(a, e, &n), "[E0") + 1, "[E0"));
        assert_true(clock_seconds() - begin < (double)LONGEST / 2);
    }
    mpi_expect(line_code(o, e, "ulimit -S -n 12; %s check plans/18*.yaml --cuda", p), 0, e, "");
    /* where a launcher has started them each says what it lacks */
    mpi_expect(
        line_code(o, e,
                  "ulimit -n 16; export MASTER_ADDR=127.0.0.1 MASTER_PORT=%d WORLD_SIZE=2 "
                  "LOCAL_WORLD_SIZE=2; RANK=1 %s check %s --cuda --deadline 2 & RANK=0 %s check "
                  "%s --cuda --deadline 2; code=$?; wait; exit $code",
                  free_port(), p, plan, p, plan),
        5, e, "(`ulimit -n`) [E0607]");
    arena_free(a);
}
/* A run that is held where rank 2 is inside of NCCL for the sixth time: what is done to it there
 * does not come before, and the run is not over. */
static Trial start_held(Arena *a) {
    const char *dir = temp_path(a, "hold"), *held = arena_printf(a, "%s/held", dir);
    mpi_expect(line_code("/dev/null", "/dev/null", "rm -rf %s; mkdir %s", dir, dir), 0, "/dev/null",
               "");
    setenv("FAKE_FAULT", "2 GroupEnd 6 hold", 1);
    setenv("FAKE_DIR", dir, 1);
    Trial t = start(a, LONGEST * slow_machine());
    unsetenv("FAKE_FAULT");
    unsetenv("FAKE_DIR");
    while (access(held, F_OK) != 0) {
        if (process_ended(t.launcher)) fail_msg("rank 2 did not come there");
        usleep(1000);
    }
    return t;
}
/* One that is killed while the others are inside of NCCL, which sees it first and cannot name it.
 */
static void test_killed_inside(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trial t = start_held(a);
    kill(t.pid[2], SIGKILL);
    judge(&t, KILL, 2, end(&t, -1));
    arena_free(a);
}
/* The system takes all of them at once, as where memory runs out: the launcher says so. */
static void test_all_killed(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trial t = start_held(a);
    kill(t.launcher, SIGSTOP); /* which does not see them go one by one; neither do they */
    for (int r = 0; r < RANKS; r++) kill(t.pid[r], SIGSTOP);
    for (int r = 0; r < RANKS; r++) kill(t.pid[r], SIGKILL);
    kill(t.launcher, SIGCONT);
    mpi_expect(end(&t, -1), 5, t.err, "was ended by signal 9");
    arena_free(a);
}
/* What processes have no records of is no difference to the virtual run. */
static void test_diff(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *dir = temp_path(a, "runs");
    mpi_expect(line_code(o, e,
                         "%s run %s -o %s/v && %s run %s --cuda -o %s/c && %s diff "
                         "%s/v/*.jsonl %s/c/*.jsonl",
                         program(), plan, dir, program(), plan, dir, program(), dir, dir),
               0, e, "");
    size_t n;
    assert_non_null(strstr(child_read(a, o, &n), "the records of virtual and nccl are equal"));
    arena_free(a);
}
/* One end, seen by several at other moments: a rank that is stopped when all have met, before its
 * guard hears of that, is missed by its guard, which ends it; whoever listens to it sees a process
 * that has ended. Its deadline alone is short, so both see it, in this order, however busy it is.
 */
static void test_told_once(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program(),
               *stops = temp_path(a, "stops.so"), *silent = "rank 1 has been silent for ";
    mpi_expect(line_code(o, e, "cp \"%s\" %s", child_beside(a, "engine.so"), stops), 0, e, "");
    for (int last = 0; last < 2; last++) { /* whose code it is */
        double deadline = 2.0 * slow_machine();
        int code;
        do { /* rank 0 comes in that time, and begins before rank 1 has ended */
            Str line = str_new(a);
            str_addf(&line,
                     "export MASTER_ADDR=127.0.0.1 MASTER_PORT=%d WORLD_SIZE=2 "
                     "LOCAL_WORLD_SIZE=2; ",
                     free_port());
            for (int k = 0; k < 2; k++) {
                int rank = k ? last : 1 - last;
                str_addf(&line, "RANK=%d LOCAL_RANK=%d %s%s %s check %s --cuda --deadline %g %s",
                         rank, rank, rank ? "ENGINE_STOPS_MET=1 LD_PRELOAD=" : "",
                         rank ? stops : "", p, plan, (rank ? 1 : 15) * deadline,
                         k ? "; code=$?; wait; exit $code" : "& ");
            }
            code = line_code(o, e, "%s", line.s);
            deadline *= 4;
        } while (deadline < LONGEST && (!is_said(a, e, silent) || too_busy(a, e)));
        mpi_expect(code, 5, e, silent);
        assert_int_equal(ends_told(e), 1);
    }
    arena_free(a);
}
/* A rank that nobody starts is named by rank 0, where there is one. */
static void test_absent(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e"), *p = program(),
               *by = "MASTER_ADDR=127.0.0.1 WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 MASTER_PORT";
    double deadline = 1.5 * slow_machine();
    int port, code;
    do { /* rank 1 comes in that time */
        deadline *= 2;
        port = free_port();
        code = line_code(o, e,
                         "%s=%d RANK=1 %s check plans/05*.yaml --cuda --deadline %g & %s=%d RANK=0 "
                         "%s check plans/05*.yaml --cuda --deadline %g; code=$?; wait; exit $code",
                         by, port, p, deadline, by, port, p, deadline);
    } while (deadline < LONGEST && (lost_another(a, e, 2) || too_busy(a, e)));
    mpi_expect(code, 5, e, "rank 2 has not come within ");
    assert_int_equal(ends_told(e), 1);
    /* where there is none, by one of those that wait for it, though they wait for other times; one
     * that begins when the other has ended is another run: it had no processor for so long */
    deadline = 1.5 * slow_machine();
    do {
        deadline *= 2;
        port = free_port();
        code = line_code(o, e,
                         "%s=%d RANK=1 %s check plans/05*.yaml --cuda --deadline %g & %s=%d RANK=2 "
                         "%s check plans/05*.yaml --cuda --deadline %g; code=$?; wait; exit $code",
                         by, port, p, deadline, by, port, p, deadline / 2);
    } while (deadline < LONGEST && (!too_busy(a, e) || ends_told(e) != 1));
    mpi_expect(code, 5, e, "the processes did not come together within ");
    assert_int_equal(ends_told(e), 1);
    arena_free(a);
}
/* All of them at once, as Ctrl-Z does, for longer than the deadline: nobody is lost. */
static void test_all_stopped(void **state) {
    (void)state;
    for (int at = 0; at < 2; at++) {
        Arena *a = arena_new();
        Trial t = {0};
        double deadline = 2.0 * slow_machine();
        int code;
        do {
            t = start(a, deadline);
            usleep((useconds_t)(at * 300000));
            kill(-t.launcher, SIGSTOP);
            usleep((useconds_t)(1e6 * (deadline + 1)));
            kill(-t.launcher, SIGCONT);
            code = end(&t, -1);
            deadline *= 4;
        } while (deadline < LONGEST && code && (lost_another(a, t.err, -1) || too_busy(a, t.err)));
        mpi_expect(code, 0, t.err, "");
        arena_free(a);
    }
}
/* ---- several machines ---- */
/* Two, with networks of their own (machines.sh): $1 has them, the rest are the words of each rank.
 * CUT: one has no network any more where FAKE_FAULT holds a rank; the last line says how long after
 * that the last rank has ended. */
static const char on_two[] =
    "dir=$1; shift\n"
    "for r in 0 1 2 3; do\n"
    "  node=$(sed -n \"$((r / 2 + 1))s/ .*//p\" $dir/hosts)\n"
    "  $dir/rsh $node env RANK=$r WORLD_SIZE=4 LOCAL_RANK=$((r % 2)) LOCAL_WORLD_SIZE=2 "
    "MASTER_ADDR=$(sed -n '1s/ .*//p' $dir/hosts) MASTER_PORT=29500 FAKE_DIR=$dir \"$@\" "
    ">$dir/out.$r 2>$dir/err.$r &\n"
    "  pids=\"$pids $!\"\n"
    "done\n"
    "if [ \"${CUT:-}\" ]; then\n"
    "  until [ -e \"$dir/held\" ] || ! kill -0 $!; do sleep 0.02; done\n"
    "  ip link set \"$(sed -n 's/^node=\\(sp[0-9]*\\)-.*/\\1o2/p' $dir/rsh)\" down\n"
    "  begin=$(date +%s%N)\n"
    "  rm \"$dir/held\"\n"
    "fi\n"
    "for p in $pids; do wait $p || code=$?; done\n"
    "cat $dir/err.*\n"
    "cat $dir/out.0\n"
    "echo ended $((($(date +%s%N) - ${begin:-0}) / 1000000)) ms\n"
    "exit ${code:-0}\n";
/* Who is cut off speaks for itself, on each machine one, and all end in time. False: another had no
 * processor for so long, or this process had none. */
static bool cut_off(Arena *a, const char *on, const char *words, double deadline) {
    const char *o = temp_path(a, "o"), *e = temp_path(a, "e");
    size_t n;
    int code =
        line_code(o, e, "CUT=1 FAKE_FAULT=\"0 GroupEnd 3 hold\" %s check %s --cuda --deadline %g",
                  on, words, deadline);
    mpi_expect(code, 5, o, "[E0605]");
    const char *ended = strstr(child_read(a, o, &n), "ended ");
    assert_non_null(ended);
    print_message("--deadline %g: %s", deadline, ended);
    return is_said(a, o, "rank 0 has been silent for ") && ends_told(o) == 2 &&
           atof(ended + 6) < 1e3 * (deadline + 2);
}
/* The run's records are those of the virtual one, the profile has links of both kinds; and where
 * the machines cannot hear each other any more, the ranks of each end in time. */
static void test_two_networks(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *dir = temp_path(a, "machines"), *script = temp_path(a, "two"),
               *o = temp_path(a, "o"), *e = temp_path(a, "e"), *v = temp_path(a, "virtual"),
               *on = arena_printf(a, "sh tests/machines.sh %s sh %s %s %s", dir, script, dir,
                                  program()),
               *plan18 = "$PWD/plans/18-llama3-8b-backward.yaml";
    size_t n;
    child_write(script, on_two);
    if (line_code(o, e, "sh tests/machines.sh %s true", dir) == 77) {
        print_message("network namespaces cannot be made here: two networks are not tried\n");
        arena_free(a);
        skip();
    }
    mpi_expect(line_code(v, e, "%s check %s --format jsonl", program(), plan18), 0, e, "");
    mpi_expect(line_code(o, e, "%s check %s --cuda --format jsonl", on, plan18), 0, o, "");
    assert_string_equal(child_read(a, v, &n),
                        records_as_virtual(a, arena_printf(a, "%s/out.0", dir), "nccl"));
    mpi_expect(line_code(o, e, "%s calibrate --cuda", on), 0, o, "gpus_per_node: 2");
    assert_non_null(strstr(child_read(a, o, &n), "the same between machines"));
    double deadline = 2.0 * slow_machine();
    int tries = 0;
    while (!cut_off(a, on, plan18, deadline)) {
        assert_true(++tries < 10); /* a busy machine may disturb a measurement, not ten */
        deadline += 2.0 * slow_machine();
    }
    arena_free(a);
}
int main(void) {
    setenv("SHARDPROOF_NCCL", "fake_nccl.so", 1); /* beside the plug-in that asks for it */
    setenv("FAKE_GPU", "host", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_real_library),
        cmocka_unit_test(test_cluster_scripts), cmocka_unit_test(test_killed_inside),
        cmocka_unit_test(test_few_files),       cmocka_unit_test(test_share),
        cmocka_unit_test(test_calibrate),       cmocka_unit_test(test_backend_named),
        cmocka_unit_test(test_joined),          cmocka_unit_test(test_on_gpus),
        cmocka_unit_test(test_from_gpu_to_gpu), cmocka_unit_test(test_memory_told),
        cmocka_unit_test(test_overlap),         cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_absent),          cmocka_unit_test(test_told_once),
        cmocka_unit_test(test_random_ends),     cmocka_unit_test(test_all_stopped),
        cmocka_unit_test(test_engine_sums),     cmocka_unit_test(test_shipped_plans),
        cmocka_unit_test(test_all_killed),      cmocka_unit_test(test_diff),
        cmocka_unit_test(test_engine_fails),    cmocka_unit_test(test_planted_mistakes),
        cmocka_unit_test(test_other_plans),     cmocka_unit_test(test_phases),
        cmocka_unit_test(test_two_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
