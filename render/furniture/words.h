/* Words and numbers that pictures print, made from a trace: every view says the same thing in the
 * same way. Refuses to draw and to compute anything that the trace does not hold. */
#ifndef SP_RENDER_WORDS_H
#define SP_RENDER_WORDS_H
#include "render/furniture/options.h"
#include "render/scene/scene.h"
#include "trace/collectives.h"
#include "trace/trace.h"

/* "[B/dp, S/(cp*sp), D]" with the signs of pictures: "*" becomes "·". */
const char *words_symbol(Arena *a, const char *s);
/* A file without its folders: a picture goes further than the machine it was made on. */
const char *words_file(const char *path);
/* "[1, 2048, 4096]" */
const char *words_shape(Arena *a, const int64_t *shape, int nd);
/* "(dp0 cp0 tp0)" of a rank; "" on a mesh without axes. */
const char *words_coords(Arena *a, const Trace *t, int64_t rank);
/* Mesh axes as people know them: parts of a split axis (tp.0, tp.1) count as one. Outermost first;
 * returns their number. */
typedef struct {
    const char *name;
    int64_t size, stride;
    int first, parts; /* in t->axes */
} WordAxis;
/* Fills out[], of at most `max`. */
int words_axes(Arena *a, const Trace *t, WordAxis *out, int max);
/* An axis list as the trace writes it ("tp.0*tp.1") for people ("tp"). */
const char *words_axis_list(Arena *a, const Trace *t, const char *axes);
/* The axes whose colour stands for a collective over `axis` (as the plan says) = `axes`: those
 * larger than 1, as theme_axis reads them. */
const char *words_color_axis(Arena *a, const Trace *t, const char *axis, const char *axes);
/* "dp=2 cp=2 tp=sp=2" */
const char *words_mesh(Arena *a, const Trace *t);
/* "order tp→cp→dp (fastest→slowest)"; NULL with fewer than two axes larger than 1. */
const char *words_order(Arena *a, const Trace *t);
/* "B=2 S=8192 bf16"; with micro-batches and narrowed widths "B=2 of 8, one of 4 micro-batches, S=32
 * f32 · widths ÷16" */
const char *words_data(Arena *a, const Trace *t);
/* "widths ÷16" of a plan that shrinks its model; "". */
const char *words_shrink(Arena *a, const Trace *t);
/* "Sent per rank"; where ranks differ "Sent by rank 0". */
const char *words_sent_by(Arena *a, const Trace *t, int64_t rank);
/* "identical on 8 of 8 ranks", "the other 3 ranks differ": the rank class of the rank. */
const char *words_class(Arena *a, const Trace *t, int64_t rank);
/* "Llama-3-8B" from "llama3-8b"; the text itself if it is not a known way of writing. */
const char *words_model(Arena *a, const Trace *t);
/* "1 of 32 layers": which of the model's layers the trace counts; "" if all, or nothing says how
 * many there are. */
const char *words_layers(Arena *a, const Trace *t);
/* "✓ executed on 8 virtual ranks: equivalent", and what that rests on where the plan is silent;
 * sets the role of its colour. */
const char *words_stamp(Arena *a, const Trace *t, Role *role);
/* Was it executed, and is a value first wrong? */
bool words_different(const Trace *t);

/* "{0,1}", "{0-3}", "{0:16:2}" (slice), and the group index of the rank; -1: the rank is in none.
 */
const char *words_members(Arena *a, const RankGroups *g, int64_t group);
int64_t words_group_of(const RankGroups *g, int64_t rank);
/* Last component of a path: "wq" of "layers.0.attention.wq"; where that is a number alone, with
 * what it counts: "attn_part.0". */
const char *words_leaf(const char *path);
/* "attention.wq" of "layers.0.attention.wq", with its layer; NULL: the path is of no layer. */
const char *words_in_layer(const char *path, int *layer);
/* Which block of keys partial attention sees, by the name of what it makes ("layers.0.attn_part.2"
 * is 2); -1: that is no part. */
int words_attention_part(const char *of);
/* Of which part of attention a step is, or the adjoint of one; -1: of none. */
int words_part_of(const TraceCompute *c);
/* What a step does, as its record says it; of parts of attention and their adjoints which one:
 * "part 2 of attention". */
const char *words_op(Arena *a, const TraceCompute *c);
/* Help where nothing is called as `o->part` says: the name that is near, and what there is (NULL:
 * nothing). */
const char *words_part_help(Arena *a, const RenderOptions *o, const char *there);
/* What the optimizer's step updates: "norm.weight" of "norm.weight.next"; any other name as it is.
 */
const char *words_updated(Arena *a, const char *name);
/* The same, but of what is made of queries, keys and values the letter, beside an op that says the
 * rest: "q" of "layers.0.q_rope", "q_rope" where attention takes it in two parts. */
const char *words_short(Arena *a, const Trace *t, const char *name);
/* Gradient of what is called so: "dq", "d gate". */
const char *words_gradient(Arena *a, const char *word);
/* What is kept for backward, in the words of the modules that a figure shows: "after ffn_norm" of
 * what the norm gives, brief "after the norm"; "q"; any other value by its leaf. */
const char *words_kept(Arena *a, const Trace *t, const char *value, bool brief);
/* Is the value told by the norm that it stands behind? */
bool words_after_norm(const Trace *t, const char *value);
/* The backward of an op that has no matrix: "SiLU′". */
const char *words_adjoint(Arena *a, const char *op);
/* What a local move is called in its box: "slice"; "declared, not done" where it moves nothing. */
const char *words_move(const TraceLocalMove *m);
/* Does it only say how a value lies: a claim, or a label of the plan that is not so? Nothing is
 * done. */
bool words_declares(const TraceLocalMove *m);
/* Is that rule one about a label of the plan? */
bool words_of_label(const char *rule);
/* A value where it stands alone: "after wo" of what the module's weight makes, any other by its
 * leaf; "gradient of x", "gradient after wo" of a gradient. */
const char *words_value(Arena *a, const Trace *t, const char *name);
/* The parts of that: what is said of the value, and what stands before it. */
typedef struct {
    bool gradient, after;     /* a gradient; of what the module at the path makes */
    const char *before;       /* "", "after ", "gradient of ", "gradient after " */
    const char *path, *brief; /* whole ("layers.0.attention.wo"), and as words_value has it */
} ValueName;
ValueName words_value_name(Arena *a, const Trace *t, const char *name);
/* words_value with the whole path in *path, of the module, of its weight where it has several
 * (experts), or of the value: returns what stands before it, "gradient after ". */
const char *words_value_path(Arena *a, const Trace *t, const char *name, const char **path);
/* "comes after layers.0.attention.wo" (brief, where nothing but the layer is told from others:
 * "comes after wo"), "is the gradient of norm.weight", "is loss_weights": behind "the first wrong
 * value", which is the one of that name. */
const char *words_wrong_value(Arena *a, const Trace *t, const char *name, bool brief);
/* What people call the matrix that a step multiplies with: its module, "wq", "router gate", "shared
 * w1"; of a module with several (experts) the weight itself, "w1". */
const char *words_weight(Arena *a, const char *module, const TraceParam *p);
/* The same, a bias told from the weight of its module: "q_proj", "q_proj bias", "sinks". */
const char *words_param(Arena *a, const TraceParam *p);
/* The same in a list: "shared w1", then "w3". *group: of what was named before ("": none). */
const char *words_weight_next(Arena *a, const char *module, const TraceParam *p,
                              const char **group);
/* "column" for colwise, "row" for rowwise, the style itself otherwise, NULL for NULL. */
const char *words_style(const char *style);
/* Symbol without its cuts: "F/tp" gives "F", "S/(cp*sp)" gives "S". */
const char *words_base(Arena *a, const char *dim);
/* The phase that a compute step is drawn under: passes that interleave are one, and what the loss
 * makes of gradients is backward. NULL: forward. */
Phase words_phase(const TraceCompute *c);
/* A sentence's first letter made large. */
const char *words_capital(Arena *a, const char *s);

/* For text in columns: characters (not bytes); text with blanks added at its right or left up to w;
 * a paragraph broken at spaces to lines of `w` characters that start with `rail`; the blanks at the
 * end of a line taken away. */
int words_columns(const char *s);
void words_pad(Str *s, const char *text, int w, bool right);
void words_paragraph(Str *s, const char *rail, const char *text, int w);
/* A message of a pipeline: to this rank it only goes, or only comes. */
typedef enum { MESSAGE_NONE, MESSAGE_TO, MESSAGE_FROM } Message;
Message words_message(const TraceCollective *c, int64_t rank);
/* "To another stage", "From another stage". */
const char *words_message_way(Message m);
/* "To rank 1": whom a message goes to, or comes from, seen from a rank; of several ranks none is
 * named: words_message_way. */
const char *words_message_title(Arena *a, const TraceCollective *c, int64_t rank, Message way);
/* Why a collective is done, as figures say it: "adjoint of AllGather: the matmul needs every
 * token", where records have the op's word. "" for NULL. */
const char *words_why(Arena *a, const char *why);
/* Of such a reason what stands behind "adjoint of AllGather: "; "" where it begins otherwise. */
const char *words_own_why(const char *why);
/* What a rank does in a collective: its name, "Receive" where a message only comes. */
const char *words_coll_on(const TraceCollective *c, int64_t rank);
/* "AllReduce, twice" where a planted mistake does it more than once. */
const char *words_done(Arena *a, const char *name, const TraceCollective *c);
/* The same of the collective's name; "no AllReduce" where it is skipped. */
const char *words_coll_done(Arena *a, const TraceCollective *c);
/* Whose weights, or gradients of weights, travel as one: "layer", "root" for what is outside the
 * layers, "model" for all; NULL: it carries one value. */
const char *words_unit(const Trace *t, const TraceCollective *c);
/* Does one of n collectives move rows of experts? Then its bytes, and the shapes of its values, are
 * those to expect: how many rows there are only a run knows. */
bool words_expected(const TraceCollective *const *c, int n);
/* The same as words_paragraph behind a label that stands in the first line only; the others are
 * indented by as much.
 */
void words_labelled(Str *s, const char *label, const char *text, int w);
void words_end_line(Str *s);
/* A line of a table as text. What is too wide for its cell ends the line; the next cell then stands
 * where it would, in a line that begins with `rail`. Nothing goes beyond the sum of the widths but
 * what is wider than that. */
typedef struct {
    const char *text;
    int w; /* columns, with what keeps it apart from the next */
    bool right;
} WordsCell;
void words_row(Str *s, const char *rail, const WordsCell *cell, int n);
/* A value's name in at most w columns, if its last component leaves it a choice: the first ones
 * (behind "grad.", which says what it is) are left out, "grad.…feed_forward.w2.weight". */
const char *words_fit_name(Arena *a, const char *name, int w);

/* The first step of the backward pass; INT_MAX: there is none. */
int words_backward(const Trace *t);
/* The pass in which a collective is done: forward (its loss, too), backward or optimizer. Weights
 * are gathered for forward before step `backward`, and for backward from there on. */
Phase words_pass_of(const TraceCollective *c, int backward);

/* What the rank sends over an axis, and in how many collectives; a message of a pipeline counts at
 * the rank that sends it, and apart where it only comes. */
typedef struct {
    const char *axis, *axes;
    int64_t bytes, count; /* what is sent, and in how many; */
    int64_t messages;     /* of those, messages */
    int64_t received;     /* messages that only come */
} Total;
/* Adds one collective, or `times` such totals. */
void words_add(Total *t, const TraceCollective *c, int64_t rank);
void words_add_total(Total *t, const Total *more, int64_t times);
/* Do both say the same numbers? */
bool words_same_total(const Total *a, const Total *b);
/* "8 KiB in 2 collectives", "nothing" where messages only come; "8 KiB in 2" behind a total of the
 * same kind (`said`; NULL: none was said). */
const char *words_sent(Arena *a, const Total *t, const Total *said);
/* The same of one axis, "pp 8 KiB in 2 messages"; "nothing over pp". */
const char *words_sent_over(Arena *a, const Trace *t, const Total *sum, const char *axis,
                            const Total *said);
/* By name of axis, over the collectives that `use` (an array of n) lists: *out in the arena, in the
 * order in which the axes occur; returns their number. */
int words_totals(Arena *a, const TraceCollective *const *use, int n, int64_t rank, Total **out);

/* ---- finding things in a trace ---- */
/* The part of a shape that the rank holds; NULL if it holds none. */
const TraceLocal *words_find_local(const TraceShape *s, int64_t rank);
/* The axes over which a sum is pending, or (*max) a maximum; NULL: nothing is. */
const char *words_pending(const TraceShape *s, bool *max);
double words_find_dim(const Trace *t, const char *name); /* model dimension, NaN if absent */
/* Packed blocks of a dim by its symbol: 2 of "2*F/tp"; 1 of "F/tp" and of a cut as one list,
 * "(2*F)/tp". */
int64_t words_blocks(const char *symbol);
#endif
