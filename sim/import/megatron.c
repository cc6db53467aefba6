/* Megatron-LM's arguments, as a file, a pasted command, a script or words behind `--`: sizes and
 * degrees, and the tensor parallelism of Megatron core (semantics.md 3.5). Every argument is a row
 * of a table; one that is no row is an error, for it might change who holds what. */
#include "base/text.h"
#include "import/import.h"
#include "import/layer_freq.h"
#include "import/pipeline.h"
#include "import/shell.h"
#include "model/model.h"
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- words with places ---- */
typedef ShellWord Word;
typedef struct {
    Draft *x;
    const Word *word;
    int n;
} Words;

/* Words of the script, the file of arguments or the command line. */
static bool read_words(Words *w) {
    Draft *x = w->x;
    Scan s, args;
    ShellWords read;
    const char *text = x->in->text;
    size_t n = x->in->n;
    if (x->in->n_args) { /* shown as one line */
        Str line = str_new(x->a);
        for (int i = 0; i < x->in->n_args; i++)
            str_addf(&line, "%s%s", i ? " " : "", x->in->arg[i]);
        text = line.s, n = line.n;
    }
    const char *more = x->in->args;
    if (!scan_start(&s, x->a, x->d, x->file, text, n) ||
        (more && !scan_start(&args, x->a, x->d, "--args", more, strlen(more))) ||
        !shell_words(&s, more ? &args : NULL, &read))
        return false;
    w->word = read.word, w->n = read.n;
    if (read.defaults.n)
        draft_remark(x, "unless the environment says otherwise (--args NAME=VALUE): %s",
                     read.defaults.s);
    if (read.taken.n) draft_remark(x, "nothing is run there: the arguments of %s", read.taken.s);
    return true;
}

/* ---- arguments ---- */
typedef struct {
    Loc at[96]; /* of the rows of the table that were given */
    int64_t tp, cp, pp, ep, etp, experts, vpp, chunks, layers, hidden, ffn, heads, channels, groups,
        seq, micro, global, vocab, padded, multiple, positions, nodes, per_node, recompute_layers,
        topk, moe_ffn, q_rank, kv_rank, nope_dim, rope_dim, v_dim, router_groups, top_groups,
        shared_ffn, yarn_positions;
    double rope_base, rope_percent, eps, aux, z, yarn, mscale, mscale_all, router_factor;
    bool sp, zero, gqa, swiglu, no_bias, qkv_bias, qk_norm, untied, bf16, fp16, rope, fsdp,
        recompute_some, squared, embedding_is_layer, loss_is_layer, pre_softmax, own_fsdp,
        exact_gelu, rope_scaling, latent, router_bias, recompute_experts, other_model;
    double rope_factor;
    const char *norm, *sharding, *rope_type, *steps, *position, *granularity, *method, *cp_kind,
        *dispatcher, *scores, *balancing, *freq, *impl;
} Args;
/* M_FACTOR: a number that may be 0. */
typedef enum { M_SIZE, M_REAL, M_FACTOR, M_FLAG, M_TEXT } Take;
typedef struct {
    const char *name;
    Take take;
    size_t at;
} Row;
#define A(f) offsetof(Args, f)
static const Row rows[] = {
    {"tensor-model-parallel-size", M_SIZE, A(tp)},
    {"context-parallel-size", M_SIZE, A(cp)},
    {"pipeline-model-parallel-size", M_SIZE, A(pp)},
    {"expert-model-parallel-size", M_SIZE, A(ep)},
    {"expert-tensor-parallel-size", M_SIZE, A(etp)},
    {"num-experts", M_SIZE, A(experts)},
    {"moe-router-topk", M_SIZE, A(topk)},
    {"moe-ffn-hidden-size", M_SIZE, A(moe_ffn)},
    {"moe-token-dispatcher-type", M_TEXT, A(dispatcher)},
    {"moe-router-score-function", M_TEXT, A(scores)},
    {"moe-router-load-balancing-type", M_TEXT, A(balancing)},
    {"moe-router-pre-softmax", M_FLAG, A(pre_softmax)},
    {"moe-aux-loss-coeff", M_FACTOR, A(aux)},
    {"moe-z-loss-coeff", M_FACTOR, A(z)},
    {"moe-layer-freq", M_TEXT, A(freq)},
    {"moe-router-enable-expert-bias", M_FLAG, A(router_bias)},
    {"moe-router-num-groups", M_SIZE, A(router_groups)},
    {"moe-router-group-topk", M_SIZE, A(top_groups)},
    {"moe-router-topk-scaling-factor", M_REAL, A(router_factor)},
    {"moe-shared-expert-intermediate-size", M_SIZE, A(shared_ffn)},
    {"moe-layer-recompute", M_FLAG, A(recompute_experts)},
    {"multi-latent-attention", M_FLAG, A(latent)},
    {"q-lora-rank", M_SIZE, A(q_rank)},
    {"kv-lora-rank", M_SIZE, A(kv_rank)},
    {"qk-head-dim", M_SIZE, A(nope_dim)},
    {"qk-pos-emb-head-dim", M_SIZE, A(rope_dim)},
    {"v-head-dim", M_SIZE, A(v_dim)},
    {"rotary-scaling-factor", M_REAL, A(yarn)},
    {"yarn-original-max-position-embeddings", M_SIZE, A(yarn_positions)},
    {"mscale", M_FACTOR, A(mscale)},
    {"mscale-all-dim", M_FACTOR, A(mscale_all)},
    {"transformer-impl", M_TEXT, A(impl)},
    {"num-layers-per-virtual-pipeline-stage", M_SIZE, A(vpp)},
    {"num-virtual-stages-per-pipeline-rank", M_SIZE, A(chunks)},
    {"account-for-embedding-in-pipeline-split", M_FLAG, A(embedding_is_layer)},
    {"account-for-loss-in-pipeline-split", M_FLAG, A(loss_is_layer)},
    {"num-layers", M_SIZE, A(layers)},
    {"hidden-size", M_SIZE, A(hidden)},
    {"ffn-hidden-size", M_SIZE, A(ffn)},
    {"num-attention-heads", M_SIZE, A(heads)},
    {"kv-channels", M_SIZE, A(channels)},
    {"num-query-groups", M_SIZE, A(groups)},
    {"seq-length", M_SIZE, A(seq)},
    {"micro-batch-size", M_SIZE, A(micro)},
    {"global-batch-size", M_SIZE, A(global)},
    {"vocab-size", M_SIZE, A(vocab)},
    {"padded-vocab-size", M_SIZE, A(padded)},
    {"step-batch-size-schedule", M_TEXT, A(steps)},
    {"make-vocab-size-divisible-by", M_SIZE, A(multiple)},
    {"max-position-embeddings", M_SIZE, A(positions)},
    {"nnodes", M_SIZE, A(nodes)},
    {"nproc-per-node", M_SIZE, A(per_node)},
    {"nproc_per_node", M_SIZE, A(per_node)},
    {"recompute-num-layers", M_SIZE, A(recompute_layers)},
    {"rotary-base", M_REAL, A(rope_base)},
    {"rotary-percent", M_REAL, A(rope_percent)},
    {"norm-epsilon", M_REAL, A(eps)},
    {"sequence-parallel", M_FLAG, A(sp)},
    {"use-distributed-optimizer", M_FLAG, A(zero)},
    {"group-query-attention", M_FLAG, A(gqa)},
    {"swiglu", M_FLAG, A(swiglu)},
    {"disable-bias-linear", M_FLAG, A(no_bias)},
    {"add-qkv-bias", M_FLAG, A(qkv_bias)},
    {"qk-layernorm", M_FLAG, A(qk_norm)},
    {"untie-embeddings-and-output-weights", M_FLAG, A(untied)},
    {"bf16", M_FLAG, A(bf16)},
    {"fp16", M_FLAG, A(fp16)},
    {"use-rotary-position-embeddings", M_FLAG, A(rope)},
    {"use-torch-fsdp2", M_FLAG, A(fsdp)},
    {"use-megatron-fsdp", M_FLAG, A(own_fsdp)},
    {"data-parallel-sharding-strategy", M_TEXT, A(sharding)},
    {"no-bias-gelu-fusion", M_FLAG, A(exact_gelu)},
    {"use-rope-scaling", M_FLAG, A(rope_scaling)},
    {"rope-scaling-factor", M_REAL, A(rope_factor)},
    {"rope-type", M_TEXT, A(rope_type)},
    {"recompute-activations", M_FLAG, A(recompute_some)},
    {"squared-relu", M_FLAG, A(squared)},
    {"normalization", M_TEXT, A(norm)},
    {"position-embedding-type", M_TEXT, A(position)},
    {"recompute-granularity", M_TEXT, A(granularity)},
    {"recompute-method", M_TEXT, A(method)},
    {"cp-comm-type", M_TEXT, A(cp_kind)},
};
enum { N_ROWS = sizeof rows / sizeof *rows };
static_assert(N_ROWS <= sizeof((Args *)0)->at / sizeof(Loc), "a place for each");
/* Arguments about how a run is driven: they lay out nothing and change no value of a step. */
static const char skip_flags[] =
    " use-mcore-models use-flash-attn overlap-grad-reduce overlap-param-gather "
    "no-masked-softmax-fusion no-bias-swiglu-fusion "
    "no-bias-dropout-fusion no-rope-fusion no-gradient-accumulation-fusion no-load-optim "
    "no-load-rng no-save-optim no-save-rng log-throughput log-params-norm "
    "log-num-zeros-in-grad log-timers-to-tensorboard log-memory-to-tensorboard mock-data "
    "use-cpu-initialization no-create-attention-mask-in-dataloader "
    "attention-softmax-in-fp32 accumulate-allreduce-grads-in-fp32 "
    "cross-entropy-loss-fusion deterministic-mode exit-on-missing-checkpoint "
    "tp-comm-overlap standalone manual-gc use-fused-rmsnorm "
    "moe-grouped-gemm moe-permute-fusion moe-router-fusion moe-per-layer-logging "
    "moe-use-legacy-grouped-gemm overlap-moe-expert-parallel-comm no-persist-layer-norm "
    "no-ckpt-fully-parallel-save no-mmap-bin-files no-position-embedding profile "
    "no-check-for-nan-in-loss-and-grad init-model-with-meta-device use-nccl-ub "
    "fsdp-double-buffer fsdp-manual-registration calculate-per-token-loss finetune "
    "auto-detect-ckpt-format override-opt_param-scheduler use-checkpoint-opt_param-scheduler "
    "te-rng-tracker inference-rng-tracker record-memory-history moe-shared-expert-overlap "
    "log-validation-ppl-to-tensorboard disable-bf16-reduced-precision-matmul "
    "no-use-tokenizer-model-from-checkpoint-args export-te-mcore-model "
    "export-force-local-attention export-default-te-spec trust-remote-code "
    "enable-experimental use-te use-fused-weighted-squared-relu "
    "tokenizer-hf-include-special-tokens ";
static const char skip_one[] =
    " attention-backend tokenizer-type tokenizer-model vocab-file "
    "merge-file split train-iters train-samples lr min-lr lr-decay-style lr-decay-iters "
    "lr-warmup-iters lr-warmup-fraction lr-warmup-samples lr-decay-samples weight-decay "
    "clip-grad adam-beta1 adam-beta2 adam-eps log-interval save load save-interval "
    "eval-interval eval-iters tensorboard-dir wandb-project wandb-exp-name wandb-save-dir "
    "distributed-backend distributed-timeout-minutes seed init-method-std num-workers "
    "data-cache-path ckpt-format optimizer hidden-dropout attention-dropout master-addr "
    "master-port master_addr master_port node-rank node_rank rdzv-backend rdzv-endpoint "
    "rdzv_backend rdzv_endpoint rdzv-id initial-loss-scale manual-gc-interval "
    "tensorboard-log-interval ddp-bucket-size rotary-seq-len-interpolation-factor "
    "moe-router-dtype exit-duration-in-mins exit-interval profile-step-start "
    "profile-step-end empty-unused-memory-level decoupled-lr decoupled-min-lr "
    "tiktoken-pattern lr-wsd-decay-iters weight-decay-incr-style start-weight-decay "
    "end-weight-decay logging-level pretrained-checkpoint dataloader-type rerun-mode "
    "cuda-graph-impl save-retain-interval profile-ranks "
    "inference-max-seq-length inference-max-requests grpo-prompts-per-step grpo-iterations "
    "grpo-clamp-eps-lower grpo-clamp-eps-upper grpo-kl-beta grpo-entropy-term-weight "
    "langrl-env-config dist-ckpt-strictness moe-token-drop-policy rl-sequence-packing-algo "
    "moe-router-bias-update-rate log-dir redirects tee cross-entropy-fusion-impl ";
/* The same model on the same ranks in numbers that the plan does not make: told one by one. */
static const struct {
    const char *name, *what;
    bool value;
} other_numbers[] = {
    {"fp8-format", "products are of 8 bits there, here of the plan's dtype", true},
    {"fp4-format", "products are of 4 bits there, here of the plan's dtype", true},
    {"fp8-recipe", "how products of 8 bits are scaled", true},
    {"fp8-margin", "how products of 8 bits are scaled", true},
    {"fp8-interval", "how products of 8 bits are scaled", true},
    {"fp8-amax-history-len", "how products of 8 bits are scaled", true},
    {"fp8-amax-compute-algo", "how products of 8 bits are scaled", true},
    {"fp8-param-gather", "parameters are gathered in 8 bits there: fewer bytes than here", false},
    {"no-fp8-wgrad", "gradients of weights are of more bits than products there", false},
    {"grad-reduce-in-bf16", "gradients are summed in bf16 there, here in the plan's dtype", false},
    {"apply-layernorm-1p",
     "weights of norms are held less 1 there: the values that they hold "
     "differ by 1, no layout does",
     false},
    {"eod-mask-loss", "tokens at the end of documents have no loss there, here all have", false},
    {"grpo-group-size", "the loss is GRPO's there, here that of the next token", true},
    {"rl-use-sequence-packing", "a row packs several sequences there, here it is one", false}};
/* Of models that these arguments say in parts and no row of ours says: a config does. */
static const struct {
    const char *name;
    bool value;
} of_models[] = {{"quick-geglu", false},
                 {"glu-linear-offset", true},
                 {"activation-func-clamp-value", true},
                 {"softmax-type", true},
                 {"window-size", true},
                 {"window-attn-skip-freq", true},
                 {"enable-gpt-oss", false},
                 {"no-rope-freq", true},
                 {"export-qk-l2-norm", false},
                 {"export-moe-apply-probs-on-input", false},
                 {"openai-gelu", false},
                 {"hybrid-override-pattern", true},
                 {"is-hybrid-model", false},
                 {"mamba-num-heads", true},
                 {"mamba-head-dim", true},
                 {"mamba-num-groups", true},
                 {"mamba-state-dim", true}};
enum { N_MODELS = sizeof of_models / sizeof *of_models };
static int model_of(const char *name) {
    for (int i = 0; i < N_MODELS; i++)
        if (strcmp(of_models[i].name, name) == 0) return i;
    return -1;
}
enum { N_OTHER = sizeof other_numbers / sizeof *other_numbers };
static int other_of(const char *name) {
    for (int i = 0; i < N_OTHER; i++)
        if (strcmp(other_numbers[i].name, name) == 0) return i;
    return -1;
}
static const char skip_many[] = " rampup-batch-size data-path train-data-path valid-data-path "
                                "test-data-path recompute-modules ";
static int row_of(const char *name) {
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return i;
    return -1;
}
static void store(Draft *x, Args *a, const Row *r, const Word *w) {
    char *end = NULL;
    void *to = (char *)a + r->at;
    errno = 0;
    if (w->why) {
        diag_error(x->d, "E0217", w->loc,
                   r->take == M_TEXT ? "write the word that the variable has"
                                     : "write the number that the variable has",
                   "--%s wants a value, and '%s' is none yet: %s", r->name, w->s, w->why);
    } else if (r->take == M_TEXT) {
        *(const char **)to = w->s;
    } else if (r->take == M_REAL || r->take == M_FACTOR) {
        double v = strtod(w->s, &end);
        bool zero = r->take == M_FACTOR;
        if (end == w->s || *end || !((v > 0 || (zero && v == 0)) && v < 1e18))
            diag_error(x->d, "E0309", w->loc, NULL, "--%s wants a number%s above 0, not '%s'",
                       r->name, zero ? ", 0 or" : "", w->s);
        else *(double *)to = v;
    } else {
        long long v = strtoll(w->s, &end, 10);
        if (end == w->s || *end || errno || v < 1 || v > (long long)1 << 30)
            diag_error(x->d, "E0302", w->loc, NULL, "--%s wants a whole number above 0, not '%s'",
                       r->name, w->s);
        else *(int64_t *)to = v;
    }
}
static void unknown(Draft *x, const Word *w, const char *name) {
    const char *names[N_ROWS + 1] = {0};
    for (int i = 0; i < N_ROWS; i++) names[i] = rows[i].name;
    const char *near = diag_nearest(name, names);
    diag_error(x->d, "E0201", w->loc,
               near ? arena_printf(x->a, "did you mean --%s?", near)
                    : "leave it out if it changes neither layouts nor values",
               "unknown argument '%s'", w->s);
}
/* The value of the argument in word i, behind '=' or the next word; "" if there is none. */
static Word value_of(const Words *w, int i) {
    Word v = w->word[i];
    const char *eq = strchr(v.s, '=');
    if (eq) v.s = eq + 1;
    else if (i + 1 < w->n) v = w->word[i + 1];
    else v.s = "", v.why = NULL;
    return v;
}
/* Does every branch of the `if` that decides on word i give its argument, with this value? */
static bool given_alike(const Words *w, int i, const Word *value) {
    const Word *here = &w->word[i];
    const ShellChoice *choice = here->choice;
    size_t n = strcspn(here->s, "=");
    if (!choice || !choice->whole || (value && value->why && value->choice != choice)) return false;
    for (int branch = 1; branch <= choice->branches; branch++) {
        bool found = false;
        for (int k = 0; k < w->n && !found; k++) {
            const Word *there = &w->word[k];
            if (there->choice != choice || there->branch != branch || strcspn(there->s, "=") != n ||
                strncmp(there->s, here->s, n) != 0)
                continue;
            Word v = value_of(w, k);
            found = !value || ((!v.why || v.choice == choice) && strcmp(v.s, value->s) == 0);
        }
        if (!found) return false;
    }
    return true;
}
/* One argument and its value; gives the index behind it. */
static int argument(Words *w, Args *a, int i) {
    Draft *x = w->x;
    const Word *here = &w->word[i];
    const char *eq = strchr(here->s, '=');
    size_t n = eq ? (size_t)(eq - here->s) - 2 : strlen(here->s) - 2;
    const char *name = arena_strndup(x->a, here->s + 2, n);
    int r = row_of(name), other = other_of(name), model = model_of(name);
    int wants = r >= 0       ? rows[r].take != M_FLAG
                : model >= 0 ? of_models[model].value
                : other >= 0 ? other_numbers[other].value
                             : text_has_word(skip_one, name);
    Word value = value_of(w, i);
    if (r < 0 && other < 0 && model < 0 && !wants && !text_has_word(skip_flags, name) &&
        !text_has_word(skip_many, name)) {
        unknown(x, here, name);
        while (i + 1 < w->n && strncmp(w->word[i + 1].s, "--", 2) != 0) i++;
        return i + 1;
    }
    if (eq && !wants && !text_has_word(skip_many, name)) { /* as argparse has it */
        diag_error(x->d, "E0301", here->loc, "leave the argument out to say no",
                   "--%s is a flag: it takes no value, here '%s'", name, value.s);
        return i + 1;
    }
    if (wants && (!*value.s || (!eq && strncmp(value.s, "--", 2) == 0))) {
        diag_error(x->d, "E0208", here->loc, NULL, "--%s wants a value", name);
        return i + 1;
    }
    if (other >= 0) draft_remark(x, "--%s: %s", name, other_numbers[other].what);
    a->other_model |= model >= 0;
    if (model >= 0 && !x->in->model && !x->in->config)
        diag_error(x->d, "E0214", here->loc,
                   "name the whole model beside it: --config config.json, or --model (`list "
                   "models`)",
                   "--%s: not supported by this version", name);
    else if (model >= 0) draft_remark(x, "--%s is not read: the model is named", name);
    if (r >= 0) a->at[r] = here->loc;
    bool alike = r >= 0 && here->why && given_alike(w, i, wants ? &value : NULL);
    if (alike) value.why = NULL;
    if (r >= 0 && here->why && !eq && !alike) {
        diag_error(x->d, "E0217", here->loc, "write it where it is decided, or leave it out",
                   "--%s: %s", name, here->why);
        return i + 1 + wants;
    }
    if (r >= 0 && !wants) *(bool *)((char *)a + rows[r].at) = true;
    else if (r >= 0) store(x, a, &rows[r], &value);
    if (text_has_word(skip_many, name)) /* what nobody knows may be arguments, but for the first */
        for (int first = i; i + 1 < w->n && strncmp(w->word[i + 1].s, "--", 2) != 0; i++)
            if (i > first && w->word[i + 1].why) break;
    return i + 1 + (wants && !eq);
}
/* Arguments that are there and are not read, once. */
static void tell_skipped(const Words *w) {
    const char *const lists[] = {skip_flags, skip_one, skip_many};
    Str s = str_new(w->x->a);
    for (int i = 0; i < w->n; i++) {
        const char *name = w->word[i].s;
        if (strncmp(name, "--", 2) != 0 || !name[2]) continue;
        name = arena_strndup(w->x->a, name + 2, strcspn(name + 2, "="));
        for (int k = 0; k < 3; k++)
            if (text_has_word(lists[k], name)) str_addf(&s, "%s--%s", s.n ? " " : "", name);
    }
    if (s.n) draft_remark(w->x, "not read, for they change neither layouts nor values: %s", s.s);
}
/* torchrun, python, a program of Python: what stands before the arguments. */
static bool launches(const char *s, const char *before) {
    static const char *const behind[][2] = {
        {"uv", " run "},
        {"python", " -m -u "},
        {"python3", " -m -u "},
        {"-u", " -m "},
        {"run", " -m --module "},
        {"-m", " torch.distributed.run torch.distributed.launch pretrain_gpt "}};
    for (size_t i = 0; before && i < sizeof behind / sizeof *behind; i++)
        if (strcmp(before, behind[i][0]) == 0 && text_has_word(behind[i][1], s)) return true;
    return text_has_word(" torchrun python python3 uv ", s) || text_before(s, ".py");
}
static void read_arguments(Words *w, Args *a) {
    const Word *launched = NULL;
    for (int i = 0; i < w->n;) {
        const Word *here = &w->word[i];
        if (strncmp(here->s, "--", 2) == 0 && here->s[2]) {
            i = argument(w, a, i);
            continue;
        }
        bool starts = !here->why && launches(here->s, i ? w->word[i - 1].s : NULL);
        if (starts && here->first && launched)
            diag_error(w->x->d, "E0214", here->loc, "leave one of them out",
                       "a second program is started, the first in line %d: one plan is of one",
                       launched->loc.line);
        else if (!starts)
            diag_error(
                w->x->d, "E0201", here->loc,
                here->why
                    ? arena_printf(w->x->a, "%s: write the arguments that it stands for", here->why)
                    : "write the arguments that it stands for; a text with blanks stays one word "
                      "in \"${ARGS[@]}\", with the quotes",
                "'%s' is no argument of Megatron", here->s);
        if (starts && here->first) launched = here;
        i++;
    }
}

/* ---- what they say ---- */
static Loc at(const Draft *x, const Args *a, const char *name) {
    int r = row_of(name);
    return r >= 0 && a->at[r].file ? a->at[r] : (Loc){x->file, 1, 1};
}
static void later(Draft *x, const Args *a, const char *name, const char *hint) {
    diag_error(x->d, "E0214", at(x, a, name), hint, "--%s: not supported by this version", name);
}
static void stops(Draft *x, const Args *a, const char *name, const char *what, int64_t n,
                  int64_t by) {
    diag_error(x->d, "E0307", at(x, a, name), NULL,
               "%s: %lld is no multiple of %lld: Megatron stops", what, (long long)n,
               (long long)by);
}
static bool is(const char *text, const char *word) { return text && strcmp(text, word) == 0; }
/* The router of DeepSeek-V3, beside latent attention, or a softmax without groups or a factor. */
static void check_router(Draft *x, const Args *a) {
    bool sigmoid = is(a->scores, "sigmoid");
    int64_t topk = a->topk ? a->topk : 2;
    if (a->scores && !is(a->scores, "softmax") && !(sigmoid && a->latent))
        later(x, a, "moe-router-score-function",
              "--moe-router-score-function softmax, or sigmoid with --multi-latent-attention");
    else if (sigmoid && !a->router_bias)
        later(x, a, "moe-router-score-function", "--moe-router-enable-expert-bias too");
    if (a->router_bias && !sigmoid)
        diag_error(x->d, "E0307", at(x, a, "moe-router-enable-expert-bias"),
                   "--moe-router-score-function sigmoid",
                   "a bias of experts beside a softmax: Megatron stops");
    if (!sigmoid && a->router_factor > 0 && a->router_factor != 1)
        later(x, a, "moe-router-topk-scaling-factor", "1.0, or a router of sigmoids");
    if (!sigmoid && a->top_groups)
        later(x, a, "moe-router-group-topk", "leave it out, or a router of sigmoids");
    /* a group's score is the sum of its best topk / top_groups; here of its best two */
    if (sigmoid && a->top_groups && topk / a->top_groups != 2)
        later(x, a, "moe-router-group-topk", "half of --moe-router-topk");
    if (a->shared_ffn && !a->latent)
        later(x, a, "moe-shared-expert-intermediate-size",
              "leave it out, or --multi-latent-attention");
    else if (a->shared_ffn && a->moe_ffn && a->shared_ffn % a->moe_ffn)
        later(x, a, "moe-shared-expert-intermediate-size", "a multiple of --moe-ffn-hidden-size");
}
/* Multi-latent attention: what Megatron core makes of it with Transformer Engine. */
static void check_latent(Draft *x, const Args *a) {
    static const char name[] = "multi-latent-attention";
    static const char *const own[] = {
        "q-lora-rank", "kv-lora-rank",          "qk-head-dim", "qk-pos-emb-head-dim",
        "v-head-dim",  "rotary-scaling-factor", "mscale",      "mscale-all-dim"};
    for (size_t i = 0; i < sizeof own / sizeof *own && !a->latent; i++)
        if (a->at[row_of(own[i])].file)
            draft_remark(x, "--%s is not read: there is no --%s", own[i], name);
    if (!a->latent) return;
    if (!a->no_bias) later(x, a, name, "--disable-bias-linear too");
    if (!a->qk_norm) later(x, a, name, "--qk-layernorm too");
    if (a->tp > 1 && !a->sp) later(x, a, name, "--sequence-parallel too");
    if (a->gqa) later(x, a, "group-query-attention", "leave it out: each head has its own keys");
    if (is(a->impl, "local"))
        later(x, a, "transformer-impl", "--transformer-impl transformer_engine");
}
/* Experts: what a plan cannot say of them, and where Megatron stops. */
static void check_experts(Draft *x, const Args *a) {
    static const char *const of[] = {"expert-model-parallel-size", "expert-tensor-parallel-size",
                                     "moe-router-topk", "moe-ffn-hidden-size"};
    int64_t etp = a->etp ? a->etp : a->tp;

    for (int i = 0; i < 4 && !a->experts && !x->in->model && !x->in->config; i++)
        if (a->at[row_of(of[i])].file)
            diag_error(x->d, "E0307", at(x, a, of[i]), "--num-experts",
                       "--%s is of experts, and there are none", of[i]);
    check_router(x, a);
    if (a->dispatcher && !is(a->dispatcher, "alltoall") && !is(a->dispatcher, "allgather"))
        later(x, a, "moe-token-dispatcher-type", "--moe-token-dispatcher-type alltoall");
    if (is(a->balancing, "sinkhorn")) later(x, a, "moe-router-load-balancing-type", "aux_loss");
    if (a->aux > 0 || a->z > 0)
        diag_warn(x->d, "E0214", at(x, a, a->aux > 0 ? "moe-aux-loss-coeff" : "moe-z-loss-coeff"),
                  "`moe: {aux_loss: .., aux_coef: .., z_coef: ..}` in the plan says it",
                  "the router's terms of the loss are left out: its gradient is that of the rest");
    if (a->ep == 1 && etp == 1 && a->tp > 1 && (a->experts || a->at[row_of(of[1])].file))
        later(x, a, of[1], "leave it out, or --expert-model-parallel-size above 1");
    bool given = x->in->model || x->in->config, biases = a->experts && !a->no_bias && !given;
    if (given && x->family && etp > 1 && model_family_modules(x->family) & MODULES_EXPERTS_BIASED)
        diag_error(x->d, "E0307", at(x, a, a->etp ? of[1] : "tensor-model-parallel-size"),
                   "--expert-tensor-parallel-size 1",
                   "experts with biases, as %s has them, under expert tensor parallelism of %lld "
                   "ranks: Megatron stops",
                   x->family, (long long)etp);
    else if (biases && etp > 1)
        diag_error(x->d, "E0307", at(x, a, "num-experts"), "--disable-bias-linear",
                   "experts with biases, Megatron's default, under expert tensor parallelism: "
                   "Megatron stops");
    else if (biases)
        diag_error(x->d, "E0214", at(x, a, "num-experts"),
                   "--disable-bias-linear, or the whole model by --model or --config",
                   "experts and a router with biases, Megatron's default: not supported by this "
                   "version");
    if (a->experts && a->experts % a->ep) stops(x, a, of[0], "experts", a->experts, a->ep);
    if ((a->experts || a->ep > 1) && a->tp > 1 && !a->sp)
        diag_error(x->d, "E0307", at(x, a, "tensor-model-parallel-size"), "--sequence-parallel",
                   "experts under tensor parallelism without --sequence-parallel: Megatron stops");
}
/* Nemotron: an ungated MLP of squared relus between LayerNorms, positions turned. */
static bool is_nemotron(const Args *a) {
    return a->squared && !a->swiglu && (!a->norm || is(a->norm, "LayerNorm")) && a->no_bias &&
           (a->rope || is(a->position, "rope")) && !a->experts && !a->qk_norm && !a->latent &&
           !a->qkv_bias;
}
static void refuse(Draft *x, const Args *a) {
    if (a->fsdp) later(x, a, "use-torch-fsdp2", "--use-distributed-optimizer, or neither");
    check_experts(x, a);
    check_latent(x, a);
    if (a->rope_type && !is(a->rope_type, "rope") && !(a->latent && is(a->rope_type, "yarn")))
        later(x, a, "rope-type", "--rope-type rope");
    if (a->sharding && !a->own_fsdp)
        draft_remark(x, "--data-parallel-sharding-strategy is not read: there is no "
                        "--use-megatron-fsdp");
    bool nemotron = is_nemotron(a);
    if (a->squared && !nemotron)
        later(x, a, "squared-relu",
              "--swiglu, or Nemotron's others: LayerNorm, --disable-bias-linear, rope");
    if (a->rope_percent > 0 && a->rope_percent < 1 && !nemotron)
        later(x, a, "rotary-percent", "leave it at 1.0");
}
/* All of Megatron's defaults: GPT-3's kind of model. */
static bool is_gpt(const Args *a) {
    return !a->swiglu && (!a->norm || is(a->norm, "LayerNorm")) && !a->rope && !a->no_bias &&
           (!a->position || is(a->position, "learned_absolute")) && !a->gqa && !a->experts &&
           !a->qk_norm && !a->latent && (!a->channels || a->channels * a->heads == a->hidden);
}
/* Beside it a model of Llama's type, with experts or without. */
static void check_model(Draft *x, const Args *a) {
    static const struct {
        const char *name;
        size_t at;
    } sizes[] = {{"num-layers", A(layers)},
                 {"hidden-size", A(hidden)},
                 {"num-attention-heads", A(heads)},
                 {"vocab-size", A(vocab)}};
    for (int i = 0; i < 4; i++)
        if (!*(const int64_t *)((const char *)a + sizes[i].at) &&
            !a->at[row_of(sizes[i].name)].file)
            diag_error(x->d, "E0208", ((Loc){x->file, 1, 1}),
                       arena_printf(x->a, "give --%s, or the whole model by --model or --config",
                                    sizes[i].name),
                       "--%s is missing", sizes[i].name);
    if (is_gpt(a) || is_nemotron(a) || a->other_model) return; /* the last one was told */
    if (!a->swiglu)
        diag_error(x->d, "E0214", ((Loc){x->file, 1, 1}), "--swiglu",
                   "without --swiglu the MLP has no gate: not supported by this version, but with "
                   "LayerNorm, biases and learned positions");
    if (!is(a->norm, "RMSNorm"))
        diag_error(x->d, "E0214", at(x, a, "normalization"), "--normalization RMSNorm",
                   "Megatron's default normalization, LayerNorm: not supported by this version, "
                   "but in a model of GPT-3's kind");
    if (!a->rope && !is(a->position, "rope"))
        diag_error(x->d, "E0214", at(x, a, "position-embedding-type"),
                   "--position-embedding-type rope",
                   "learned positions, Megatron's default: not supported by this version, but in a "
                   "model of GPT-3's kind");
}
static const char *yes(bool b) { return b ? "true" : "false"; }
/* The router: the best k of a softmax; Megatron takes it of these alone, --moe-router-pre-softmax
 * of all experts, and leaves their sum below 1. */
static const char *experts_text(Draft *x, const Args *a, int64_t ffn) {
    if (!a->experts) return "";
    return arena_printf(x->a,
                        ", model_type: qwen3_moe, num_experts: %lld, num_experts_per_tok: %lld, "
                        "moe_intermediate_size: %lld, norm_topk_prob: %s",
                        (long long)a->experts, (long long)(a->topk ? a->topk : 2),
                        (long long)(a->moe_ffn ? a->moe_ffn : ffn), yes(!a->pre_softmax));
}
/* Layers without experts before the first that has them, to *dense; false: others lie between. */
static bool experts_begin(const bool *experts, int64_t n, int64_t *dense) {
    for (*dense = 0; *dense < n && !experts[*dense];) ++*dense;
    for (int64_t i = *dense; i < n; i++)
        if (!experts[i]) return false;
    return true;
}
/* --moe-layer-freq as keys of a config; "" where every layer has experts. */
static const char *layers_text(Draft *x, const Args *a) {
    static const char name[] = "moe-layer-freq";
    bool *experts = ARENA_ARRAY(x->a, bool, LAYER_FREQ_MOST);
    int64_t first = a->experts ? 0 : a->layers;
    if (a->freq && a->experts) {
        const char *why = layer_freq_read(a->freq, a->layers, experts);
        if (why) {
            diag_error(x->d, "E0307", at(x, a, name), NULL, "--%s '%s' %s", name, a->freq, why);
            return "";
        }
        bool apart = experts_begin(experts, a->layers, &first);
        if (first == a->layers)
            diag_error(x->d, "E0307", at(x, a, name), "leave --num-experts out",
                       "--%s leaves no layer with experts", name);
        else if (!apart && a->latent) later(x, a, name, "layers without experts first");
        if (!x->in->full) x->layers = first + 1; /* one with experts is among them */
    }
    if (a->latent) return arena_printf(x->a, ", first_k_dense_replace: %lld", (long long)first);
    Str s = str_new(x->a);
    for (int64_t i = 0; a->freq && a->experts && i < a->layers; i++)
        if (!experts[i]) str_addf(&s, "%s%lld", s.n ? ", " : ", mlp_only_layers: [", (long long)i);
    if (s.n) str_add(&s, "]");
    return s.s;
}
/* DeepSeek's attention, and its experts or those of a softmax. */
static const char *latent_router(Draft *x, const Args *a, int64_t ffn) {
    int64_t width = a->moe_ffn ? a->moe_ffn : ffn, topk = a->topk ? a->topk : 2;
    if (!a->experts) return "";
    const char *router =
        is(a->scores, "sigmoid")
            ? arena_printf(x->a,
                           ", n_group: %lld, topk_group: %lld, routed_scaling_factor: %.10g, "
                           "norm_topk_prob: %s",
                           (long long)(a->top_groups ? a->router_groups : 1),
                           (long long)(a->top_groups ? a->top_groups : 1),
                           a->router_factor > 0 ? a->router_factor : 1.0, yes(topk > 1))
            : arena_printf(x->a, ", router: qwen3_moe, norm_topk_prob: %s", yes(!a->pre_softmax));
    return arena_printf(x->a,
                        ", n_routed_experts: %lld, num_experts_per_tok: %lld, "
                        "moe_intermediate_size: %lld, n_shared_experts: %lld%s",
                        (long long)a->experts, (long long)topk, (long long)width,
                        (long long)(a->shared_ffn / width), router);
}
static int64_t or_else(int64_t n, int64_t otherwise) { return n ? n : otherwise; }
/* A scale of 0 is none; where only the other one is 1, files leave both out. */
static const char *yarn_text(Draft *x, const Args *a) {
    if (!(a->yarn > 1) || is(a->rope_type, "rope")) return "";
    double scale = a->at[row_of("mscale")].file ? a->mscale : 1;
    const char *scales = "";
    if (scale > 0 && a->mscale_all > 0)
        scales = arena_printf(x->a, ", mscale: %.10g, mscale_all_dim: %.10g", scale, a->mscale_all);
    else if (scale != 1 || a->mscale_all > 0)
        later(x, a, "mscale", "1.0, or both --mscale and --mscale-all-dim above 0");
    return arena_printf(x->a,
                        ", rope_scaling: {rope_type: yarn, factor: %.10g%s, "
                        "original_max_position_embeddings: %lld}",
                        a->yarn, scales, (long long)or_else(a->yarn_positions, 4096));
}
static void write_latent(Draft *x, const Args *a, int64_t ffn, int64_t multiple) {
    int64_t nope = or_else(a->nope_dim, 128), rope = or_else(a->rope_dim, 64);
    x->heads = x->kv_heads = a->heads;
    x->head_dim = or_else(a->v_dim, 128); /* what widths are made small by divides all three */
    if (nope < x->head_dim) x->head_dim = nope;
    if (rope < x->head_dim) x->head_dim = rope;
    x->model_keys = arena_printf(
        x->a,
        "config: {model_type: deepseek_v3, hidden_size: %lld, intermediate_size: %lld, "
        "num_attention_heads: %lld, num_key_value_heads: %lld, num_hidden_layers: %lld, "
        "vocab_size: %lld, rms_norm_eps: %.10g, rope_theta: %.10g, tie_word_embeddings: %s, "
        "q_lora_rank: %s, kv_lora_rank: %lld, qk_nope_head_dim: %lld, qk_rope_head_dim: %lld, "
        "v_head_dim: %lld%s%s%s}, vocab_multiple: %lld",
        (long long)a->hidden, (long long)ffn, (long long)a->heads, (long long)a->heads,
        (long long)a->layers, (long long)a->vocab, a->eps > 0 ? a->eps : 1e-5,
        a->rope_base > 0 ? a->rope_base : 1e4, yes(!a->untied),
        a->q_rank ? arena_printf(x->a, "%lld", (long long)a->q_rank) : "null",
        (long long)or_else(a->kv_rank, 32), (long long)nope, (long long)rope,
        (long long)or_else(a->v_dim, 128), yarn_text(x, a), layers_text(x, a),
        latent_router(x, a, ffn), (long long)multiple);
}
static int64_t vocab_multiple(const Args *a) {
    if (a->padded) return 1; /* what the vocabulary has then */
    return (a->multiple ? a->multiple : 128) * a->tp;
}
/* The GELU that is fused with a bias is its approximation by tanh. */
static void write_gpt(Draft *x, const Args *a) {
    x->model_keys = arena_printf(
        x->a,
        "config: {model_type: megatron_gpt, n_embd: %lld, n_inner: %lld, n_head: %lld, n_layer: "
        "%lld, n_positions: %lld, vocab_size: %lld, layer_norm_epsilon: %.10g, "
        "activation_function: %s, attention_bias: true, mlp_bias: true, tie_word_embeddings: %s}, "
        "vocab_multiple: %lld",
        (long long)a->hidden, (long long)x->ffn, (long long)a->heads, (long long)a->layers,
        (long long)(a->positions ? a->positions
                    : a->seq     ? a->seq
                                 : 1024),
        (long long)a->vocab, a->eps > 0 ? a->eps : 1e-5,
        a->exact_gelu ? "gelu" : "gelu_pytorch_tanh", yes(!a->untied),
        (long long)vocab_multiple(a));
}
static void write_nemotron(Draft *x, const Args *a) {
    x->model_keys = arena_printf(
        x->a,
        "config: {model_type: nemotron, hidden_size: %lld, intermediate_size: %lld, "
        "num_attention_heads: %lld, num_key_value_heads: %lld, head_dim: %lld, num_hidden_layers: "
        "%lld, vocab_size: %lld, norm_eps: %.10g, rope_theta: %.10g, partial_rotary_factor: %.10g, "
        "tie_word_embeddings: %s}, vocab_multiple: %lld",
        (long long)a->hidden, (long long)x->ffn, (long long)a->heads, (long long)x->kv_heads,
        (long long)x->head_dim, (long long)a->layers, (long long)a->vocab,
        a->eps > 0 ? a->eps : 1e-5, a->rope_base > 0 ? a->rope_base : 1e4,
        a->rope_percent > 0 ? a->rope_percent : 1.0, yes(!a->untied), (long long)vocab_multiple(a));
}
static const char *scaling_text(Draft *x, const Args *a) {
    if (!a->rope_scaling) return "";
    return arena_printf(x->a,
                        ", rope_scaling: {rope_type: llama3, factor: %.10g, low_freq_factor: 1, "
                        "high_freq_factor: 4, original_max_position_embeddings: 8192}",
                        a->rope_factor > 0 ? a->rope_factor : 8.0);
}
static void write_model(Draft *x, const Args *a) {
    if (x->in->model || x->in->config) return;
    check_model(x, a);
    if (diags_errors(x->d)) return;
    bool gpt = is_gpt(a), nemotron = is_nemotron(a);
    int64_t channels = a->channels ? a->channels : a->hidden / a->heads,
            ffn = a->ffn            ? a->ffn
                  : gpt || nemotron ? a->hidden * 4
                                    : a->hidden * 8 / 3 / 64 * 64,
            groups = !a->gqa     ? a->heads
                     : a->groups ? a->groups
                                 : 1;
    if (a->groups && !a->gqa && a->groups != a->heads)
        draft_remark(x, "--num-query-groups is not read: there is no --group-query-attention");
    bool bias = !a->no_bias, qkv = bias || a->qkv_bias;
    x->hidden = a->hidden, x->head_dim = channels, x->n_layers = a->layers;
    x->heads = a->heads, x->kv_heads = groups, x->ffn = ffn;
    x->model_loc = at(x, a, "hidden-size");
    if (gpt) {
        write_gpt(x, a);
        return;
    }
    if (nemotron) {
        write_nemotron(x, a);
        return;
    }
    if (a->latent) {
        write_latent(x, a, ffn, vocab_multiple(a));
        return;
    }
    x->model_keys = arena_printf(
        x->a,
        "config: {hidden_size: %lld, intermediate_size: %lld, num_attention_heads: %lld, "
        "num_key_value_heads: %lld, head_dim: %lld, num_hidden_layers: %lld, vocab_size: %lld, "
        "rms_norm_eps: %.10g, rope_theta: %.10g, tie_word_embeddings: %s, qk_norm: %s, q_bias: %s, "
        "k_bias: %s, v_bias: %s, o_bias: %s, gate_bias: %s, up_bias: %s, down_bias: %s%s%s%s}, "
        "vocab_multiple: %lld",
        (long long)a->hidden, (long long)ffn, (long long)a->heads, (long long)groups,
        (long long)channels, (long long)a->layers, (long long)a->vocab, a->eps > 0 ? a->eps : 1e-5,
        a->rope_base > 0 ? a->rope_base : 1e4, yes(!a->untied), yes(a->qk_norm), yes(qkv), yes(qkv),
        yes(qkv), yes(bias), yes(bias), yes(bias), yes(bias), experts_text(x, a, ffn),
        a->experts ? layers_text(x, a) : "", scaling_text(x, a), (long long)vocab_multiple(a));
}
/* Megatron stops where tp does not divide what it cuts (divide() in its core/utils.py); a plan may
 * be uneven, so it would run here and not there. */
static void check_divides(Draft *x, const Args *a) {
    const struct {
        const char *what, *name;
        int64_t n;
        bool too; /* or tp a multiple of it */
    } row[] = {{"attention heads", "num-attention-heads", x->heads, false},
               {"query groups", "num-query-groups", x->kv_heads, true},
               {"the MLP's width", "ffn-hidden-size", x->ffn, false},
               {"the part of the sequence of a rank of cp", "seq-length",
                a->sp && a->seq % a->cp == 0 ? a->seq / a->cp : 0, false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int64_t n = row[i].n;
        if (n < 1 || n % a->tp == 0 || (row[i].too && a->tp % n == 0)) continue;
        Str s = str_new(x->a);
        int64_t last = 0;
        for (int64_t k = 1; k <= 64; k++) {
            if (n % k && !(row[i].too && k % n == 0)) continue;
            if (last) text_add_choice(&s, last, false);
            last = k;
        }
        text_add_choice(&s, last, true);
        diag_error(x->d, "E0307", at(x, a, "tensor-model-parallel-size"),
                   arena_printf(x->a, "--%s, or so many ranks: %s", row[i].name, s.s),
                   "%s: %lld is not divided by tensor parallelism of %lld, where Megatron stops",
                   row[i].what, (long long)n, (long long)a->tp);
    }
}
/* A pipeline takes the whole batch of a step. */
static void pipeline_batch(Draft *x, const Args *a) {
    if (a->global % x->batch)
        diag_error(x->d, "E0307", at(x, a, "global-batch-size"), NULL,
                   "a batch of %lld is no multiple of micro-batch-size times data parallel, %lld: "
                   "Megatron stops",
                   (long long)a->global, (long long)x->batch);
    else x->batch = a->global;
}
/* tp fastest, then cp, dp, pp (semantics.md 3.5). */
static void write_mesh(Draft *x, const Args *a) {
    static const char ranks_help[] = "more ranks (--args '--nnodes N' does), or smaller degrees";
    int64_t inner = a->tp * a->cp * a->pp, world = a->nodes * a->per_node,
            dp = draft_axis_size(x, "dp");
    Loc dp_at = {x->file, 1, 1};
    for (int i = 0; i < x->n_axes; i++) {
        const DraftAxis *m = &x->axis[i];
        int64_t says = strcmp(m->name, "tp") == 0   ? a->tp
                       : strcmp(m->name, "cp") == 0 ? a->cp
                       : strcmp(m->name, "pp") == 0 ? a->pp
                       : strcmp(m->name, "dp") == 0 ? m->size
                                                    : 0;
        if (says != m->size)
            diag_error(
                x->d, says ? "E0307" : "E0204", m->loc, "dp is what the arguments leave open",
                "axis %s of %lld ranks: the arguments say otherwise", m->name, (long long)m->size);
        if (strcmp(m->name, "dp") == 0) dp_at = m->loc;
    }
    if (a->per_node && world % inner)
        diag_error(
            x->d, "E0307", at(x, a, "nproc-per-node"), ranks_help,
            "%lld ranks are no multiple of tensor times context times pipeline parallel, %lld",
            (long long)world, (long long)inner);
    else if (a->per_node && !dp) dp = world / inner;
    int64_t apart = (a->etp ? a->etp : a->tp) * a->ep * a->pp;
    bool fits = !a->per_node || !a->experts || world % inner || world % apart == 0;
    if (!fits)
        diag_error(x->d, "E0307", at(x, a, "expert-model-parallel-size"), ranks_help,
                   "%lld ranks are no multiple of expert tensor times expert times pipeline "
                   "parallel, %lld: Megatron stops",
                   (long long)world, (long long)apart);
    if (!dp) {
        int64_t need = (a->etp ? a->etp : a->tp) * a->ep;
        for (dp = 1; dp < need && a->tp * a->cp * dp % need;) dp++;
        draft_remark(x,
                     "dp: %lld; the number of ranks does not stand in the arguments: --mesh dp=N",
                     (long long)dp);
    }
    x->n_axes = 0;
    if (a->pp > 1) draft_axis(x, "pp", a->pp, at(x, a, "pipeline-model-parallel-size"));
    const DraftAxis dense[] = {{"tp", a->tp, at(x, a, "tensor-model-parallel-size")},
                               {"cp", a->cp, at(x, a, "context-parallel-size")},
                               {"dp", dp, dp_at}},
                    experts[] = {
                        {"etp", a->etp ? a->etp : a->tp, at(x, a, "expert-tensor-parallel-size")},
                        {"ep", a->ep, at(x, a, "expert-model-parallel-size")}};
    draft_fold(x, dense, 3, experts, fits && (a->experts || a->ep > 1) ? 2 : 0);
    if (!x->n_axes) draft_axis(x, "tp", a->tp, at(x, a, "tensor-model-parallel-size"));
    x->batch = a->micro * dp;
    if (a->pp > 1 && a->global) pipeline_batch(x, a);
    else if (a->global > x->batch)
        draft_remark(x,
                     "global-batch-size: gradients are accumulated; the plan is one micro-batch");
}
/* Megatron's distributed optimizer and its own FSDP have flat buffers; parameters that FSDP cuts at
 * rest are cut by a dim here, which moves as many bytes. */
static void write_data_parallel(Draft *x, const Args *a) {
    static const struct {
        const char *strategy, *mode;
    } of[] = {{"optim", "{mode: zero1, form: megatron}"},
              {"optim_grads", "{mode: zero2, form: megatron}"},
              {"optim_grads_params", "{mode: fsdp}"}};
    const char *mode = a->zero ? of[0].mode : NULL, *by = "use-distributed-optimizer";
    if (!x->n_axes || (draft_axis_size(x, "dp") < 2 && a->cp < 2)) return;
    if (a->own_fsdp) {
        by = "data-parallel-sharding-strategy", mode = NULL;
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            if (is(a->sharding, of[i].strategy)) mode = of[i].mode;
        if (!mode && a->sharding && !is(a->sharding, "no_shard"))
            later(x, a, by, "no_shard, optim, optim_grads or optim_grads_params");
        if (mode == of[2].mode)
            draft_remark(x, "--use-megatron-fsdp: parameters lie in flat buffers there, here each "
                            "is cut by its dim 0");
    }
    if (mode) draft_key(x, "data_parallel", mode, at(x, a, by), arena_printf(x->a, "--%s", by));
}
/* Its down projections lie whole on every rank, as Transformer Engine has them ("duplicated"), and
 * see the rank's part of the sequence; what is made of the latents gathers it. The keys' turned
 * part is gathered too: there before it is turned, here after. */
static void write_latent_lines(Draft *x, const Args *a) {
    static const char *const lines[][2] = {
        {"", "{style: prepare_module_input, input: [shard(1)], desired_input: [shard(1)]}"},
        {".linear_q_down_proj", "sequence_parallel"},
        {".q_layernorm", "sequence_parallel"},
        {".linear_q_up_proj", "{style: colwise, input: shard(1), desired_input: replicate}"},
        {".linear_kv_down_proj", "sequence_parallel"},
        {".kv_layernorm", "sequence_parallel"},
        {".linear_kv_up_proj", "{style: colwise, input: shard(1), desired_input: replicate}"},
        {".linear_q", "{style: colwise, input: shard(1), desired_input: replicate}"}};
    Loc loc = at(x, a, "multi-latent-attention");
    for (int i = 0; i < 8; i++) {
        bool of_rank = i >= 1 && i <= 3, of_one = i == 7;
        if ((of_rank && !a->q_rank) || (of_one && a->q_rank)) continue;
        draft_line(x, arena_printf(x->a, "decoder.layers.*.self_attention%s", lines[i][0]), loc,
                   lines[i][1], loc, i ? NULL : "--multi-latent-attention");
    }
}
/* With learned positions Megatron does not reduce-scatter the words: language_model_embedding.py
 * adds whole ones and cuts the sum, `scatter_to_sequence_parallel_region`. */
static void write_positions(Draft *x, const Args *a) {
    Loc loc = at(x, a, "sequence-parallel");
    draft_line(x, "embedding.word_embeddings", loc, "embedding_rowwise", loc,
               "words are whole: positions are added before the sequence is cut");
    draft_line(x, "decoder.layers.0", loc,
               "{style: prepare_module_input, input: [replicate], desired_input: [shard(1)]}", loc,
               NULL);
}
static void write_plan(Draft *x, const Args *a) {
    bool sp = a->sp && a->tp > 1;
    if (sp) draft_group(x, "sp", "tp", at(x, a, "sequence-parallel"));
    bool experts = a->experts || a->ep > 1;
    if (a->tp > 1)
        draft_key(x, "recipe",
                  !sp       ? "megatron"
                  : experts ? "megatron-moe"
                            : "megatron-sp",
                  at(x, a, "tensor-model-parallel-size"),
                  sp ? "--sequence-parallel" : "--tensor-model-parallel-size");
    if (sp && a->latent) write_latent_lines(x, a);
    if (sp && is_gpt(a) && !x->in->model && !x->in->config) write_positions(x, a);
    if (a->ep > 1)
        draft_key(x, "moe",
                  is(a->dispatcher, "alltoall") ? "{dispatch: all_to_all}"
                                                : "{dispatch: all_gather}",
                  at(x, a, "moe-token-dispatcher-type"),
                  a->dispatcher ? NULL : "allgather is Megatron's default");
    write_data_parallel(x, a);
    if (a->cp > 1) {
        bool gather = a->cp_kind && strcmp(a->cp_kind, "all_gather") == 0;
        const char *mode = gather                                         ? "all_gather"
                           : a->cp_kind && strcmp(a->cp_kind, "a2a") == 0 ? "ulysses"
                                                                          : "ring";
        draft_key(x, "context_parallel",
                  arena_printf(x->a, "{mode: %s, order: zigzag, axis: cp}", mode),
                  at(x, a, a->cp_kind ? "cp-comm-type" : "context-parallel-size"), mode);
    }
    if (a->granularity && strcmp(a->granularity, "full") == 0)
        draft_key(x, "recompute", "block", at(x, a, "recompute-granularity"),
                  "--recompute-granularity full");
    else if (a->recompute_some || a->recompute_experts || a->granularity)
        diag_warn(x->d, "E0214",
                  at(x, a,
                     a->granularity      ? "recompute-granularity"
                     : a->recompute_some ? "recompute-activations"
                                         : "moe-layer-recompute"),
                  "--recompute-granularity full, or none",
                  "selective recomputation: the plan recomputes nothing");
}
/* Layers as arguments.py of Megatron-LM cuts them: every rank has as many, where the embedding or
 * the loss may count for one. */
static void pipeline(Draft *x, const Args *a) {
    int64_t all = draft_layers(x) + a->embedding_is_layer + a->loss_is_layer, each = all / a->pp,
            dp = draft_axis_size(x, "dp");
    const char *by =
        a->vpp ? "num-layers-per-virtual-pipeline-stage" : "num-virtual-stages-per-pipeline-rank";
    DraftPipeline p = {.ranks = a->pp,
                       .chunks = a->vpp      ? each / a->vpp
                                 : a->chunks ? a->chunks
                                             : 1,
                       .microbatches = x->batch / (a->micro * (dp ? dp : 1)),
                       .first_less = a->embedding_is_layer,
                       .last_less = a->loss_is_layer,
                       .pair = !a->untied || x->in->model || x->in->config,
                       .at = at(x, a, "pipeline-model-parallel-size"),
                       .schedule_loc = at(x, a, by),
                       .split_loc = at(x, a, "num-layers")};
    if (a->pp == 1) {
        if (a->vpp || a->chunks)
            diag_error(x->d, "E0307", at(x, a, by), "--pipeline-model-parallel-size 2, or more",
                       "--%s is of a pipeline, and there is none", by);
        return;
    }
    if (all % a->pp) stops(x, a, "pipeline-model-parallel-size", "layers", all, a->pp);
    else if (a->vpp && each % a->vpp) stops(x, a, by, "layers of a rank", each, a->vpp);
    else if (each % (p.chunks ? p.chunks : 1)) stops(x, a, by, "layers of a rank", each, p.chunks);
    else {
        p.schedule = p.chunks > 1 ? "interleaved" : "1f1b";
        draft_pipeline(x, &p);
    }
}
bool import_megatron(Draft *x) {
    Words w = {.x = x};
    Args a = {.tp = 1, .cp = 1, .pp = 1, .ep = 1, .micro = 1, .nodes = 1, .seq = 0};
    draft_options(x);
    if (!read_words(&w)) return false;
    read_arguments(&w, &a);
    if (a.padded) a.vocab = a.padded;
    refuse(x, &a);
    write_mesh(x, &a);
    write_model(x, &a);
    if (a.layers && !x->in->layers) { /* of a model that the command line names, so many */
        x->n_layers = a.layers;
        if (x->in->full && (x->in->model || x->in->config)) x->layers = a.layers;
    }
    check_divides(x, &a);
    if (a.steps && a.global)
        diag_error(x->d, "E0307", at(x, &a, "step-batch-size-schedule"), "leave one of them out",
                   "--step-batch-size-schedule beside --global-batch-size: Megatron stops");
    x->sequence = a.seq;
    x->data_loc = at(x, &a, "seq-length");
    if ((a.bf16 || a.fp16) && x->in->full && a.bf16) x->dtype = "bf16";
    else if (a.bf16 || a.fp16)
        draft_remark(x, "dtype: f32, half precision would hide small mistakes; --full keeps bf16");
    write_plan(x, &a);
    if (!diags_errors(x->d)) pipeline(x, &a);
    tell_skipped(&w);
    x->names = NAMES_MEGATRON;
    return !diags_errors(x->d);
}
