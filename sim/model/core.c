/* The graph of `kind: attention`: attention by itself, as records of attention kernels have it.
 * Values: inputs q [B, S, H, d], k and v [B, S, K, d], and attn_context [B, S, H, d]; the module is
 * `core`. Nothing is rotated: what positions say is the mask. */
#include "model/build.h"
#include <string.h>

void build_attention(Build *b) {
    NodeRow row = {"attn_context",   "attention",         "btkgx!,bs!kx!,bs!kx!->btkgx",
                   {"q", "k", "v"},  "b t kg x",          "core",
                   "core_attention", .part = "attention", .at = AT_SCALE};
    bool diff = b->p->pass != PASS_FORWARD || b->p->input_gradient;
    const char *const shape[] = {"b t kg x", "b t k x", "b t k x"};
    for (int i = 0; i < 3 && !b->failed; i++)
        build_tensor(b, row.in[i], KIND_INPUT, shape[i], diff, false);
    if (b->m->unmasked) row.label = "attention";
    if (!b->failed) b->x = build_in_parts(b, &row, (RowPlace){"", "", 0, -1, NULL});
}
