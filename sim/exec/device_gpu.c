/* Blocks in a GPU's memory. Copies and sums between blocks are the host's bit for bit: the same
 * elements in the same order; kernels have orders of their own. See device_gpu.h. Refuses to know
 * CUDA: what a GPU is, is gpu/gpu.h. */
#include "exec/device_gpu.h"
#include "exec/gpu_blocks.h"
#include "launch/table.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What a call takes until it is done. */
typedef struct {
    void **p;
    int n, cap;
} Taken;
/* Memory that was given back while other lanes may be at it. */
typedef struct {
    void *p;
    size_t bytes;
    GpuUse use;
} Spare;
/* When it was at a step: between two moments of one lane. */
typedef struct {
    void *begin, *end; /* NULL: no step of that number yet */
    int lane;
    bool any, launched; /* since the clock began; since the step did */
} Span;
typedef struct {
    Device d; /* first */
    Gpu *gpu;
    GpuBlocks blocks; /* the run's, known to it by their addresses */
    Taken told;       /* copies for the host to read */
    Spare *scratch;   /* of the GPU's memory, and what of it is kept for others */
    Spare *spare;
    int n_scratch, cap_scratch, n_spare, cap_spare;
    size_t live, most; /* bytes without what is spare: now, at most */
    GpuLanes lanes;
    Span *span; /* per step */
    int n_spans, at;
    void *zero;                /* when the clock began */
    void (*settle)(void *arg); /* NULL: there are no other lanes */
    void *settle_arg;
    int64_t *missing;     /* per op: calls on the host */
    pthread_mutex_t lock; /* the check's workers get and copy side by side; may be nested */
} OnGpu;

/* ---- memory ---- */
/* The host will wait for the GPU: whoever works on other lanes looks whether that comes to an end.
 */
static void settle(OnGpu *x) {
    if (x->settle) x->settle(x->settle_arg);
}
static void push(Spare **list, int *n, int *cap, Spare one) {
    if (*n == *cap) {
        *cap = 2 * *cap + 16;
        *list = base_realloc(*list, base_mul((size_t)*cap, sizeof **list));
    }
    (*list)[(*n)++] = one;
}
static void drop_spare(OnGpu *x) {
    settle(x);
    while (x->n_spare) x->gpu->release(x->gpu, x->spare[--x->n_spare].p);
}
/* Where there are other lanes nothing goes back to the GPU while they may work: that would wait for
 * them. It is taken again, by whoever wants as much, behind who had it. */
static void give_room(OnGpu *x, void *p, size_t bytes, GpuUse use) {
    x->live -= bytes;
    if (!x->settle) x->gpu->release(x->gpu, p);
    else push(&x->spare, &x->n_spare, &x->cap_spare, (Spare){p, bytes, use});
}
/* Which spare room of n bytes: one for which nobody has to wait, else that which was given back
 * first; -1: none. *alone: there is no other. */
static int spare_of(const OnGpu *x, size_t n, bool *alone) {
    int first = -1, like = 0;
    for (int i = 0; i < x->n_spare; i++) {
        if (x->spare[i].bytes != n) continue;
        *alone = false;
        if (gpu_lanes_free(&x->lanes, &x->spare[i].use)) return i;
        if (!like++) first = i;
    }
    *alone = like == 1;
    return first;
}
/* What comes from another rank may come while what came before is still used: rather into room of
 * its own than behind that. */
static Spare take_room(OnGpu *x, size_t n) {
    Spare got = {NULL, n, {0}};
    bool alone;
    int at = spare_of(x, n, &alone);
    if (alone && x->lanes.now) got.p = x->gpu->alloc(x->gpu, n);
    if (at >= 0 && !got.p) {
        got = x->spare[at];
        memmove(x->spare + at, x->spare + at + 1, (size_t)(--x->n_spare - at) * sizeof *x->spare);
        gpu_lanes_touch(&x->lanes, &got.use, true);
    }
    if (!got.p) got.p = x->gpu->alloc(x->gpu, n);
    if (!got.p && x->n_spare) {
        drop_spare(x);
        got.p = x->gpu->alloc(x->gpu, n);
    }
    if (!got.p)
        base_die(5,
                 "%s has no room for %zu bytes more; try a larger `shrink`, f32, or leave --cuda "
                 "out [E0608]",
                 x->gpu->name, n);
    x->live += n;
    if (x->live > x->most) x->most = x->live;
    return got;
}
static void *gpu_take(Device *d, size_t n) {
    OnGpu *x = (OnGpu *)d;
    pthread_mutex_lock(&x->lock);
    Spare room = take_room(x, n);
    void *at = gpu_blocks_add(&x->blocks, room.p, n);
    size_t off;
    gpu_blocks_find(&x->blocks, at, &off)->use = room.use;
    pthread_mutex_unlock(&x->lock);
    return at;
}
static void gpu_give(Device *d, void *p) {
    OnGpu *x = (OnGpu *)d;
    size_t off;
    pthread_mutex_lock(&x->lock);
    GpuBlock *b = gpu_blocks_find(&x->blocks, p, &off);
    if (b) {
        give_room(x, b->p, b->half ? b->bytes / 2 : b->bytes, b->use);
        gpu_blocks_drop(&x->blocks, b);
    }
    pthread_mutex_unlock(&x->lock);
}
static void *keep(Taken *t, void *p) {
    if (t->n == t->cap) {
        t->cap = 2 * t->cap + 16;
        t->p = base_realloc(t->p, base_mul((size_t)t->cap, sizeof *t->p));
    }
    return t->p[t->n++] = p;
}
static void *scratch(void *arg, int64_t n) {
    OnGpu *x = arg;
    Spare room = take_room(x, (size_t)n);
    push(&x->scratch, &x->n_scratch, &x->cap_scratch, room);
    return room.p;
}
/* n bytes of the GPU's memory for the host to read. Where there are sizes only what is asked for is
 * an index list: one of the first rows. */
static void *told(OnGpu *x, const void *p, size_t n) {
    int64_t *host = base_malloc(n + sizeof *host);
    settle(x);
    x->gpu->get(x->gpu, host, p, n);
    for (size_t i = 0; x->d.sizes_only && i < n / sizeof *host; i++) host[i] = (int64_t)i;
    return host;
}
/* Of a block all that it holds, once for all who ask until it is written again. */
static const void *tell(void *arg, const void *p, int64_t n) {
    OnGpu *x = arg;
    size_t off;
    GpuBlock *b = gpu_blocks_find(&x->blocks, p, &off);
    if (b) {
        if (!b->host) {
            gpu_lanes_touch(&x->lanes, &b->use, false);
            b->host = told(x, b->p, b->bytes);
        }
        return (char *)b->host + off;
    }
    return keep(&x->told, told(x, p, (size_t)n));
}
/* Between the two the GPU is this thread's; leave gives back what was taken since. */
typedef struct {
    int scratch, told;
} Mark;
static Mark enter(OnGpu *x) {
    pthread_mutex_lock(&x->lock);
    return (Mark){x->n_scratch, x->told.n};
}
static void leave(OnGpu *x, Mark mark) {
    while (x->n_scratch > mark.scratch) {
        Spare *one = &x->scratch[--x->n_scratch];
        gpu_lanes_touch(&x->lanes, &one->use, true);
        give_room(x, one->p, one->bytes, one->use);
    }
    while (x->told.n > mark.told) free(x->told.p[--x->told.n]);
    pthread_mutex_unlock(&x->lock);
}
static bool here(const Device *d, const Tensor *t) {
    size_t off;
    return gpu_blocks_find(&((const OnGpu *)d)->blocks, t->p, &off);
}
static size_t bytes_of(const Tensor *t, Dtype dt) {
    return (size_t)(tensor_count(t) * dtype_size(dt));
}

/* ---- clocks of lanes ---- */
static void close_span(OnGpu *x) {
    Span *s = x->at < 0 ? NULL : &x->span[x->at];
    if (s && s->any && !s->lane) s->end = x->gpu->stamp(x->gpu, s->end);
}
static void on_step(Device *d, int step) {
    OnGpu *x = (OnGpu *)d;
    if (!x->settle) return;
    close_span(x);
    x->at = step;
    if (step == DEVICE_FIRST_STEP) {
        x->zero = x->gpu->stamp(x->gpu, x->zero);
        for (int i = 0; i < x->n_spans; i++) x->span[i].any = false;
    }
    if (step < 0) return;
    if (step >= x->n_spans) {
        int n = 2 * step + 16;
        x->span = base_realloc(x->span, base_mul((size_t)n, sizeof *x->span));
        memset(x->span + x->n_spans, 0, (size_t)(n - x->n_spans) * sizeof *x->span);
        x->n_spans = n;
    }
    Span *s = &x->span[step];
    s->lane = 0;
    s->any = s->launched = false;
}
/* Before something is asked of the lane, when it waits for all that this needs. A move counts from
 * its lane's part on; the last moment counts up to the first launch. */
static void at_work(OnGpu *x, bool launched) {
    Span *s = x->at < 0 ? NULL : &x->span[x->at];
    if (!s || (s->launched && s->lane == x->lanes.now)) return;
    if (s->lane && !x->lanes.now) return;
    s->lane = x->lanes.now;
    s->begin = x->gpu->stamp(x->gpu, s->begin);
    s->any = true;
    s->launched = launched;
}
static bool on_took(Device *d, int step, double *begin, double *end) {
    OnGpu *x = (OnGpu *)d;
    const Span *s = step < x->n_spans ? &x->span[step] : NULL;
    if (!s || !s->any || !x->zero) return false;
    *begin = x->gpu->between(x->gpu, x->zero, s->begin);
    *end = x->gpu->between(x->gpu, x->zero, s->end);
    return true;
}

/* ---- where things are ---- */
/* What is read at an address, which may be in a block that lies in bf16. */
static void *read_at(OnGpu *x, void *at, bool *half) {
    size_t off;
    GpuBlock *b = gpu_blocks_find(&x->blocks, at, &off);
    if (b) gpu_lanes_touch(&x->lanes, &b->use, false);
    *half = b && b->half;
    return b ? (char *)b->p + (b->half ? off / 2 : off) : at;
}
/* n numbers one behind the other, from `half` or wide ones. */
static void line_up(OnGpu *x, int kernel, void *to, void *from, bool half, int64_t n) {
    Tensor line = {.nd = 1, .n = {n}, .s = {1}, .p = to};
    OpCall c = {.dtype = DT_F32};
    LaunchCall call = {.c = &c};
    GpuLaunch l = launch_over(&call, kernel, &line, &line);
    l.args.x[0] = (GpuTensor){from, {1}, half};
    launch_blocks(&l, n);
    if (!n) return;
    at_work(x, true);
    x->gpu->launch(x->gpu, &l);
}
/* The block is somewhere else from now on. */
static void lie_at(OnGpu *x, GpuBlock *b, const Spare *room, bool half) {
    give_room(x, b->p, b->half ? b->bytes / 2 : b->bytes, b->use);
    b->p = room->p;
    b->half = half;
    gpu_lanes_touch(&x->lanes, &b->use, true);
}
/* What is written: there the numbers are wide. */
static void *write_at(OnGpu *x, void *at) {
    size_t off;
    GpuBlock *b = gpu_blocks_find(&x->blocks, at, &off);
    if (!b) return at;
    free(b->host);
    b->host = NULL;
    gpu_lanes_touch(&x->lanes, &b->use, true);
    if (b->half) {
        Spare wide = take_room(x, b->bytes);
        line_up(x, GPU_copy, wide.p, b->p, true, (int64_t)(b->bytes / sizeof(float)));
        lie_at(x, b, &wide, false);
    }
    return (char *)b->p + off;
}
/* All of a block becomes its bf16 numbers, and they are all that is kept. */
static void halve(OnGpu *x, GpuBlock *b) {
    int64_t n = (int64_t)(b->bytes / sizeof(float));
    Spare half = take_room(x, (size_t)n * sizeof(uint16_t));
    gpu_lanes_touch(&x->lanes, &b->use, true);
    line_up(x, GPU_bf16_pack, half.p, b->p, false, n);
    lie_at(x, b, &half, true);
}

/* ---- launches ---- */
/* Before more than what is read at once the lane is waited for, which nobody would look at. */
static void put_there(OnGpu *x, void *to, const void *from, size_t n) {
    if (n > x->gpu->staged) settle(x);
    x->gpu->put(x->gpu, to, from, n);
}
static void run(void *arg, const GpuLaunch *l) {
    OnGpu *x = arg;
    GpuLaunch with = *l;
    with.args.out.p = write_at(x, with.args.out.p);
    for (int k = 0; k < GPU_IN; k++)
        with.args.x[k].p = read_at(x, with.args.x[k].p, &with.args.x[k].half);
    if (l->bytes) {
        void *table = scratch(x, (int64_t)l->bytes);
        put_there(x, table, l->table, l->bytes);
        with.args.table = table;
    }
    at_work(x, true);
    x->gpu->launch(x->gpu, &with);
}
/* A matrix of a product, in the type that the product wants: where it lies in another, its span in
 * scratch memory. */
static void as_type(OnGpu *x, GpuMatrix *m, int64_t rows, int64_t cols, int64_t batch, bool half) {
    bool is;
    m->p = read_at(x, m->p, &is);
    if (is == half) return;
    int64_t n = (rows - 1) * m->row + (cols - 1) * m->col + (batch - 1) * m->next + 1;
    void *to = scratch(x, n * (half ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float)));
    line_up(x, half ? GPU_bf16_pack : GPU_copy, to, m->p, is, n);
    m->p = to;
}
static void gemm(void *arg, const GpuGemm *g) {
    OnGpu *x = arg;
    GpuGemm with = *g;
    with.c.p = write_at(x, with.c.p);
    as_type(x, &with.a, g->m, g->k, g->batch, g->bf16);
    as_type(x, &with.b, g->k, g->n, g->batch, g->bf16);
    at_work(x, true);
    x->gpu->gemm(x->gpu, &with);
}
static LaunchTo to_gpu(OnGpu *x) { return (LaunchTo){run, gemm, scratch, tell, x}; }
/* One kernel over the elements of two tensors of the same sizes. Whole numbers travel as doubles
 * do: nothing looks at their bits. */
static void map(OnGpu *x, int kernel, const Tensor *to, const Tensor *from, Dtype dt, double v) {
    OpCall c = {.dtype = dt == DT_F32 ? DT_F32 : DT_F64};
    LaunchTo gpu = to_gpu(x);
    LaunchCall call = {.c = &c, .to = &gpu};
    GpuLaunch l = launch_over(&call, kernel, to, to);
    if (from) launch_operand(&l, 0, from, NULL, NULL);
    l.args.a[0] = v;
    launch_map(&call, &l);
}

/* ---- between the host and the GPU ---- */
static Tensor packed_like(const Tensor *t, void *p) {
    Tensor x = *t;
    tensor_pack(&x);
    x.p = p;
    return x;
}
/* Room of the host for as many; none where there are sizes only. */
static Tensor on_the_host(const OnGpu *x, const Tensor *t, Dtype dt) {
    return packed_like(t, x->d.sizes_only ? NULL : base_malloc(bytes_of(t, dt) + 1));
}
static Tensor on_get(Device *d, const Tensor *t, Dtype dt) {
    OnGpu *x = (OnGpu *)d;
    Tensor host = on_the_host(x, t, dt), from = *t;
    if (!tensor_count(t)) return host;
    Mark mark = enter(x);
    bool half, packed = tensor_is_packed(t);
    from.p = read_at(x, t->p, &half);
    if (dt == DT_I64 && packed && host.p) { /* a list: the calls of its rows ask for it too */
        memcpy(host.p, tell(x, t->p, (int64_t)bytes_of(t, dt)), bytes_of(t, dt));
        leave(x, mark);
        return host;
    }
    if (!packed || half) {
        from = packed_like(t, scratch(x, (int64_t)bytes_of(t, dt)));
        map(x, GPU_copy, &from, t, dt, 0);
    }
    settle(x);
    x->gpu->get(x->gpu, host.p, from.p, bytes_of(t, dt));
    leave(x, mark);
    return host;
}
static void on_done(Device *d, Tensor *host) {
    (void)d;
    free(host->p);
}
/* A packed copy in the GPU's scratch memory of what the host has. */
static Tensor upload(OnGpu *x, const Tensor *host, Dtype dt) {
    Tensor packed = *host, there = packed_like(host, scratch(x, (int64_t)bytes_of(host, dt) + 1));
    if (!tensor_is_packed(host)) {
        Region box = region_plain(host);
        packed = on_the_host(x, host, dt);
        if (packed.p) region_copy((Block){&box, &packed}, (Block){&box, host}, dt, COMBINE_COPY);
    }
    if (tensor_count(host)) put_there(x, there.p, packed.p, bytes_of(host, dt));
    if (packed.p != host->p) free(packed.p);
    return there;
}
static void on_put(Device *d, const Tensor *t, const Tensor *host, Dtype dt) {
    OnGpu *x = (OnGpu *)d;
    if (!tensor_count(t)) return;
    Mark mark = enter(x);
    if (tensor_is_packed(t) && tensor_is_packed(host))
        put_there(x, write_at(x, t->p), host->p, bytes_of(t, dt));
    else {
        Tensor there = upload(x, host, dt);
        map(x, GPU_copy, t, &there, dt, 0);
    }
    leave(x, mark);
}

/* ---- copies ---- */
/* Do the offsets go up by one number? That is the stride. */
static bool steady(const int64_t *at, int64_t n, int64_t *stride) {
    *stride = n > 1 ? at[1] - at[0] : 0;
    for (int64_t i = 1; i < n; i++)
        if (at[i] - at[i - 1] != *stride) return false;
    return true;
}
/* Both in the GPU's memory, where each dim is one run: a copy between two views. */
static bool copy_views(OnGpu *x, const RegionPairs *p, Block dst, Block src, Dtype dt, int kernel) {
    Tensor to = {.nd = p->nd}, from = {.nd = p->nd};
    int64_t a = 0, b = 0;
    for (int d = 0; d < p->nd; d++) {
        to.n[d] = from.n[d] = p->n[d];
        if (!steady(p->to[d], p->n[d], &to.s[d]) || !steady(p->from[d], p->n[d], &from.s[d]))
            return false;
        a += p->to[d][0];
        b += p->from[d][0];
    }
    to.p = (char *)dst.t->p + a * dtype_size(dt);
    from.p = (char *)src.t->p + b * dtype_size(dt);
    map(x, kernel, &to, &from, dt, 0);
    return true;
}
/* By lists of offsets, which travel to the GPU. */
static void copy_lists(OnGpu *x, const RegionPairs *p, Block dst, Block src, Dtype dt, int how) {
    int64_t all = 0, elements = 1, at = 0;
    for (int d = 0; d < p->nd; d++) all += 2 * p->n[d], elements *= p->n[d];
    int64_t *table = base_malloc(base_mul((size_t)all + 1, sizeof *table));
    GpuLaunch l = {.kernel = GPU_copy_table, .f64 = dt != DT_F32, .threads = GPU_THREADS};
    l.args.nd = p->nd;
    l.args.out.p = dst.t->p;
    l.args.x[0].p = src.t->p;
    l.args.k[0] = how;
    for (int d = 0; d < p->nd; d++) {
        size_t bytes = (size_t)p->n[d] * sizeof *table;
        l.args.n[d] = p->n[d];
        memcpy(table + at, p->to[d], bytes);
        memcpy(table + at + p->n[d], p->from[d], bytes);
        at += 2 * p->n[d];
    }
    l.table = table;
    l.bytes = (size_t)all * sizeof *table;
    LaunchTo gpu = to_gpu(x);
    launch_each(&(LaunchCall){.to = &gpu}, &l, elements);
    free(table);
}
/* On the host, where nothing else does it: whole numbers that are added, blocks without their
 * layout's sizes. */
static void copy_on_host(Device *d, Block dst, Block src, Dtype dt, Combine how) {
    Tensor to = on_get(d, dst.t, dt), from = on_get(d, src.t, dt);
    if (to.p) region_copy((Block){dst.has, &to}, (Block){src.has, &from}, dt, how);
    on_put(d, dst.t, &to, dt);
    free(to.p);
    free(from.p);
}
static void copy_here(OnGpu *x, Block dst, Block src, Dtype dt, Combine how) {
    Arena *tmp = arena_new();
    RegionPairs p;
    int way = how == COMBINE_SUM ? 1 : how == COMBINE_MAX ? 2 : 0;
    static const int kernel[] = {GPU_copy, GPU_sum_into, GPU_max_into};
    bool can = (dt != DT_I64 || !way) && region_pairs(dst, src, tmp, &p);
    int64_t elements = 1;
    for (int d = 0; can && d < p.nd; d++) elements *= p.n[d];
    if (!can) copy_on_host(&x->d, dst, src, dt, how);
    else if (elements && !copy_views(x, &p, dst, src, dt, kernel[way]))
        copy_lists(x, &p, dst, src, dt, way);
    arena_free(tmp);
}
static void on_copy(Device *d, Block dst, Block src, Dtype dt, Combine how) {
    OnGpu *x = (OnGpu *)d;
    if (!tensor_count(dst.t) || !tensor_count(src.t)) return;
    if (here(d, dst.t)) {
        Mark mark = enter(x);
        Tensor there = here(d, src.t) ? *src.t : upload(x, src.t, dt);
        copy_here(x, dst, (Block){src.has, &there}, dt, how);
        leave(x, mark);
        return;
    }
    Tensor host = here(d, src.t) ? on_get(d, src.t, dt) : *src.t;
    if (!d->sizes_only) region_copy(dst, (Block){src.has, &host}, dt, how);
    if (host.p != src.t->p) free(host.p);
}
static void on_fill(Device *d, Tensor *t, Dtype dt, double v) {
    if (dt != DT_I64) {
        if (tensor_count(t)) map((OnGpu *)d, GPU_fill, t, NULL, dt, v);
        return;
    }
    Tensor host = on_the_host((OnGpu *)d, t, dt);
    for (int64_t i = 0; host.p && i < tensor_count(t); i++) ((int64_t *)host.p)[i] = (int64_t)v;
    on_put(d, t, &host, dt);
    free(host.p);
}
static void on_scale(Device *d, Tensor *t, Dtype dt, double v) {
    if (dt != DT_I64 && tensor_count(t))
        map((OnGpu *)d, GPU_times, t, t, dt, dt == DT_F32 ? (double)(float)v : v);
}
/* A whole block lies in bf16 from here on; of a part of one the numbers are rounded. */
static void on_round(Device *d, const Tensor *t) {
    OnGpu *x = (OnGpu *)d;
    size_t off;
    if (!tensor_count(t)) return;
    Mark mark = enter(x);
    GpuBlock *b = gpu_blocks_find(&x->blocks, t->p, &off);
    bool whole = b && tensor_is_packed(t) && bytes_of(t, DT_F32) == b->bytes;
    if (!b || !whole) map(x, GPU_bf16, t, t, DT_F32, 0);
    else if (!b->half) halve(x, b);
    leave(x, mark);
}

/* ---- ops ---- */
static void on_host(Device *d, const OpCall *c, DeviceKernel what) {
    OpCall host = device_fetch(d, c);
    Dtype dt = c->op->rows ? DT_I64 : c->dtype; /* lists are made of whole numbers */
    host.out = on_the_host((OnGpu *)d, &c->out, dt);
    if (host.out.p) device_plain()->call(device_plain(), &host, 1, what, NULL);
    on_put(d, &c->out, &host.out, dt);
    free(host.out.p);
    device_fetched(d, &host);
}
static void on_call(Device *d, OpCall *c, int64_t n, DeviceKernel what, Pool *pool) {
    OnGpu *x = (OnGpu *)d;
    LaunchTo gpu = to_gpu(x);
    (void)pool;
    for (int64_t i = 0; i < n; i++) {
        Mark mark = enter(x);
        bool done = !device_of_integers(what) && table_launch(&c[i], what == DEVICE_ADJOINT, &gpu);
        if (x->settle) gpu_lanes_pause(&x->lanes);
        leave(x, mark);
        if (done) continue;
        for (int o = 0; o < n_ops && !device_of_integers(what); o++)
            x->missing[o] += op_list[o] == c[i].op;
        on_host(d, &c[i], what);
    }
}
/* Bounds and loops over elements are the check's, which is the host's. */
static void on_bound(Device *d, const OpBound *b) {
    (void)d;
    device_plain()->bound(device_plain(), b);
}
static void on_pieces(Device *d, Pool *pool, int64_t n,
                      void (*fn)(void *arg, int64_t lo, int64_t hi), void *arg) {
    (void)d;
    device_plain()->pieces(device_plain(), pool, n, fn, arg);
}
static double on_busy(Device *d) {
    OnGpu *x = (OnGpu *)d;
    Mark mark = enter(x);
    settle(x);
    double seconds = x->gpu->busy(x->gpu);
    leave(x, mark);
    return seconds;
}

/* ---- moves between processes ---- */
static void *on_lane(Device *d, int lane) {
    OnGpu *x = (OnGpu *)d;
    Mark mark = enter(x);
    Span *s = x->at < 0 ? NULL : &x->span[x->at];
    if (lane) gpu_lanes_begin(&x->lanes, lane);
    else {
        if (s && s->lane == x->lanes.now) s->end = x->gpu->stamp(x->gpu, s->end);
        gpu_lanes_end(&x->lanes);
    }
    void *stream = x->gpu->stream(x->gpu);
    leave(x, mark);
    return stream;
}
static void *on_reach(Device *d, const Tensor *t, bool half, bool writes) {
    OnGpu *x = (OnGpu *)d;
    Mark mark = enter(x);
    size_t off;
    bool is = half;
    GpuBlock *b = gpu_blocks_find(&x->blocks, t->p, &off);
    assert(b && tensor_is_packed(t));
    if (writes && half && !b->half) { /* whatever it holds is overwritten */
        Spare room = take_room(x, b->bytes / 2);
        gpu_lanes_touch(&x->lanes, &b->use, true);
        lie_at(x, b, &room, true);
    }
    void *at = writes && !half ? write_at(x, t->p) : read_at(x, t->p, &is);
    if (writes) gpu_lanes_touch(&x->lanes, &b->use, true);
    at_work(x, false);
    leave(x, mark);
    return is == half ? at : NULL;
}
static void on_settles(Device *d, void (*fn)(void *arg), void *arg) {
    OnGpu *x = (OnGpu *)d;
    drop_spare(x);
    x->settle = fn;
    x->settle_arg = arg;
    x->at = DEVICE_NO_STEP;
}
static DeviceUse on_use(const Device *d) { return (DeviceUse){((const OnGpu *)d)->most, 0, 0}; }
static void on_end(Device *d) {
    OnGpu *x = (OnGpu *)d;
    drop_spare(x);
    x->gpu->close(x->gpu);
    pthread_mutex_destroy(&x->lock);
    gpu_blocks_free(&x->blocks);
    free(x->scratch);
    free(x->spare);
    free(x->span);
    free(x->told.p);
    free(x->missing);
    free(x);
}
Device *device_gpu(Gpu *gpu) {
    OnGpu *x = base_malloc(sizeof *x);
    *x = (OnGpu){.d = {.backend = "cuda",
                       .name = gpu->name,
                       .room = (int64_t)gpu->memory,
                       .own_order = true,
                       .halves = true,
                       .alloc = gpu_take,
                       .release = gpu_give,
                       .get = on_get,
                       .put = on_put,
                       .done = on_done,
                       .copy = on_copy,
                       .fill = on_fill,
                       .scale = on_scale,
                       .round = on_round,
                       .call = on_call,
                       .bound = on_bound,
                       .pieces = on_pieces,
                       .busy = on_busy,
                       .lane = gpu->lane ? on_lane : NULL,
                       .reach = on_reach,
                       .settles = on_settles,
                       .step = gpu->stamp ? on_step : NULL,
                       .took = on_took,
                       .use = on_use,
                       .end = on_end},
                 .gpu = gpu,
                 .at = DEVICE_NO_STEP,
                 .lanes = {.gpu = gpu}};
    pthread_mutexattr_t nested;
    pthread_mutexattr_init(&nested);
    pthread_mutexattr_settype(&nested, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&x->lock, &nested);
    pthread_mutexattr_destroy(&nested);
    x->missing = base_malloc(base_mul((size_t)n_ops, sizeof *x->missing));
    for (int o = 0; o < n_ops; o++) x->missing[o] = 0;
    return &x->d;
}
const char *device_gpu_missing(Device *d, Arena *arena) {
    OnGpu *x = (OnGpu *)d;
    const char *text = NULL;
    for (int o = 0; o < n_ops; o++)
        if (x->missing[o])
            text = arena_printf(arena, "%s%s%s (%lld)", text ? text : "", text ? ", " : "",
                                op_list[o]->name, (long long)x->missing[o]);
    memset(x->missing, 0, (size_t)n_ops * sizeof *x->missing);
    return text;
}
