/* The table of collectives. See collectives.h. */
#include "trace/collectives.h"
#include <string.h>

static const CollWord rows[] = {
    {"all_gather", "AllGather", "AG", "×", 1, false, false, NULL, NULL},
    {"reduce_scatter", "ReduceScatter", "RS", "÷", 1, false, false, NULL, NULL},
    {"all_reduce", "AllReduce", "AR", "", 2, false, false, NULL, NULL},
    {"all_to_all", "AllToAll", "A2A", "", 1, false, true, NULL, NULL},
    {"shift", "Shift", "Shift", "", 0, true, false, NULL, NULL},
    {"broadcast", "Broadcast", "BC", "", 0, false, false, NULL, NULL},
    {"send", "Send", "Send", "", 0, false, false, "recv",
     "the rank it was for goes on with an empty buffer"},
    {"recv", "Receive", "Receive", "", 0, false, false, NULL, NULL},
    {NULL, NULL, NULL, NULL, 0, false, false, NULL, NULL}};

const CollWord *coll_table(void) { return rows; }
const CollWord *coll_word(const char *op) {
    for (const CollWord *w = rows; op && w->op; w++)
        if (!strcmp(op, w->op)) return w;
    return NULL;
}
bool coll_is_pairs(const char *op) {
    const CollWord *w = coll_word(op);
    return w && w->pairs;
}
