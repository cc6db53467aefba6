/* What `check` found, as other tools read it: JUnit XML, SARIF 2.1.0, GitHub annotations,
 * GitLab's code quality report. One table
 * of formats; each writer sees the same findings: the diagnostics of a plan, and its failed checks.
 * Refuses to filter. */
#include "cli/cli.h"
#include "cli/expect.h"
#include "base/text.h"
#include "formats/json.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- collecting ---- */
static const char *kept(Arena *a, const char *s) { return s ? arena_strdup(a, s) : NULL; }

static void add(PlanFindings *p, Arena *a, Finding f) {
    f.message = kept(a, f.message);
    f.file = kept(a, f.file);
    f.code = kept(a, f.code);
    *ARENA_PUSH(a, p->f, p->n, p->cap) = f;
}
PlanFindings findings_collect(const Loaded *l, bool strict, Severity fails, Arena *into) {
    PlanFindings p = {.plan = l->path, .exit = l->exit, .fails = fails, .held = l->above > 0};
    bool told = false, unasked = false; /* as --static asks for it */
    for (int i = 0; i < l->d->n; i++) {
        const Diag *g = &l->d->item[i];
        const char *message =
            g->hint ? arena_printf(into, "%s (%s)", g->message, diag_help(into, g)) : g->message;
        add(&p, into,
            (Finding){g->code, message, g->loc.file, g->loc.line, g->loc.col, g->severity,
                      l->report.plan && expect_means(l->report.plan, g)});
        told = told || strcmp(g->code, "E0501") == 0;
        unasked = unasked || strcmp(g->code, "N0014") == 0;
    }
    const Trace *t = l->trace;
    p.against = t ? summary_against_line(t, into) : NULL;
    if (unasked && t && summary_unexecuted(t))
        p.unexecuted = "not executed: rules and structure hold, no values were compared";
    const TraceCheck *k = t && !told ? summary_failure(t, strict) : NULL;
    if (k) {
        const bool wrong = !strcmp(k->verdict, "FAIL");
        const char *cause = k->cause ? arena_printf(into, ": %s", k->cause) : "";
        const char *message = arena_printf(
            into, "%s is %s on %s, error %.3g, bound %.3g%s", k->value, wrong ? "wrong" : "suspect",
            rankset_words(&k->ranks, into), k->max_abs, k->bound, cause);
        /* the first wrong value; later ones follow from it */
        add(&p, into, (Finding){"E0501", message, l->path, 0, 0, DIAG_ERROR, false});
    }
    return p;
}
PlanFindings findings_beside(const Diag *d, Severity fails, Arena *into) {
    PlanFindings p = {.plan = d->loc.file, .exit = d->severity <= fails, .fails = fails};
    const char *message = d->hint ? arena_printf(into, "%s (%s)", d->message, d->hint) : d->message;
    add(&p, into, (Finding){d->code, message, d->loc.file, 0, 0, d->severity, false});
    return p;
}
/* A defect that the plan expects is a note to other tools, not a failure; what --fail-on makes one
 * is. A warning that it does not expect stays one. */
static Severity weight(const PlanFindings *p, const Finding *f) {
    if (p->exit == 0) return f->severity == DIAG_WARNING && !f->meant ? DIAG_WARNING : DIAG_NOTE;
    if (p->held && (f->severity == DIAG_ERROR || f->meant)) return DIAG_NOTE;
    return f->severity <= p->fails ? DIAG_ERROR : f->severity;
}

/* ---- where ---- */
/* Without what changes nothing: "./", "//", "/./". */
static const char *plain_path(Arena *a, const char *path) {
    Str s = str_new(a);
    for (const char *p = path; *p; p++) {
        bool begins = p == path || p[-1] == '/';
        if (begins && p > path && *p == '/') continue;
        if (begins && p[0] == '.' && p[1] == '/') p++;
        else str_addn(&s, p, 1);
    }
    while (s.n > 1 && s.s[0] == '/' && strncmp(path, "/", 1)) s.s++, s.n--; /* of ".//a" */
    return s.n ? s.s : path;
}
/* A file as a service names it: from the root of the repository, in which it runs this, by its own
 * name and not by that of a link, for it ignores what it is told of others. What lies elsewhere,
 * and what is no file, stays as it was said. */
static const char *file_here(Arena *a, const char *path) {
    char here[PATH_MAX], whole[PATH_MAX];
    if (!realpath(".", here) || !realpath(path, whole)) return plain_path(a, path);
    size_t n = strcmp(here, "/") ? strlen(here) : 0;
    bool below = !strncmp(whole, here, n) && whole[n] == '/' && whole[n + 1];
    return below ? arena_strdup(a, whole + n + 1) : plain_path(a, path);
}
/* The place of a finding. A line of a recipe, or of --set, is in no file: the plan is what there
 * is to show. */
typedef struct {
    const char *path;
    int line, col;
} Place;
static Place place_of(const PlanFindings *p, const Finding *f, Arena *a) {
    if (f->file && !access(f->file, F_OK)) return (Place){file_here(a, f->file), f->line, f->col};
    bool none = !f->file || !strcmp(f->file, p->plan);
    return (Place){file_here(a, p->plan), none ? f->line : 0, none ? f->col : 0};
}

/* ---- JUnit ---- */
static void junit_failure(Str *s, const PlanFindings *p) {
    const char *tag = p->exit == 1
                          ? "failure"
                          : "error"; /* a plan that breaks a rule, or one that cannot be read */
    const Finding *first = NULL;
    for (int i = 0; i < p->n && !first; i++)
        if (weight(p, &p->f[i]) == DIAG_ERROR) first = &p->f[i];
    str_addf(s, "      <%s type=\"%s\" message=\"", tag, first ? first->code : "exit");
    text_add_xml(s, first ? first->message : "failed");
    str_add(s, "\">");
    for (int i = 0; i < p->n; i++) {
        if (weight(p, &p->f[i]) == DIAG_NOTE) continue;
        if (p->f[i].file) text_add_xml(s, file_here(s->a, p->f[i].file));
        if (p->f[i].line) str_addf(s, ":%d:%d", p->f[i].line, p->f[i].col);
        str_add(s, p->f[i].file ? ": " : "");
        text_add_xml(s, p->f[i].message);
        str_addf(s, " [%s]\n", p->f[i].code);
    }
    str_addf(s, "</%s>\n", tag);
}
/* Notes and warnings fail nothing, and are said all the same. */
static void junit_said(Str *s, const PlanFindings *p) {
    Str said = str_new(s->a);
    if (p->against) {
        str_add(&said, "against: ");
        text_add_xml(&said, p->against);
        str_add(&said, "\n");
    }
    for (int i = 0; i < p->n; i++) {
        const Finding *f = &p->f[i];
        if (p->exit && weight(p, f) != DIAG_NOTE) continue; /* stands in the failure */
        if (f->file) text_add_xml(&said, file_here(s->a, f->file));
        if (f->line) str_addf(&said, ":%d:%d", f->line, f->col);
        str_add(&said, f->file ? ": " : "");
        text_add_xml(&said, f->message);
        str_addf(&said, " [%s]\n", f->code);
    }
    if (said.n) str_addf(s, "      <system-out>%s</system-out>\n", said.s);
}
static void junit_case(Str *s, const PlanFindings *p) {
    str_add(s, "    <testcase classname=\"shardproof\" name=\"");
    text_add_xml(s, plain_path(s->a, p->plan));
    str_add(s, "\" file=\"");
    text_add_xml(s, file_here(s->a, p->plan));
    str_addf(s, "\" time=\"%.3f\"", p->seconds);
    if (p->exit == 0 && !p->against && !p->n && !p->unexecuted) {
        str_add(s, "/>\n");
        return;
    }
    str_add(s, ">\n");
    if (p->exit) junit_failure(s, p);
    else if (p->unexecuted) str_addf(s, "      <skipped message=\"%s\"/>\n", p->unexecuted);
    junit_said(s, p);
    str_add(s, "    </testcase>\n");
}
static void junit(Cli *c, const PlanFindings *p, int n) {
    int failures = 0, errors = 0, skipped = 0;
    double seconds = 0;
    for (int i = 0; i < n; i++) {
        failures += p[i].exit == 1;
        errors += p[i].exit > 1;
        skipped += !p[i].exit && p[i].unexecuted;
        seconds += p[i].seconds;
    }
    str_addf(
        &c->text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites name=\"shardproof\" tests=\"%d\" failures=\"%d\" errors=\"%d\">\n"
        "  <testsuite name=\"check\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" "
        "time=\"%.3f\">\n",
        n, failures, errors, n, failures, errors, skipped, seconds);
    for (int i = 0; i < n; i++) junit_case(&c->text, &p[i]);
    str_add(&c->text, "  </testsuite>\n</testsuites>\n");
}

/* ---- SARIF ---- */
/* A path as a reference (RFC 3986): what may not stand there as %XX. */
static const char *uri_of(const char *path, Arena *a) {
    Str s = str_new(a);
    for (; *path; path++) {
        bool plain = (*path >= '0' && *path <= '9') || (*path >= 'A' && *path <= 'Z') ||
                     (*path >= 'a' && *path <= 'z');
        if (plain || strchr("-._~/!$&'()*+,;=@", *path)) str_addn(&s, path, 1);
        else str_addf(&s, "%%%02X", (unsigned)(unsigned char)*path);
    }
    return s.s;
}
static void sarif_result(JsonWriter *w, const PlanFindings *p, const Finding *f) {
    Place at = place_of(p, f, w->s.a);
    json_open(w, NULL, '{');
    json_str(w, "ruleId", f->code);
    json_str(w, "level", severity_words[weight(p, f)]);
    json_open(w, "message", '{');
    json_str(w, "text", text_visible(w->s.a, f->message));
    json_close(w, '}');
    json_open(w, "locations", '[');
    json_open(w, NULL, '{');
    json_open(w, "physicalLocation", '{');
    json_open(w, "artifactLocation", '{');
    json_str(w, "uri", uri_of(at.path, w->s.a));
    json_close(w, '}');
    if (at.line > 0) {
        json_open(w, "region", '{');
        json_int(w, "startLine", at.line);
        if (at.col > 0) json_int(w, "startColumn", at.col);
        json_close(w, '}');
    }
    json_close(w, '}');
    json_close(w, '}');
    json_close(w, ']');
    json_close(w, '}');
}
static void sarif_rules(JsonWriter *w, const PlanFindings *p, int n) {
    json_open(w, "rules", '[');
    for (int i = 0; i < n_diag_codes; i++) {
        bool used = false;
        for (int k = 0; k < n && !used; k++)
            for (int j = 0; j < p[k].n && !used; j++)
                used = strcmp(p[k].f[j].code, diag_codes[i].code) == 0;
        if (!used) continue;
        json_open(w, NULL, '{');
        json_str(w, "id", diag_codes[i].code);
        json_open(w, "shortDescription", '{');
        json_str(w, "text", diag_codes[i].title);
        json_close(w, '}');
        json_open(w, "fullDescription", '{');
        json_str(w, "text", diag_codes[i].text);
        json_close(w, '}');
        json_close(w, '}');
    }
    json_close(w, ']');
}
static void sarif(Cli *c, const PlanFindings *p, int n) {
    JsonWriter w = json_writer(c->arena);
    json_open(&w, NULL, '{');
    json_str(&w, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_str(&w, "version", "2.1.0");
    json_open(&w, "runs", '[');
    json_open(&w, NULL, '{');
    json_open(&w, "tool", '{');
    json_open(&w, "driver", '{');
    json_str(&w, "name", "shardproof");
    json_str(&w, "version", CLI_VERSION);
    sarif_rules(&w, p, n);
    json_close(&w, '}');
    json_close(&w, '}');
    json_open(&w, "results", '[');
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p[i].n; k++) sarif_result(&w, &p[i], &p[i].f[k]);
    json_close(&w, ']');
    json_close(&w, '}');
    json_close(&w, ']');
    json_close(&w, '}');
    json_newline(&w);
    str_add(&c->text, w.s.s);
}

/* ---- GitHub ---- */
static void escaped(Str *s, const char *t, bool property) {
    for (t = text_visible(s->a, t); *t; t++) {
        if (*t == '%' || (property && (*t == ':' || *t == ',')))
            str_addf(s, "%%%02X", (unsigned)(unsigned char)*t);
        else str_addn(s, t, 1);
    }
}
static void github(Cli *c, const PlanFindings *p, int n) {
    static const char *const kind[] = {"error", "warning", "notice"};
    Str *s = &c->text;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p[i].n; k++) {
            const Finding *f = &p[i].f[k];
            str_addf(s, "::%s file=", kind[weight(&p[i], f)]);
            Place at = place_of(&p[i], f, c->arena);
            escaped(s, at.path, true);
            if (at.line > 0) str_addf(s, ",line=%d", at.line);
            if (at.line > 0 && at.col > 0) str_addf(s, ",col=%d", at.col);
            str_addf(s, ",title=%s::", f->code);
            escaped(s, f->message, false);
            str_add(s, "\n");
        }
}

/* ---- GitLab ---- */
/* FNV-1a: the report wants a text that is the same for the same finding and for no other. */
static void mix(uint64_t *h, const char *s) {
    for (; s && *s; s++) *h = (*h ^ (uint8_t)*s) * 0x100000001b3;
    *h = (*h ^ 0xff) * 0x100000001b3;
}
static void gitlab_one(JsonWriter *w, const PlanFindings *p, int k) {
    static const char *const severity[] = {"major", "minor", "info"};
    const Finding *f = &p->f[k];
    Place at = place_of(p, f, w->s.a);
    uint64_t h = 0xcbf29ce484222325;
    mix(&h, f->code);
    mix(&h, at.path);
    mix(&h, f->message);
    mix(&h, arena_printf(w->s.a, "%d:%d", f->line, f->col));
    for (int i = 0; i < k; i++) /* the same once more */
        if (!strcmp(p->f[i].message, f->message) && p->f[i].line == f->line) mix(&h, "again");
    json_open(w, NULL, '{');
    json_str(w, "description", text_visible(w->s.a, f->message));
    json_str(w, "check_name", f->code);
    json_str(w, "fingerprint", arena_printf(w->s.a, "%016llx", (unsigned long long)h));
    json_str(w, "severity", severity[weight(p, f)]);
    json_open(w, "location", '{');
    json_str(w, "path", text_visible(w->s.a, at.path));
    json_open(w, "lines", '{');
    json_int(w, "begin", at.line > 0 ? at.line : 1);
    json_close(w, '}');
    json_close(w, '}');
    json_close(w, '}');
}
static void gitlab(Cli *c, const PlanFindings *p, int n) {
    JsonWriter w = json_writer(c->arena);
    json_open(&w, NULL, '[');
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p[i].n; k++) gitlab_one(&w, &p[i], k);
    json_close(&w, ']');
    json_newline(&w);
    str_add(&c->text, w.s.s);
}

void findings_write(Cli *c, const PlanFindings *p, int n) {
    static const struct {
        const char *format;
        void (*write)(Cli *c, const PlanFindings *p, int n);
    } formats[] = {{"junit", junit}, {"sarif", sarif}, {"github", github}, {"gitlab", gitlab}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(c->format, formats[i].format) == 0) formats[i].write(c, p, n);
}
