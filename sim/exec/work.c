/* Prices of operations and bytes, and who counts them. See work.h. Measured with 64 to 512 tokens
 * on two cores with AVX-512; elsewhere the ratios are much the same. */
#include "exec/work.h"

/* Nanoseconds of an operation of a kernel by what it computes with, ... */
static const double price_of[DEVICE_KINDS] = {
    [DEVICE_F32] = 0.005, [DEVICE_F64] = 0.01, [DEVICE_INTEGER] = 0.27};
/* ... of a byte: of a source that is made, of what a step or a check makes, of what a move or a sum
 * reads, of one at level 3, which makes residues of all; of an element that is compared with the
 * unsharded run; ... */
static const double price_source = 1, price_made = 0.25, price_read = 0.125, price_residue = 4,
                    price_compared = 11;
/* ... of a step, and of each rank in it: small ones cost their bookkeeping. */
static const double price_step = 20e3, price_rank = 500;

Work *work_new(Arena *a, const Program *p) {
    Work *w = ARENA_NEW(a, Work);
    *w = (Work){.load = ARENA_ARRAY(a, double, p->nv + 1),
                .load_check = ARENA_ARRAY(a, double, p->nv + 1),
                .step = ARENA_ARRAY(a, double, p->ns + 1),
                .check = ARENA_ARRAY(a, double, p->ns + 1)};
    return w;
}
int64_t work_turns(int64_t n) { return n < WORK_TURNS ? n : WORK_TURNS; }

static DeviceWork between(DeviceWork from, DeviceWork to) {
    for (int k = 0; k < DEVICE_KINDS; k++) to.ops[k] -= from.ops[k];
    to.bytes -= from.bytes;
    return to;
}
static double price(const DeviceWork *w, double byte) {
    double ns = w->bytes * byte;
    for (int k = 0; k < DEVICE_KINDS; k++) ns += w->ops[k] * price_of[k];
    return ns;
}
double work_exact(DeviceWork from, DeviceWork to) {
    DeviceWork w = between(from, to);
    return price(&w, price_residue);
}
double work_compare(int64_t elements) { return price_compared * (double)elements; }

/* ---- the dry walk ---- */
static bool is_dry(const WorkEye *x) { return x->e->dev->sizes_only; }
/* Since the last event. */
static DeviceWork done(WorkEye *x) {
    DeviceWork now = device_work(x->e->dev), w = between(x->before, now);
    x->before = now;
    return w;
}
static void write_down(WorkEye *x, double *slot, double ns, double times) {
    *slot = ns;
    x->work->total += ns * times;
}
/* The last of the turns that are walked stands for all that follow. */
static double stands_for(int64_t turn, int64_t n) {
    return (double)(turn + 1 < work_turns(n) ? 1 : n - turn);
}
static double step_times(const WorkEye *x, const Step *s) {
    return x->turns_iteration * (lives_deferred(x->e->p, s) ? 1 : x->turns_part);
}
/* Bytes of the blocks that a move or a sum reads; nothing where all it makes are views. */
static double bytes_read(const WorkEye *x, const Step *s, const DeviceWork *w) {
    double n = 0;
    bool kernel = s->kind == ST_OP || s->kind == ST_ADJOINT;
    for (int i = 0; i < s->nin && w->bytes > 0 && !kernel; i++) {
        const Store *in = exec_store(x->e, s->in[i]);
        for (int k = 0; k < in->n; k++)
            n += (double)(tensor_count(&in->l[k].t) * dtype_size(exec_dtype(x->e, s->in[i])));
    }
    return n;
}
static double price_of_step(const WorkEye *x, const Step *s, const DeviceWork *w) {
    return price(w, price_made) + price_read * bytes_read(x, s, w);
}

/* ---- observers ---- */
static void tell(const WorkEye *x, double ns) { progress_add(x->progress, ns); }
static void eye_begun(void *arg, WalkInstance at) {
    WorkEye *x = arg;
    x->turns_iteration = stands_for(at.iteration, x->iterations);
    /* a schedule is walked to its end */
    x->turns_part = x->e->p->assign->stages ? 1 : stands_for(at.part, x->parts);
}
/* A load, or its check: what it takes stands at `takes`. */
static void loaded(WorkEye *x, double *takes) {
    if (!is_dry(x)) {
        tell(x, *takes);
        return;
    }
    DeviceWork w = done(x);
    write_down(x, takes, price(&w, price_source), x->turns_iteration * x->turns_part);
}
static void first_loaded(void *arg, int val) {
    WorkEye *x = arg;
    loaded(x, &x->work->load[val]);
}
static void last_loaded(void *arg, int val) {
    WorkEye *x = arg;
    loaded(x, &x->work->load_check[val]);
}
static void first_stepped(void *arg, const Step *s) {
    WorkEye *x = arg;
    if (!is_dry(x)) {
        tell(x, x->work->step[s->id]);
        return;
    }
    DeviceWork w = done(x);
    double ns = price_step + price_rank * (double)x->e->p->mesh->nranks + price_of_step(x, s, &w);
    write_down(x, &x->work->step[s->id], ns, step_times(x, s));
    x->work->flops += (w.ops[DEVICE_F32] + w.ops[DEVICE_F64]) * step_times(x, s);
}
static void last_settled(void *arg, const Step *s) {
    WorkEye *x = arg;
    if (!is_dry(x)) {
        tell(x, x->work->check[s->id]);
        return;
    }
    DeviceWork w = done(x);
    write_down(x, &x->work->check[s->id], price_of_step(x, s, &w), step_times(x, s));
}
void work_observers(WorkEye *x, Observer *first, Observer *last) {
    if (is_dry(x)) x->before = device_work(x->e->dev);
    *first =
        (Observer){.arg = x, .begun = eye_begun, .loaded = first_loaded, .stepped = first_stepped};
    *last = (Observer){.arg = x, .loaded = last_loaded, .settled = last_settled};
}
