/* Reads rule strings and derives the rule of an adjoint. */
#include "ops/rule.h"
#include <assert.h>
#include <string.h>

bool rule_parse(const char *text, Rule *r, const char **error, int *at) {
    assert(text && error && at);
    memset(r, 0, sizeof *r);
    r->text = text;
    char(*dst)[LAYOUT_MAX_DIMS + 1] = &r->in[0];
    int *n = &r->nl[0], part = 0;
    bool bracket = false, out = false;
    const char *p = text;
#define FAIL(msg) return *error = (msg), *at = (int)(p - text), false
    r->nin = 1;
    for (; *p; p++) {
        if (*p >= 'a' && *p <= 'z') {
            if (*n == LAYOUT_MAX_DIMS) FAIL("too many letters in one operand");
            if (memchr(*dst, *p, (size_t)*n)) FAIL("a letter stands twice in one operand");
            (*dst)[(*n)++] = *p;
            if (bracket) r->listed[out ? RULE_MAX_IN : part] |= RULE_BIT(*p);
            if (p[1] == '~' && p[2] >= 'a' && p[2] <= 'z' && !out) {
                r->tied = *p;
                r->to = p[2];
                p += 2;
            }
            if (p[1] == '!') {
                if (out) FAIL("'!' belongs to an operand, not to the output");
                r->whole |= RULE_BIT((*dst)[*n - 1]);
                p++;
            }
        } else if (*p == '[' && !bracket) {
            bracket = true;
        } else if (*p == ']' && bracket) {
            bracket = false;
        } else if (*p == ',' && !out && !bracket) {
            if (++part == RULE_OPERANDS) FAIL("more than five operands");
            dst = &r->in[part];
            n = &r->nl[part];
            r->nin++;
        } else if (*p == '-' && p[1] == '>' && !out && !bracket) {
            p++;
            out = true;
            dst = &r->out;
            n = &r->nout;
        } else FAIL("expected a letter a-z, '!', ',', '[', ']' or '->'");
    }
    if (!out) FAIL("no '->'");
    if (bracket) FAIL("a bracket is not closed");
#undef FAIL
    return true;
}

int rule_find(const Rule *r, int i, char ch) {
    assert(i >= 0 && i < r->nin && ch >= 'a' && ch <= 'z');
    const char *p = memchr(r->in[i], ch, (size_t)r->nl[i]);
    return p ? (int)(p - r->in[i]) : -1;
}
int rule_find_out(const Rule *r, char ch) {
    const char *p = memchr(r->out, ch, (size_t)r->nout);
    return p ? (int)(p - r->out) : -1;
}

Rule rule_adjoint(const Rule *r, int i, uint32_t saved) {
    assert(i >= 0 && i < r->nin && !(saved >> r->nin));
    Rule a;
    memset(&a, 0, sizeof a);
    a.text = r->text;
    a.whole = r->whole;
    a.tied = r->tied;
    a.to = r->to;
    memcpy(a.in[0], r->out, sizeof a.in[0]);
    a.nl[0] = r->nout;
    a.listed[0] = r->listed[RULE_MAX_IN];
    a.nin = 1;
    for (int j = 0; j < r->nin; j++)
        if (saved >> j & 1) {
            if (a.nin == RULE_MAX_IN) break;
            memcpy(a.in[a.nin], r->in[j], sizeof a.in[0]);
            a.listed[a.nin] = r->listed[j];
            a.nl[a.nin++] = r->nl[j];
        }
    memcpy(a.out, r->in[i], sizeof a.out);
    a.nout = r->nl[i];
    a.listed[RULE_MAX_IN] = r->listed[i];
    return a;
}
uint32_t rule_listed(const Rule *r) {
    uint32_t all = r->listed[RULE_MAX_IN];
    for (int i = 0; i < r->nin; i++) all |= r->listed[i];
    return all;
}
bool rule_makes_list(const Rule *r) {
    uint32_t read = 0;
    for (int i = 0; i < r->nin; i++) read |= r->listed[i];
    return r->listed[RULE_MAX_IN] && !read;
}
