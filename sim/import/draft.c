/* From a framework's draft to the text of a plan: sizes that can be run, the mesh, what the command
 * line adds. The only file that knows how an imported plan looks. */
#include "base/file.h"
#include "import/import.h"
#include "formats/json.h"
#include "model/model.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_SHRINK = 16,
    WIDE = 512,       /* hidden sizes beyond this one are shrunk */
    SHORT = 16,       /* tokens of a sequence, or more where the mesh cuts it further */
    MOST_TOKENS = 64, /* longer sequences are shortened, unless --full */
    MOST_BATCH = 8,
    CONFIG_BYTES = 1 << 20,
};

/* ---- making a draft ---- */
void draft_line(Draft *x, const char *pattern, Loc loc, const char *style, Loc style_loc,
                const char *comment) {
    *ARENA_PUSH(x->a, x->line, x->n_lines, x->cap_lines) =
        (DraftLine){pattern, style, comment, loc, style_loc, 0};
}
void draft_key(Draft *x, const char *key, const char *value, Loc loc, const char *comment) {
    *ARENA_PUSH(x->a, x->extra, x->n_extra, x->cap_extra) =
        (DraftLine){key, value, comment, loc, loc, 0};
}
void draft_below(Draft *x, int depth, const char *key, Loc loc, const char *value, Loc value_loc) {
    *ARENA_PUSH(x->a, x->extra, x->n_extra, x->cap_extra) =
        (DraftLine){key, value, NULL, loc, value_loc, depth};
}
void draft_remark(Draft *x, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    *ARENA_PUSH(x->a, x->remark, x->n_remarks, x->cap_remarks) = arena_vprintf(x->a, fmt, ap);
    va_end(ap);
}
static DraftAxis *find_axis(Draft *x, const char *name) {
    for (int i = 0; i < x->n_axes; i++)
        if (strcmp(x->axis[i].name, name) == 0) return &x->axis[i];
    return NULL;
}
bool draft_in_product(const char *product, const char *axis) {
    size_t n = strlen(axis);
    for (const char *p = product; *p; p += strcspn(p, "*"), p += *p == '*')
        if (strcspn(p, "*") == n && strncmp(p, axis, n) == 0) return true;
    return false;
}
const char *draft_group_axes(const Draft *x, const char *name) {
    for (int i = 0; i < x->n_groups; i++)
        if (strcmp(x->group[i].name, name) == 0) return x->group[i].axes;
    return NULL;
}
int64_t draft_axis_size(const Draft *x, const char *name) {
    const char *axes = draft_group_axes(x, name);
    int64_t n = axes ? 1 : 0;
    for (int i = 0; i < x->n_axes; i++) {
        if (!axes && strcmp(x->axis[i].name, name) == 0) return x->axis[i].size;
        if (axes && draft_in_product(axes, x->axis[i].name) && n < (int64_t)1 << 30)
            n *= x->axis[i].size;
    }
    return n;
}
bool draft_group(Draft *x, const char *name, const char *axes, Loc loc) {
    const char *have = draft_group_axes(x, name);
    enum { MOST = sizeof x->group / sizeof *x->group };
    if (have && strcmp(have, axes) == 0) return true;
    if (have || find_axis(x, name))
        diag_error(x->d, "E0307", loc, "give it another name", "the name %s is that of %s already",
                   name, have ? have : "an axis");
    else if (x->n_groups == MOST) diag_error(x->d, "E0703", loc, NULL, "more than %d groups", MOST);
    else x->group[x->n_groups++] = (DraftGroup){name, axes};
    return !have && x->n_groups && x->group[x->n_groups - 1].name == name;
}
bool draft_axis(Draft *x, const char *name, int64_t size, Loc loc) {
    const DraftAxis *known = find_axis(x, name);
    enum { MOST = sizeof x->axis / sizeof *x->axis };
    if (known && known->size != size)
        diag_error(x->d, "E0307", loc, "leave one of the two out",
                   "axis %s of %lld ranks has %lld elsewhere", name, (long long)size,
                   (long long)known->size);
    else if (!known && x->n_axes == MOST)
        diag_error(x->d, "E0703", loc, NULL, "more than %d axes", MOST);
    else if (!known) x->axis[x->n_axes++] = (DraftAxis){name, size, loc};
    else return true;
    return !known && x->n_axes && x->axis[x->n_axes - 1].name == name;
}

/* "a*b", from the outside. */
static const char *outside(Arena *a, const char *axis, const char *others) {
    return others ? arena_printf(a, "%s*%s", axis, others) : axis;
}
bool draft_fold(Draft *x, const DraftAxis *dense, int n, const DraftAxis *experts, int m) {
    enum { MOST = 8 };
    DraftAxis piece[2 * MOST];
    const char *of[2][MOST] = {{0}};
    int pieces = 0, i = 0, k = 0;
    assert(n <= MOST && m <= MOST);
    int64_t a = n ? dense[0].size : 1, b = m ? experts[0].size : 1;
    for (;;) {
        while (a == 1 && i < n) a = ++i < n ? dense[i].size : 1;
        while (b == 1 && k < m) b = ++k < m ? experts[k].size : 1;
        if (i == n) break;
        int64_t size = k == m || a < b ? a : b;
        if (k < m && (a % size || b % size)) break;
        bool whole = size == dense[i].size;
        const char *name =
            whole ? dense[i].name
                  : arena_printf(x->a, "%s_%s", dense[i].name, k < m ? experts[k].name : "edp");
        piece[pieces++] = (DraftAxis){name, size, dense[i].loc};
        of[0][i] = whole ? NULL : outside(x->a, name, of[0][i]);
        if (k < m) of[1][k] = outside(x->a, name, of[1][k]), b /= size;
        a /= size;
    }
    if (i < n || k < m) {
        diag_error(
            x->d, "E0307", experts[k < m ? k : 0].loc, "sizes of which one divides the other",
            "axis %s of the experts fits no axis of the other layers", experts[k < m ? k : 0].name);
        return false;
    }
    while (pieces--) draft_axis(x, piece[pieces].name, piece[pieces].size, piece[pieces].loc);
    for (i = 0; i < n; i++)
        if (of[0][i]) draft_group(x, dense[i].name, of[0][i], dense[i].loc);
    for (k = 0; k < m; k++)
        if (of[1][k]) draft_group(x, experts[k].name, of[1][k], experts[k].loc);
    return true;
}

/* ---- the command line ---- */
static Loc option_loc(Draft *x, const char *option, const char *value, const char *at) {
    diags_source(x->d, option, value, strlen(value));
    return (Loc){option, 1, (int)(at - value) + 1};
}
/* "dp=2,tp=4", outermost first. */
static void read_mesh(Draft *x, const char *text) {
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "="), m = p[n] ? strcspn(p + n + 1, ",") : 0;
        Loc at = option_loc(x, "--mesh", text, p);
        const char *name = arena_strndup(x->a, p, n), *size = arena_strndup(x->a, p + n + 1, m);
        char *end;
        errno = 0;
        long long v = p[n] ? strtoll(size, &end, 10) : 0;
        bool word = isalpha((unsigned char)*name) && !strchr(name, ',');
        for (const char *c = name; *c; c++)
            word = word && (isalnum((unsigned char)*c) || *c == '_');
        if (!word || !p[n] || !isdigit((unsigned char)*size) || *end || errno || v < 1 ||
            v > (long long)1 << 30) {
            diag_error(x->d, "E0212", at, "for example --mesh dp=2,tp=4",
                       "--mesh wants AXIS=RANKS,...");
            return;
        }
        draft_axis(x, name, v, at);
        p += n + 1 + m;
        p += *p == ',';
    }
}
void draft_preset(Draft *x, const char *name) {
    int n;
    const Preset *row = model_presets(&n);
    for (int i = 0; i < n; i++) {
        if (strcmp(row[i].name, name)) continue;
        x->preset = name;
        x->hidden = row[i].D, x->head_dim = row[i].d, x->n_layers = row[i].L;
        x->heads = row[i].H, x->kv_heads = row[i].K, x->ffn = row[i].F;
        x->family = row[i].family;
        return;
    }
    diag_error(x->d, "E0202", x->model_loc, model_preset_hint(x->a, name), "unknown preset '%s'",
               name);
}
static int64_t whole(const Json *j, const char *key) {
    const Json *v = json_get(j, key);
    return v && v->kind == JSON_INT && v->i > 0 ? v->i : 0;
}
/* The path of a file as the plan will say it, from the plan's folder. */
static const char *path_from(Draft *x, const char *path) {
    const char *dir = x->in->dir ? x->in->dir : ".";
    if (*path == '/' || strcmp(dir, ".") == 0) return path;
    char *real = realpath(path, NULL);
    const char *copy = real ? arena_strdup(x->a, real) : path;
    free(real);
    return copy;
}
static void keep_config(Draft *x, const char *path, const Json *j) {
    int64_t H = whole(j, "num_attention_heads");
    const Json *type = json_get(j, "model_type");
    x->config = path_from(x, path);
    x->family = type && type->kind == JSON_STRING ? arena_strdup(x->a, type->s) : NULL;
    x->hidden = whole(j, "hidden_size");
    x->n_layers = whole(j, "num_hidden_layers");
    x->head_dim = whole(j, "head_dim") ? whole(j, "head_dim") : H ? x->hidden / H : 0;
    /* latent attention: the least of what a head has */
    const char *part[] = {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"};
    for (int i = 0; whole(j, "kv_lora_rank") && i < 3; i++)
        if (!i || (whole(j, part[i]) && whole(j, part[i]) < x->head_dim))
            x->head_dim = whole(j, part[i]);
    x->heads = H, x->kv_heads = whole(j, "num_key_value_heads"),
    x->ffn = whole(j, "intermediate_size");
}
/* Widths to shrink by; what is wrong with the config is said when the plan is read. Of the text's
 * values nothing stays: it may be a list of 90,000, and is read again with the plan. */
static void read_config(Draft *x, const char *path) {
    size_t n;
    const char *error;
    int line, col;
    char *text = file_read(x->a, x->d, path, CONFIG_BYTES, diag_nowhere, &n);
    if (!text) return;
    Arena *a = arena_new();
    const Json *j = json_parse(a, text, n, &error, &line, &col);
    if (j && j->kind == JSON_OBJECT) {
        keep_config(x, path, j);
    } else {
        diags_source(x->d, path, text, n);
        diag_error(x->d, "E0109", ((Loc){path, j ? 1 : line, j ? 1 : col}), NULL,
                   "this is not a config.json: %s", j ? "no object" : error);
    }
    arena_free(a);
}
void draft_options(Draft *x) {
    const ImportInput *in = x->in;
    if (in->mesh) read_mesh(x, in->mesh);
    if (in->model && in->config) {
        diag_error(x->d, "E0212", diag_nowhere, "--model names a preset, --config a config.json",
                   "--model and --config exclude each other");
        return;
    }
    if (!in->model && !in->config) return;
    x->model_keys = x->preset = NULL;
    x->mlp = x->small = false;
    if (in->config) {
        read_config(x, in->config);
        x->model_loc = (Loc){in->config, 1, 1};
    } else {
        x->model_loc = option_loc(x, "--model", in->model, in->model);
        draft_preset(x, in->model);
    }
}
void draft_complete(Draft *x) {
    Loc at = {x->file, 1, 1};
    if (!x->preset && !x->config && !x->model_keys && !x->in->model && !x->in->config)
        diag_error(x->d, "E0208", at, "--model llama3-8b (see `list models`), or --config FILE",
                   "the sizes of the model do not stand here");
    if (!x->n_axes && !x->in->mesh)
        diag_error(x->d, "E0208", at, "for example --mesh dp=2,tp=4, outermost first",
                   "the mesh does not stand here");
}

/* ---- whose names ---- */
/* A pattern with the numbers of its path as `*`. */
static const char *any_layer(Arena *a, const char *pattern) {
    Str s = str_new(a);
    for (const char *p = pattern; *p;) {
        size_t n = strcspn(p, ".");
        bool number = n && strspn(p, "0123456789") >= n;
        str_addn(&s, number ? "*" : p, number ? 1 : n);
        p += n;
        if (*p) str_addn(&s, p++, 1);
    }
    return s.s;
}
static bool names_module(Arena *a, const char *pattern, const char *module) {
    Str s = str_new(a);
    for (const char *p = module; *p; p++) str_addn(&s, *p == '*' ? "0" : p, 1);
    const char *bare = strncmp(s.s, "model.", 6) == 0 ? s.s + 6 : s.s;
    return plan_match(pattern, s.s) || plan_match(pattern, bare) ||
           plan_match(pattern, arena_printf(a, "%s.weight", s.s)) ||
           plan_match(pattern, arena_printf(a, "%s.weight", bare));
}
Names draft_names(const Draft *x) {
    int n, most = 0;
    const NamesRow *row = names_table(&n);
    Names best = NAMES_TORCHTITAN;
    for (int s = 0; s < NAMES_COUNT; s++) {
        int found = 0;
        for (int i = 0; i < x->n_lines; i++) {
            bool hit = false;
            const char *pattern = any_layer(x->a, x->line[i].pattern);
            for (int r = 0; r < n && !hit; r++) hit = names_module(x->a, pattern, row[r].name[s]);
            found += hit;
        }
        if (found > most) most = found, best = (Names)s;
    }
    return best;
}

/* ---- sizes that can be run ---- */
static int64_t shrink_of(const Draft *x) {
    int64_t n = 1;
    if (x->in->full || x->small || x->mlp || x->hidden <= WIDE) return 1;
    while (n < MOST_SHRINK && x->head_dim % (4 * n) == 0 && x->head_dim / (2 * n) >= 8) n *= 2;
    return n;
}
/* Layers that the patterns name by number, or one. */
static int64_t layers_of(const Draft *x) {
    int64_t most = 0;
    if (x->layers >= 0) return x->layers;
    if (x->in->full) return 0;
    for (int i = 0; i < x->n_lines; i++)
        for (const char *p = x->line[i].pattern; *p;) {
            size_t n = strcspn(p, "."), digits = strspn(p, "0123456789");
            int64_t v = n && n < 6 && digits == n ? atoll(p) : -1;
            if (v > most) most = v;
            p += n + (p[n] == '.');
        }
    return most + 1;
}
bool draft_cuts_batch(const Draft *x, const char *axis) {
    if (x->cut_batch) return draft_in_product(x->cut_batch, axis);
    return strncmp(axis, "dp", 2) == 0 && (!axis[2] || axis[2] == '_');
}
static int64_t product_of(const Draft *x, bool data) {
    int64_t n = 1;
    for (int i = 0; i < x->n_axes; i++) {
        bool dp = draft_cuts_batch(x, x->axis[i].name);
        if (dp == data && x->axis[i].size < 1 << 20 && n < 1 << 20) n *= x->axis[i].size;
    }
    return n;
}
static void write_cut(const Draft *x, PlanWriter *w) {
    const char *dims[][2] = {{"batch", x->cut_batch}, {"sequence", x->cut_sequence}};
    for (int i = 0, n = 0; i < 2; i++) {
        if (!dims[i][1]) continue;
        write_text(w, n++ ? ", " : ", cut: {");
        if (x->cut_loc[i].file) write_from(w, x->cut_loc[i]);
        write_text(w, "%s: \"%s\"", dims[i][0], dims[i][1]);
    }
    if (x->cut_batch || x->cut_sequence) write_text(w, "}");
}
/* Cannot be cut in zigzag order: kept, so that what is said of it names the file's own number. */
static bool zigzag_refuses(const Draft *x, int64_t tokens) {
    for (int i = 0; i < x->n_axes; i++) {
        const char *name = x->axis[i].name;
        bool cp = x->cut_sequence ? draft_in_product(x->cut_sequence, name)
                                  : strncmp(name, "cp", 2) == 0 && (!name[2] || name[2] == '_');
        if (cp && x->axis[i].size > 1 && (tokens % 2 || tokens / 2 % x->axis[i].size)) return true;
    }
    return false;
}
static void write_data(Draft *x, PlanWriter *w) {
    bool full = x->in->full || x->small;
    int64_t dp = product_of(x, true), step = 2 * product_of(x, false), batch = x->batch,
            small = x->least_batch ? x->least_batch : 2 * dp, tokens = x->sequence;
    int64_t least = (SHORT + step - 1) / step * step,
            most = least > MOST_TOKENS ? least : MOST_TOKENS;
    /* what no axis divides in the file, none may divide here */
    if (!batch) batch = 2 * dp;
    else if (x->microbatches && !full) batch = x->microbatches * dp;
    else if (!full && batch > MOST_BATCH && batch > small) batch = small + batch % dp;
    if (!tokens) tokens = least;
    else if (!full && tokens > most && !zigzag_refuses(x, tokens))
        tokens = most / step * step + tokens % step;
    if (x->batch && batch != x->batch)
        draft_remark(x, "batch: %lld instead of %lld, so that it runs in seconds; --full keeps it",
                     (long long)batch, (long long)x->batch);
    if (x->sequence && tokens != x->sequence)
        draft_remark(x,
                     "sequence: %lld tokens instead of %lld, so that it runs in seconds; --full "
                     "keeps them",
                     (long long)tokens, (long long)x->sequence);
    write_from(w, x->data_loc.file ? x->data_loc : (Loc){x->file, 1, 1});
    if (x->mlp) write_text(w, "data: {rows: %lld", (long long)(x->rows ? x->rows : batch * 4));
    else write_text(w, "data: {batch: %lld, sequence: %lld", (long long)batch, (long long)tokens);
    write_text(w, ", dtype: %s, seed: 0", x->dtype ? x->dtype : "f32");
    if (x->block_input) write_text(w, ", block_input: %s", x->block_input);
    write_cut(x, w);
    write_text(w, "}\n");
}
static void write_model(Draft *x, PlanWriter *w) {
    int64_t shrink = shrink_of(x), layers = layers_of(x);
    write_from(w, x->model_loc.file ? x->model_loc : (Loc){x->file, 1, 1});
    write_text(w, "model: {");
    if (x->preset) write_text(w, "preset: "), write_scalar(w, x->preset);
    if (x->config) write_text(w, "hf_config: "), write_scalar(w, x->config);
    if (x->model_keys) write_text(w, "%s", x->model_keys);
    if (!x->mlp && layers) write_text(w, ", layers: %lld", (long long)layers);
    if (!x->mlp && !layers) write_text(w, ", layers: all");
    if (shrink > 1) write_text(w, ", shrink: %lld", (long long)shrink);
    if (!x->mlp) write_text(w, ", parts: [embedding, blocks, norm, head, loss]");
    write_text(w, "}\n");
    if (shrink > 1)
        draft_remark(x,
                     "shrink: widths divided by %lld, and %lld of %lld layers, so that it runs in "
                     "seconds; heads and ranks stay; --full keeps all",
                     (long long)shrink, (long long)layers, (long long)x->n_layers);
}
static void write_mesh(Draft *x, PlanWriter *w) {
    write_from(w, x->n_axes && x->axis[0].loc.file ? x->axis[0].loc : (Loc){x->file, 1, 1});
    write_text(w, "mesh: {");
    for (int i = 0; i < x->n_axes; i++) {
        write_text(w, i ? ", " : "");
        write_from(w, x->axis[i].loc.file ? x->axis[i].loc : (Loc){x->file, 1, 1});
        write_scalar(w, x->axis[i].name);
        write_text(w, ": %lld", (long long)x->axis[i].size);
    }
    write_text(w, "}\n");
    for (int i = 0; i < x->n_groups; i++) {
        write_text(w, i ? ", " : "groups: {");
        write_scalar(w, x->group[i].name);
        write_text(w, ": %s", x->group[i].axes);
    }
    if (x->n_groups) write_text(w, "}\n");
}
/* Where the file asks for what only the framework's code says: the degree of `tp`, else the model.
 */
static Loc code_loc(const Draft *x) {
    for (int i = 0; i < x->n_axes; i++)
        if (strcmp(x->axis[i].name, "tp") == 0 && x->axis[i].loc.file) return x->axis[i].loc;
    return x->model_loc.file ? x->model_loc : (Loc){x->file, 1, 1};
}
static void write_line(const Draft *x, PlanWriter *w, const DraftLine *l, int depth) {
    write_text(w, "%*s", 2 * depth, "");
    write_from(w, l->loc.file ? l->loc : code_loc(x));
    write_scalar(w, l->pattern);
    write_text(w, l->style ? ": " : ":");
    write_from(w, l->style_loc.file ? l->style_loc : code_loc(x));
    if (l->style) write_text(w, "%s", l->style);
    write_end(w, l->comment, l->loc);
}
static void write_lines(Draft *x, PlanWriter *w) {
    for (int i = 0; i < x->n_extra; i++) write_line(x, w, &x->extra[i], x->extra[i].depth);
    if (x->n_lines) write_text(w, "plan:\n");
    for (int i = 0; i < x->n_lines; i++) write_line(x, w, &x->line[i], 1);
}
static const char *name_of(const Draft *x) {
    const char *slash = strrchr(x->file, '/'), *base = slash ? slash + 1 : x->file;
    const char *dot = strrchr(base, '.');
    return dot && dot != base ? arena_strndup(x->a, base, (size_t)(dot - base)) : base;
}
ImportedPlan draft_write(Draft *x) {
    PlanWriter body = write_start(x->a), head = write_start(x->a);
    if (diags_errors(x->d)) return (ImportedPlan){0};
    write_model(x, &body);
    write_data(x, &body);
    write_mesh(x, &body);
    if (!x->mlp) write_text(&body, "names: %s\n", plan_names_text(x->names));
    write_text(&body, "pass: backward\n");
    write_lines(x, &body);
    write_from(&head, (Loc){x->file, 1, 1});
    write_comment(&head, "What %s %s (%s), written by `shardproof import`.", x->file,
                  x->in->path ? "says" : "say", x->in->framework);
    for (int i = 0; i < x->n_remarks; i++) write_comment(&head, "%s", x->remark[i]);
    write_from(&head, (Loc){x->file, 1, 1});
    write_text(&head, "name: ");
    write_scalar(&head, name_of(x));
    write_text(&head, "\n");
    for (int i = 0; i < body.n_origin; i++) { /* below the head */
        DiagOrigin o = body.origin[i];
        o.line += head.line - 1;
        *ARENA_PUSH(x->a, head.origin, head.n_origin, head.cap_origin) = o;
    }
    str_add(&head.s, body.s.s);
    return (ImportedPlan){head.s.s, head.s.n, head.origin, head.n_origin};
}

bool draft_is_json(const char *text, size_t n) {
    Arena *a = arena_new();
    const char *error;
    int line, col;
    bool is = json_parse(a, text, n, &error, &line, &col) != NULL;
    arena_free(a);
    return is;
}
