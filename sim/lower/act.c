/* What is done in place of what is declared. See act.h. */
#include "lower/act.h"

Act act_declared(const Move *m) {
    Act a = {.kind = layout_eq(&m->from, &m->to) ? MOVE_ID : m->kind,
             .axes = m->axes,
             .dim = -1,
             .times = 1,
             .scale = 1};
    if (move_reduces(a.kind)) a.combine = a.kind == MOVE_ALL_REDUCE_MAX ? COMBINE_MAX : COMBINE_SUM;
    return a;
}
Move act_move(const Move *declared, const Act *a) {
    Move v = *declared;
    v.axes = a->axes;
    v.kind = a->kind;
    for (int i = 0; a->dim >= 0 && i < v.axes.n; i++) {
        layout_recut(&v.from, v.axes.a[i], a->dim);
        layout_recut(&v.to, v.axes.a[i], a->dim);
    }
    return v;
}
bool act_elsewhere(const Move *declared, const Act *a) {
    return !mesh_same_axes(&a->axes, &declared->axes);
}
