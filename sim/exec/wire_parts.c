/* Which elements go from rank to rank in a move, and as what. See wire_parts.h. */
#include "exec/wire_parts.h"
#include "exec/narrow.h"
#include "exec/store.h"

bool wire_joins(const WireMove *m) {
    const Act *a = &m->x.act;
    return (a->times || a->alone) && move_source(a->kind) != FROM_OWN;
}
bool wire_hands_in(const WireMove *m, int64_t rank, const Piece *one) {
    return exec_holds(m->e, m->s->in[0], one->rank) && !pieces_absent(&m->x, rank, one);
}
const AxisList *wire_peers(const WireMove *m) {
    return move_relocates(m->x.act.kind) ? &m->x.axes : &m->x.act.axes;
}
Region wire_most(const WireMove *m, const Piece *one, int64_t rank, Arena *tmp) {
    Region at = pieces_from(&m->x, one, tmp), to = pieces_to(&m->x, rank, tmp);
    return region_meet(&to, &at, tmp);
}
bool wire_narrow(const WireMove *m) {
    bool held = m->e->narrow && m->e->narrow[m->s->in[0]],
         rounded = !move_reduces(m->x.act.kind) && narrow_rounds(m->e, m->s);
    return (held || rounded) && m->e->modulus == 0;
}
int64_t wire_element(const WireMove *m) { return dtype_size(wire_narrow(m) ? DT_BF16 : m->dt); }
int64_t wire_count(const Region *r) {
    Tensor t = region_packed(r);
    return tensor_count(&t);
}
