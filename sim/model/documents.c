/* Documents packed in one row: `data.documents` has their lengths, the same for each row of the
 * batch. What a document computes is what it would alone: no other sees it, and positions (those
 * that turn, chunks and windows of attention, steps of temperature) count from its first token.
 * Refuses to touch tokens and labels: which labels count at a document's end is theirs to say. */
#include "model/build.h"

/* How many tokens they have together; -1: more than can be counted. */
static int64_t tokens_of(const Plan *p) {
    int64_t sum = 0;
    for (int i = 0; i < p->n_documents; i++) {
        if (p->documents[i] > INT64_MAX - sum) return -1;
        sum += p->documents[i];
    }
    return sum;
}
static bool fill_a_row(Arena *a, Diags *d, const Plan *p, const ModelDims *m) {
    int64_t sum = tokens_of(p);
    if (m->mlp)
        diag_error(d, "E0215", p->documents_loc, "leave it out",
                   "`documents` are rows of tokens, and an mlp has none");
    else if (sum < 0)
        diag_error(d, "E0302", p->documents_loc, "documents: [5, 7, 12]",
                   "the documents have more tokens together than can be counted");
    else if (sum != m->S)
        diag_error(d, "E0307", p->documents_loc,
                   sum < m->S
                       ? arena_printf(a, "one document more, of %lld", (long long)(m->S - sum))
                       : arena_printf(a, "documents of %lld tokens together", (long long)m->S),
                   "the documents have %lld tokens together, a row has %lld", (long long)sum,
                   (long long)m->S);
    return !m->mlp && sum == m->S;
}

bool documents_lay(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    if (!p->n_documents) return true;
    if (m->S <= 0) m->S = tokens_of(p);
    if (!fill_a_row(a, d, p, m)) return false;
    AttentionDocuments *x = ARENA_NEW(a, AttentionDocuments);
    AttentionRun *run = ARENA_ARRAY(a, AttentionRun, p->n_documents);
    int64_t at = 0;
    for (int i = 0; i < p->n_documents; at += p->documents[i++])
        run[i] = (AttentionRun){at, at + p->documents[i]};
    *x = (AttentionDocuments){p->n_documents, run};
    m->documents = x;
    return true;
}
