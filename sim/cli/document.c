/* The JSON document of a command that shows a table, and the pieces that documents are made of.
 * What a table shows is written as the table has it, row by row, each on a line of its own. Refuses
 * to say anything that tables and records do not say. */
#include "cli/document.h"
#include <string.h>

void document_texts(JsonWriter *w, const char *key, const char *const *s, int n) {
    json_open(w, key, '[');
    for (int i = 0; i < n; i++) json_str(w, NULL, s[i]);
    json_close(w, ']');
}
void document_diagnostics(JsonWriter *w, const Diags *d) {
    for (int i = 0; d && i < d->n; i++) {
        const Diag *g = &d->item[i];
        json_open(w, NULL, '{');
        json_str(w, "code", g->code);
        json_str(w, "severity", severity_words[g->severity]);
        json_str(w, "message", g->message);
        json_str(w, "file", g->loc.file);
        if (g->loc.line > 0) json_int(w, "line", g->loc.line);
        if (g->loc.line > 0) json_int(w, "column", g->loc.col);
        json_str(w, "hint", g->hint);
        json_close(w, '}');
    }
}
void document_rows(JsonWriter *w, const char *key, const Table *t) {
    json_open(w, key, '[');
    for (int r = 0; t && r < t->n_rows; r++) {
        json_break(w);
        json_open(w, NULL, '{');
        table_json_row(w, t, r);
        json_close(w, '}');
    }
    json_close(w, ']');
}
JsonWriter document_head(const Cli *c) {
    JsonWriter w = json_writer(c->arena);
    json_open(&w, NULL, '{');
    json_str(&w, "schema", "shardproof/1");
    json_str(&w, "command", c->command->name);
    document_texts(&w, "operands", (const char *const *)c->o.operands, c->o.n_operands);
    return w;
}
void document_tail(Cli *c, JsonWriter *w) {
    json_close(w, '}');
    json_newline(w);
    str_add(&c->text, w->s.s);
}

void document_table(Cli *c, const Table *t, const Diags *a, const Diags *b) {
    document_tables(c, t, (Beside){0}, a, b);
}
void document_figure(Cli *c, const Trace *t, const char *view, const char *figure, const Diags *d) {
    JsonWriter w = document_head(c);
    json_open(&w, "diagnostics", '[');
    document_diagnostics(&w, d);
    if (!figure) document_diagnostics(&w, c->d); /* why there is none */
    json_close(&w, ']');
    json_str(&w, "plan", t ? t->plan : NULL);
    json_str(&w, "view", view);
    if (figure) json_raw(&w, "figure", figure);
    else json_null(&w, "figure");
    document_tail(c, &w);
}
void document_tables(Cli *c, const Table *t, Beside beside, const Diags *a, const Diags *b) {
    JsonWriter w = document_head(c);
    json_open(&w, "diagnostics", '[');
    document_diagnostics(&w, a);
    document_diagnostics(&w, b);
    json_close(&w, ']');
    document_rows(&w, "rows", t);
    if (beside.key) document_rows(&w, beside.key, beside.table);
    document_tail(c, &w);
}
