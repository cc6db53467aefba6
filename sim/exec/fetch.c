/* What a call reads, brought to where the host can read it, or a device. See device.h. Refuses to
 * know which device it is. */
#include "exec/device.h"

/* Calls fn for each tensor that a call reads, with its dtype. */
static void each_read(OpCall *c, void (*fn)(Device *d, Tensor *t, Dtype dt), Device *d) {
    for (int i = 0; i < c->rule->nin; i++)
        if (c->in[i].p) fn(d, &c->in[i], c->in_int >> i & 1 ? DT_I64 : c->dtype);
    if (c->cot.p) fn(d, &c->cot, c->dtype);
    if (c->fout.p) fn(d, &c->fout, c->dtype);
    if (c->ids.p) fn(d, &c->ids, DT_I64);
}
static void fetch_one(Device *d, Tensor *t, Dtype dt) { *t = d->get(d, t, dt); }
static void give_one(Device *d, Tensor *t, Dtype dt) {
    (void)dt;
    d->done(d, t);
}
OpCall device_fetch(Device *d, const OpCall *c) {
    OpCall host = *c;
    each_read(&host, fetch_one, d);
    return host;
}
void device_fetched(Device *d, OpCall *host) { each_read(host, give_one, d); }

static void lend_one(Device *d, Tensor *t, Dtype dt) {
    Tensor there = *t;
    tensor_pack(&there);
    there.p = device_array(d, tensor_count(t), 8);
    if (tensor_count(t)) d->put(d, &there, t, dt);
    *t = there;
}
static void take_back(Device *d, Tensor *t, Dtype dt) {
    (void)dt;
    d->release(d, t->p);
}
void device_lend(Device *d, Device *at, const OpCall *c, DeviceKernel what) {
    OpCall host = device_fetch(at, c), there = host;
    Region all = region_plain(&c->out);
    each_read(&there, lend_one, d);
    tensor_pack(&there.out);
    there.out.p = device_array(d, tensor_count(&c->out), 8);
    d->call(d, &there, 1, what, NULL);
    Tensor made = d->get(d, &there.out, c->dtype);
    region_copy((Block){&all, &c->out}, (Block){&all, &made}, c->dtype, COMBINE_COPY);
    d->done(d, &made);
    d->release(d, there.out.p);
    each_read(&there, take_back, d);
    device_fetched(at, &host);
}
