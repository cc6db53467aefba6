/* What decides the numbers of a run besides sizes, layouts and collectives: seed, files, the loss,
 * the optimizer and the constants of ops, one text each, under the plan's words. `diff` compares
 * them. Refuses to name what changes no number (hardware, threads, what is kept or made again). */
#include "exec/settings.h"
#include <math.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Trace *t;
    int cap;
} Settings;
static void add_text(Settings *s, const char *name, const char *text) {
    if (text)
        *ARENA_PUSH(s->arena, s->t->settings, s->t->n_settings, s->cap) =
            (struct TraceSetting){name, text};
}
static void add_number(Settings *s, const char *name, double x) {
    add_text(s, name, arena_printf(s->arena, "%.17g", x));
}
static void add_whole(Settings *s, const char *name, int64_t x) {
    add_text(s, name, arena_printf(s->arena, "%lld", (long long)x));
}

static void add_data(Settings *s, const Plan *p) {
    add_text(s, "seed", arena_printf(s->arena, "%llu", (unsigned long long)p->seed));
    add_text(s, "weights", p->weights);
    add_text(s, "inputs", p->inputs);
    add_text(s, "trust", plan_trust_text(p->trust));
}
static void add_yarn(Settings *s, const Yarn *y) {
    add_number(s, "beta_fast", y->fast);
    add_number(s, "beta_slow", y->slow);
    add_number(s, "mscale", y->mscale);
    add_number(s, "mscale_all_dim", y->mscale_all);
    add_number(s, "attention_factor", y->attention_factor);
    add_text(s, "truncate", y->truncate ? "true" : "false");
}
/* Which keys a query sees, and how large the queries of layers without rotation grow. */
static void add_documents(Settings *s, const ModelDims *d) {
    if (!d->documents) return;
    Str lengths = str_new(s->arena);
    for (int b = 0; b < d->documents->rows; b++)
        for (int i = 0; i < d->documents->row[b].n; i++) {
            const AttentionRun *r = &d->documents->row[b].run[i];
            str_addf(&lengths, "%s%lld", i ? " " : b ? " | " : "", (long long)(r->lim - r->from));
        }
    add_text(s, "documents", lengths.s);
}
static void add_attention(Settings *s, const ModelDims *d) {
    if (d->chunk) {
        Str layers = str_new(s->arena);
        for (int64_t i = d->first_layer; i < d->last_layer; i++)
            if (model_chunked(d, i)) str_addf(&layers, "%s%lld", layers.n ? " " : "", (long long)i);
        add_whole(s, "attention_chunk_size", d->chunk);
        add_text(s, "chunked layers", layers.n ? layers.s : "none");
    }
    if (d->window && !d->window_unread) {
        Str layers = str_new(s->arena);
        for (int64_t i = d->first_layer; i < d->last_layer; i++)
            if (model_windowed(d, i))
                str_addf(&layers, "%s%lld", layers.n ? " " : "", (long long)i);
        add_whole(s, "sliding_window", d->window);
        add_text(s, "windowed layers", layers.n ? layers.s : "none");
    }
    if (!d->temperature_floor) return;
    add_whole(s, "floor_scale", d->temperature_floor);
    add_number(s, "attn_scale", d->temperature_scale);
}
/* Rows of cosines and sines, and the activation; eps is among the sizes. */
static void add_model(Settings *s, const ModelDims *d) {
    add_text(s, "activation", d->activation);
    if (d->core) add_text(s, "mask", d->unmasked ? "none" : "causal");
    add_documents(s, d);
    if (d->mlp || d->core) return;
    add_number(s, "rope_theta", d->rope_base);
    add_text(s, "rope_interleaved", d->rope_interleaved ? "true" : "false");
    if (d->order == ROPE_NEIGHBOURS_TO_HALVES) add_text(s, "rope_pairs", "neighbours to halves");
    add_text(s, "rope_type", d->rope_type);
    add_whole(s, "vocab", d->vocab);
    add_attention(s, d);
    if (!d->rope_type || d->rope_factor == 0) return;
    add_number(s, "rope_factor", d->rope_factor);
    add_number(s, "rope_low_freq_factor", d->rope_low);
    add_number(s, "rope_high_freq_factor", d->rope_high);
    add_number(s, "rope_original_max_position_embeddings", d->rope_old_ctx);
    if (!strcmp(d->rope_type, "yarn")) add_yarn(s, &d->yarn);
}
/* Who goes to which expert, how much a choice counts, and who finds no place. */
static void add_router(Settings *s, const Router *r) {
    const char *all = r->all ? "of all experts" : "of the chosen";
    add_text(s, "router",
             arena_printf(s->arena, "%s%s%s",
                          r->sigmoid ? "sigmoid" : arena_printf(s->arena, "softmax %s", all),
                          r->bias ? ", chosen with a bias" : "",
                          r->first ? ", tokens are scaled before their experts" : ""));
    if (!r->bias) return; /* the rest are DeepSeek's keys */
    add_text(s, "norm_topk_prob", r->share ? "true" : "false");
    add_number(s, "routed_scaling_factor", r->factor);
    add_whole(s, "n_group", r->groups);
    add_whole(s, "topk_group", r->top_groups);
}
static void add_experts(Settings *s, const Plan *p, const ModelDims *d) {
    if (!d->E) return;
    add_router(s, &d->router);
    add_text(s, "routing", p->moe.routing);
    if (p->moe.capacity_factor > 0) {
        add_number(s, "capacity_factor", p->moe.capacity_factor);
        add_text(s, "capacity", p->moe.capacity);
        add_text(s, "priority", p->moe.priority);
    }
    add_text(s, "aux_loss", p->moe.aux_loss);
    add_number(s, "aux_coef", p->moe.aux_coef);
    add_number(s, "z_coef", p->moe.z_coef);
}
static void add_loss(Settings *s, const Plan *p, const Model *m) {
    if (m->g.loss < 0) return;
    bool head = m->parts & PART_HEAD && !m->dims.mlp;
    add_text(s, "loss", p->loss_kind ? p->loss_kind : head ? "cross_entropy" : "dot");
    add_number(s, "label_smoothing", p->label_smoothing);
    add_whole(s, "ignore_index", p->ignore_index);
    add_text(s, "normalise", p->normalise);
    add_text(s, "reduce", p->data_parallel.reduce);
    add_text(s, "grad_order", p->data_parallel.grad_order);
}
static void add_optimizer(Settings *s, const Plan *p) {
    if (p->pass != PASS_TRAIN) return;
    add_text(s, "optimizer", p->optimizer.name);
    add_whole(s, "steps", p->optimizer.steps);
    add_number(s, "lr", p->optimizer.lr);
    add_number(s, "beta1", p->optimizer.beta1);
    add_number(s, "beta2", p->optimizer.beta2);
    add_number(s, "optimizer eps", p->optimizer.eps);
    add_text(s, "weight_decay",
             isnan(p->optimizer.weight_decay)
                 ? "default"
                 : arena_printf(s->arena, "%.17g", p->optimizer.weight_decay));
    add_number(s, "momentum", p->optimizer.momentum);
    add_number(s, "clip", p->optimizer.clip);
}
void record_settings(Arena *arena, const Plan *plan, const Model *model, Trace *t) {
    Settings s = {.arena = arena, .t = t};
    add_data(&s, plan);
    add_model(&s, &model->dims);
    add_experts(&s, plan, &model->dims);
    add_loss(&s, plan, model);
    add_optimizer(&s, plan);
}
