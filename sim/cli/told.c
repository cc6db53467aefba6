/* Sections of fields, as text and as JSON. See told.h. */
#include "cli/told.h"
#include "cli/document.h"
#include <stdlib.h>
#include <string.h>

void told_section(Told *told, const char *kind, const char *name, const char *title) {
    *ARENA_PUSH(told->a, told->section, told->n, told->cap) =
        (ToldSection){.kind = kind, .name = name, .title = title};
}
void told_step(Told *told, int step) {
    *ARENA_PUSH(told->a, told->step, told->n_steps, told->cap_steps) = step;
}
void told_field(Told *told, ToldForm form, const char *name, const char *text) {
    ToldSection *s = &told->section[told->n - 1];
    if (text && *text) *ARENA_PUSH(told->a, s->field, s->n, s->cap) = (ToldField){name, text, form};
}

/* ---- for people ---- */
void told_text(Cli *c, const Told *told) {
    for (int i = 0; i < told->n; i++) {
        const ToldSection *s = &told->section[i];
        if (i) str_add(&c->text, "\n");
        cli_paint(c, "1", table_clean(s->title, 0, c->arena));
        str_add(&c->text, "\n");
        for (int k = 0; k < s->n; k++) {
            const ToldField *f = &s->field[k];
            const char *text = table_clean(f->text, 0, c->arena);
            if (f->form == TOLD_COLUMN) str_addf(&c->text, "  %-12s %s\n", f->name, text);
            else str_addf(&c->text, "%s%s\n", f->form == TOLD_LINE ? "  " : "      ", text);
        }
    }
}

/* ---- for programs ---- */
/* Fields in their order: one that goes on says the name of those before. */
static void put_fields(JsonWriter *w, const ToldSection *s) {
    const char *name = "";
    json_open(w, "fields", '[');
    for (int k = 0; k < s->n; k++) {
        if (*s->field[k].name) name = s->field[k].name;
        json_open(w, NULL, '{');
        json_str(w, "name", name);
        json_str(w, "text", s->field[k].text);
        json_close(w, '}');
    }
    json_close(w, ']');
}
static bool about_name(const Told *told, const char *name) {
    for (int i = 0; name && i < told->n; i++)
        if (told->section[i].name && !strcmp(told->section[i].name, name)) return true;
    return false;
}
static bool about_step(const Told *told, const char *step) {
    for (int i = 0; step && i < told->n_steps; i++)
        if (told->step[i] == atoi(step)) return true;
    return false;
}
static int column_of(const Table *t, const char *key) {
    for (int i = 0; key && i < t->n_cols; i++)
        if (!strcmp(t->col[i].key, key)) return i;
    return -1;
}
/* The rows of a table whose name or whose step all this is about. */
static void put_rows(JsonWriter *w, const Told *told, const char *key, const Table *all,
                     const char *by) {
    Table some = *all;
    int name = column_of(all, by), step = column_of(all, "step");
    some.row = ARENA_ARRAY(told->a, Cell *, all->n_rows + 1);
    some.n_rows = 0;
    for (int r = 0; r < all->n_rows; r++)
        if ((name >= 0 && about_name(told, all->row[r][name].plain)) ||
            (step >= 0 && about_step(told, all->row[r][step].plain)))
            some.row[some.n_rows++] = all->row[r];
    document_rows(w, key, &some);
}
void told_document(Cli *c, const Told *told, const Trace *t, const Diags *d) {
    JsonWriter w = document_head(c);
    json_open(&w, "diagnostics", '[');
    document_diagnostics(&w, d);
    document_diagnostics(&w, c->d);
    json_close(&w, ']');
    json_open(&w, "sections", '[');
    for (int i = 0; i < told->n; i++) {
        const ToldSection *s = &told->section[i];
        json_break(&w);
        json_open(&w, NULL, '{');
        json_str(&w, "kind", s->kind);
        json_str(&w, "name", s->name);
        json_str(&w, "title", s->title);
        put_fields(&w, s);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    if (t) {
        Table shapes = table_shapes(c, t), params = table_params(c, t), comms = table_comms(c, t);
        put_rows(&w, told, "shapes", &shapes, "value");
        put_rows(&w, told, "parameters", &params, "name");
        put_rows(&w, told, "collectives", &comms, "value");
    }
    document_tail(c, &w);
}
