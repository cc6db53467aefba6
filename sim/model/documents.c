/* Documents packed in one row: `data.documents` has their lengths, of every row of the batch the
 * same or row by row. What a document computes is what it would alone: no other sees it, and
 * positions (those that turn, chunks and windows of attention, steps of temperature) count from its
 * first token. Refuses to touch tokens and labels: which labels count at a document's end is theirs
 * to say. */
#include "model/build.h"
#include <string.h>

/* How many tokens they have together; -1: more than can be counted. */
static int64_t tokens_of(const struct PlanPacking *row) {
    int64_t sum = 0;
    for (int i = 0; i < row->n; i++) {
        if (row->length[i] > INT64_MAX - sum) return -1;
        sum += row->length[i];
    }
    return sum;
}
static bool same_in_all(const Plan *p) {
    const struct PlanPacking *first = &p->documents[0];
    for (int b = 1; b < p->n_documents; b++) {
        const struct PlanPacking *row = &p->documents[b];
        if (row->n != first->n ||
            memcmp(row->length, first->length, (size_t)row->n * sizeof *row->length) != 0)
            return false;
    }
    return true;
}
static bool fill_a_row(Arena *a, Diags *d, const Plan *p, const ModelDims *m, int b) {
    int64_t sum = tokens_of(&p->documents[b]);
    const char *row =
        p->documents_by_row ? arena_printf(a, "the documents of row %d", b) : "the documents";
    if (sum < 0)
        diag_error(d, "E0302", p->documents_loc, "documents: [5, 7, 12]",
                   "%s have more tokens together than can be counted", row);
    else if (sum != m->S)
        diag_error(
            d, "E0307", p->documents_loc,
            sum < m->S ? arena_printf(a, "one document more, of %lld", (long long)(m->S - sum))
                       : arena_printf(a, "documents of %lld tokens together", (long long)m->S),
            "%s have %lld tokens together, a row has %lld", row, (long long)sum, (long long)m->S);
    return sum >= 0 && sum == m->S;
}
/* Are there as many lists as rows, and does nothing speak against rows that differ? */
static bool rows_fit(Arena *a, Diags *d, const Plan *p, const ModelDims *m) {
    int64_t B = p->whole_batch ? p->whole_batch : m->B;
    if (m->mlp)
        diag_error(d, "E0215", p->documents_loc, "leave it out",
                   "`documents` are rows of tokens, and an mlp has none");
    else if (p->documents_by_row && p->n_documents != B)
        diag_error(
            d, "E0307", p->documents_loc,
            arena_printf(a, "a list for each of %lld rows, or one list for all", (long long)B),
            "the documents of %d row%s, and the batch has %lld", p->n_documents,
            p->n_documents > 1 ? "s" : "", (long long)B);
    else return true;
    return false;
}

bool documents_lay(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    if (!p->n_documents) return true;
    for (int b = 0; b < p->n_documents && m->S <= 0; b++) /* the first row that can be counted */
        m->S = tokens_of(&p->documents[b]);
    if (!rows_fit(a, d, p, m)) return false;
    int rows = same_in_all(p) ? 1 : p->n_documents;
    AttentionDocuments *row = ARENA_ARRAY(a, AttentionDocuments, rows);
    AttentionPacking *x = ARENA_NEW(a, AttentionPacking);
    bool ok = true;
    for (int b = 0; b < rows; b++) {
        const struct PlanPacking *from = &p->documents[b];
        if (!fill_a_row(a, d, p, m, b)) ok = false;
        AttentionRun *run = ARENA_ARRAY(a, AttentionRun, from->n);
        int64_t at = 0;
        for (int i = 0; ok && i < from->n; at += from->length[i++])
            run[i] = (AttentionRun){at, at + from->length[i]};
        row[b] = (AttentionDocuments){from->n, run};
    }
    *x = (AttentionPacking){rows, row};
    m->documents = x;
    return ok;
}
