/* What a call reads, brought to where the host can read it. See device.h. Refuses to know which
 * device it is. */
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
