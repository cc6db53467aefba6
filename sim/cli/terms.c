/* Words of the field as this program uses them: letters of shapes, terms, collectives. What has a
 * table of its own (styles, keys, placements, faults, codes) is not repeated here. */
#include "cli/words.h"
#include <stddef.h>

const Term cli_terms[] = {
    /* ---- letters of shapes, as in [B/dp, S/(cp*sp), D] ---- */
    {"B", TERM_LETTER, NULL, "the batch: sequences, of all ranks together"},
    {"S", TERM_LETTER, NULL, "the sequence: tokens of one sequence"},
    {"D", TERM_LETTER, "hidden", "the hidden size: numbers per token in the residual stream"},
    {"H", TERM_LETTER, "head", "query heads"},
    {"K", TERM_LETTER, NULL,
     "key and value heads; H/K query heads share one (grouped query attention)"},
    {"d", TERM_LETTER, NULL, "the size of a head; H*d is what q_proj gives"},
    {"F", TERM_LETTER, NULL, "the feed-forward size: between up and down projection"},
    {"V", TERM_LETTER, NULL, "the vocabulary: token ids, and logits per token"},
    {"L", TERM_LETTER, "layer", "layers of the model"},
    {"E", TERM_LETTER, NULL, "experts of a mixture; E/ep of them are on a rank of ep"},
    {"Fe", TERM_LETTER, NULL, "the feed-forward size of one expert, where it is not F"},
    {"C", TERM_LETTER, NULL, "room of an expert: rows that it takes where `moe.capacity` is set"},
    {"rows", TERM_LETTER, "row",
     "rows(B, S, E): one row for each token and expert that a router chose. How many a rank has is "
     "known in a run; before it there are the rows to expect, and at most."},
    {"flat", TERM_LETTER, NULL,
     "elements of a buffer in which parameters lie one behind the other (ZeRO): a rank's part is a "
     "range of it, which need not begin where a tensor does"},
    {"ql", TERM_LETTER, NULL, "latent attention: the width that queries are pressed into"},
    {"kl", TERM_LETTER, NULL, "latent attention: the width that keys and values are pressed into"},
    {"dn", TERM_LETTER, NULL, "latent attention: the part of a head that is not rotated"},
    {"dr", TERM_LETTER, NULL, "latent attention: the part of a head that is rotated"},
    {"dv", TERM_LETTER, NULL, "latent attention: the size of a value's head"},
    {"I", TERM_LETTER, NULL, "of an mlp: input features of its first layer"},
    {"O", TERM_LETTER, NULL, "of an mlp: output features of its last layer"},
    /* ---- what a plan is about ---- */
    {"token", TERM_WORD, NULL,
     "a position of a sequence: an id that the embedding makes a vector of D numbers of. B*S of "
     "them are a batch."},
    {"residual stream", TERM_WORD, "residual",
     "the D numbers per token that each part of the model reads, and adds its result to: the thick "
     "line of figures."},
    {"logits", TERM_WORD, "logit",
     "the head's V numbers per token, one for each token id; softmax makes probabilities of them."},
    {"rank", TERM_WORD, "process GPU",
     "one of the processes that run the model together, in practice one per GPU. Here ranks are "
     "virtual: all of them are computed in one process."},
    {"mesh", TERM_WORD, "device_mesh meshes",
     "the ranks as a grid with named axes: {dp: 2, tp: 4} are 8 ranks, rank = dp*4 + tp. The last "
     "axis counts fastest, so its ranks are neighbours."},
    {"axis", TERM_WORD, "axes mesh_axis",
     "a dimension of the mesh. The ranks that differ in this coordinate only are a group; a "
     "collective over the axis runs in every such group at once. (A dim is of a tensor.)"},
    {"group", TERM_WORD, "groups",
     "another name for an axis or an ordered product of axes (`groups: {sp: tp}`), or the ranks "
     "that take part in one collective."},
    {"shard", TERM_WORD, "sharded",
     "the part of a tensor that one rank holds. [B/dp, S/tp, D] says: the batch is cut over dp, "
     "the sequence over tp, D is whole."},
    {"replica", TERM_WORD, "replicated",
     "a whole copy on each rank. Two ranks with a replica must hold the same bits."},
    {"partial sum", TERM_WORD, "partial pending",
     "a value of which each rank has a term: the true value is the sum over the ranks, and is not "
     "made yet. A product whose contracted dim is cut gives one: y = x1*w1 + x2*w2, with x1*w1 on "
     "rank 0 and x2*w2 on rank 1. An all-reduce or reduce-scatter makes the sum."},
    {"placement", TERM_WORD, "layout",
     "how a tensor lies over one axis: replicate, shard(dim) or partial. A layout is one placement "
     "for each axis."},
    {"collective", TERM_WORD, "communication",
     "an exchange in which all ranks of a group take part. Every collective of a plan is a change "
     "of placement: shard to replicate is an all-gather, partial to replicate an all-reduce, "
     "partial to shard a reduce-scatter, shard(a) to shard(b) an all-to-all."},
    /* ---- collectives ---- */
    {"all_gather", TERM_COLLECTIVE, "AllGather all-gather AG",
     "shard to replicate: every rank gets the parts of all and puts them together. In a ring of n "
     "ranks each sends (n-1)/n of the whole. Backward it is a reduce-scatter, or a slice where the "
     "uses are alike."},
    {"reduce_scatter", TERM_COLLECTIVE, "ReduceScatter reduce-scatter RS",
     "partial to shard: the terms of all ranks are added, each rank keeps its part of the sum. A "
     "ring sends (n-1)/n of the whole per rank. Backward it is an all-gather."},
    {"all_reduce", TERM_COLLECTIVE, "AllReduce all-reduce AR",
     "partial to replicate: the terms of all ranks are added, every rank gets the sum. As a "
     "reduce-scatter and an all-gather it sends 2(n-1)/n of the whole per rank."},
    {"all_to_all", TERM_COLLECTIVE, "AllToAll all-to-all A2A",
     "shard of one dim to shard of another: rank i sends its block j to rank j. Each rank sends "
     "(n-1)/n of what it holds."},
    {"shift", TERM_COLLECTIVE, "Shift hop ring_attention send_recv",
     "one hop round a ring: every rank sends its block to the next rank and takes that of the rank "
     "before. Each rank sends all that it holds of the value; n-1 hops show every rank every "
     "block."},
    {"send", TERM_COLLECTIVE, "Send Receive recv P2P isend",
     "a value moves from the ranks that have it to others, each to one: from a stage of a pipeline "
     "to the next, and its gradient back. Only the two of a pair take part."},
    {"broadcast", TERM_COLLECTIVE, "Broadcast bcast BC",
     "the rank that has a value sends it to all others of its group: after a step of ZeRO-1 in "
     "PyTorch's form each parameter comes from the rank that updated it. Along a chain each rank "
     "hands on the whole value once."},
    {"slice", TERM_COLLECTIVE, "local_slice",
     "replicate to shard: each rank keeps its part of what it has. Nothing is sent."},
    /* ---- ways to cut ---- */
    {"pipeline", TERM_WORD, "pp stage stages pipeline-parallel",
     "layers are cut in stages, each on ranks of its own along an axis (pp). The batch goes "
     "through in micro-batches, so that stages work at the same time; the schedule says in which "
     "order (`explain schedule`)."},
    {"schedule", TERM_WORD,
     "gpipe 1f1b interleaved looped-bfs interleaved-zb zb-h1 zb-v dualpipe dualpipe-v bubble",
     "the order in which a stage does forwards and backwards of micro-batches. It decides how long "
     "ranks idle (the bubble) and how many micro-batches are in flight, never what is computed: "
     "gradients are added in the order of micro-batches, and their bits are the same (dualpipe "
     "adds two half sums, other bits). p ranks, m micro-batches: gpipe, 1f1b, looped-bfs, zb-h1 "
     "and zb-v take any m (PyTorch's 1F1B wants m at least p), interleaved and interleaved-zb an m "
     "that m / p rounds divide, dualpipe even p and m with m at least 2p, dualpipe-v m at least "
     "2p."},
    {"in flight", TERM_WORD, "in_flight",
     "pairs of a stage and a micro-batch between their forward and the end of their backward: what "
     "a rank of a pipeline keeps values of."},
    {"closed form", TERM_WORD, "bubble_form",
     "the idle time of a rank of a pipeline as a formula of p ranks, m micro-batches and the times "
     "of one stage: its forward F, input gradient I, weight gradients W, backward B = I + W (with "
     "v stages on each rank they are shorter: of all v together it is (p-1)(F+B)/v). It is of "
     "stages that all take the same and of messages that take no time; some are of F = I = W. "
     "Where stages differ or messages take time, what that adds is said beside it."},
    {"data parallel", TERM_WORD, "dp ddp DDP",
     "the batch is cut, every rank has all weights; their gradients are summed over the axis "
     "(an all-reduce, backward)."},
    {"fsdp", TERM_WORD, "FSDP fully_shard zero3 ZeRO-3",
     "data parallel whose weights are cut at rest: gathered before a module needs them, and their "
     "gradients reduce-scattered."},
    {"zero", TERM_WORD,
     "ZeRO zero1 zero2 ZeRO-1 ZeRO-2 distributed_optimizer ZeroRedundancyOptimizer",
     "data parallelism whose ranks each update a part of the model and have the optimizer's state "
     "of that part alone. zero1: gradients are summed, what is updated goes back to all. zero2: a "
     "rank keeps its part of the sum only. PyTorch hands out whole tensors, with a broadcast each; "
     "DeepSpeed and Megatron cut a flat buffer: reduce-scatter, all-gather (`form`)."},
    {"hsdp", TERM_WORD, "HSDP",
     "fsdp within `shard` axes, copies over `replicate` axes: gradients are reduce-scattered over "
     "the first and all-reduced over the second."},
    {"tensor parallel", TERM_WORD, "tp",
     "weights are cut: the first layer of a pair by columns (its output features), the second by "
     "rows, which leaves a partial sum: one all-reduce per pair."},
    {"sequence parallel", TERM_WORD, "sp",
     "between the pairs of tensor parallel layers each rank keeps its part of the sequence: the "
     "all-reduce becomes a reduce-scatter and an all-gather of the same bytes, norms and kept "
     "activations are divided by tp."},
    {"context parallel", TERM_WORD, "cp",
     "the sequence is cut everywhere; attention gathers keys and values of the other ranks, has "
     "them come by hop by hop (ring), or cuts heads in place of the sequence (ulysses)."},
    {"lse", TERM_WORD, "log-sum-exp logsumexp merge attn_part attn_merge",
     "the logarithm of the sum of exponentials, one number for each query and head: what the "
     "softmax over some of the keys was divided by. Beside a partial result, it lets two be merged "
     "into that over both: each is scaled by exp(lse - lse of both) and they are added. A ring "
     "keeps it as the last element of a head, H*(d+1); `without lse` takes it off."},
    {"expert", TERM_WORD, "experts MoE mixture_of_experts router top-k",
     "one of several feed-forward networks; a router sends each token to the few that it scores "
     "highest, and adds up what they put out with its weights."},
    {"dense", TERM_WORD, NULL,
     "of weights: every token uses them, as those of attention, norms and MLPs, unlike an "
     "expert's. On the same ranks experts may lie by other axes: that makes two meshes."},
    {"expert parallel", TERM_WORD, "ep EP",
     "ranks have different experts: tokens go to the ranks of theirs and back (all-to-alls, or "
     "an all-gather and a reduce-scatter). `moe.axis` names the axes."},
    {"zigzag", TERM_WORD, "order",
     "the sequence in 2n chunks, of which rank r holds r and 2n-1-r: with a causal mask every rank "
     "then has the same work."},
    {"striped", TERM_WORD, NULL,
     "token t on rank t mod n, so that with a causal mask all ranks have nearly the same work."},
    {"recompute", TERM_WORD, "activation_checkpointing",
     "the forward pass of a block is done again in backward instead of keeping its values: its "
     "collectives too. In a pipeline each stage may do so, for its blocks or for all it makes: "
     "`pipeline: {recompute: [none, block, stage, ..]}`."},
    {"micro-batch", TERM_WORD, "micro-batches microbatches gradient_accumulation",
     "a part of the batch that is run by itself; gradients are added up over all of them and "
     "reduced once."},
    /* ---- moves that send nothing, and what else a step is called ---- */
    {"identity", TERM_WORD, NULL,
     "a move that changes what is known of a value and not its numbers: from copies whose uses are "
     "equal to copies whose uses differ, or back. Nothing is sent; its adjoint may be an "
     "all-reduce."},
    {"keep_first", TERM_WORD, NULL,
     "replicate to partial: the first rank keeps the value, the others hold zeros. Nothing is "
     "sent."},
    {"pad", TERM_WORD, NULL,
     "shard to partial: each rank keeps its own block, with zeros elsewhere. Nothing is sent."},
    {"pick", TERM_WORD, NULL,
     "a value that all ranks of an axis hold becomes that of one coordinate; the others give their "
     "copies up. Nothing is sent."},
    {"term", TERM_WORD, NULL,
     "a value of one coordinate of an axis becomes the one term of a sum that is not zero. Nothing "
     "is sent."},
    {"claim", TERM_WORD, NULL,
     "a label of the plan that is taken at its word (`trust: declared`): nothing is moved, and the "
     "numbers show whether it is true."},
    {"first moment", TERM_WORD, "second_moment",
     "of Adam: the running mean of a parameter's gradient (NAME.exp_avg); the second moment is "
     "that of its square."},
    /* ---- kinds of values, and memory ---- */
    {"value", TERM_WORD, "values moved updated",
     "what a step makes, by its name; of one name there may be several: each move makes a copy "
     "(`moved`), and an optimizer's step makes NAME.next (`updated`)."},
    {"gradient", TERM_WORD, NULL,
     "the derivative of the loss with respect to a value (grad.NAME, a cotangent) or to a "
     "parameter (grad.param.NAME). That of a parameter is summed over the axes on which its uses "
     "differ."},
    {"activations", TERM_WORD, NULL,
     "a category of memory: values of the forward pass that are kept for the backward pass or are "
     "in use."},
    {"gathered", TERM_WORD, NULL,
     "a category of memory: copies of parameters that are cut at rest, whole while they are used."},
    {"optimizer state", TERM_WORD, "state moments",
     "a category of memory: what the optimizer keeps of each parameter between steps, two moments "
     "of Adam, and a master copy if the plan has one."},
    {"at rest", TERM_WORD, "rest",
     "how a parameter lies between its uses. FSDP cuts it further there, and gathers it before it "
     "is read."},
    {"peak", TERM_WORD, NULL, "the most bytes that a rank holds at one time."},
    {"alive", TERM_WORD, "live lives live_values",
     "of a value: kept, from the step that makes it to the last that reads it. What is alive at "
     "the peak decides how much a rank needs."},
    {"bucket", TERM_WORD, "buckets buffer buffers",
     "memory in which several tensors lie one behind the other, so that one collective takes all "
     "of them: gradients of DDP and ZeRO. What a collective copies to and from besides is not "
     "counted by the view `memory`."},
    {"workspace", TERM_WORD, NULL,
     "memory that a kernel needs while it runs: not counted by the view `memory`."},
    {"fragmentation", TERM_WORD, NULL,
     "memory between blocks that an allocator holds and nobody can use: not counted by the view "
     "`memory`."},
    {"clipping", TERM_WORD, "clipped",
     "gradients that are longer than `optimizer.clip`, all of them taken as one vector, are scaled "
     "down to that length."},
    {"padding", TERM_WORD, "padded",
     "room that nothing fills: of an expert that has fewer rows than it has room for, and of a "
     "block that is shorter than the longest of its collective. It is sent with the rest and read "
     "by nobody."},
    {"freed", TERM_WORD, NULL,
     "a gathered copy of a parameter is given up after its use; the rank's own part stays."},
    {"held", TERM_WORD,
     "arrived just_arrived complete computed_before sent_next swapped swapped_next in_its_place",
     "what a storyboard says of a part that a rank has in a step. Just arrived, it came in this "
     "step; held before: it was here already; sent next: it goes on in the next step; stale: it "
     "was sent "
     "on and is not read any more; complete: all terms of its sum are in; computed before: what "
     "attention has done already; swapped next, in its place: of an all-to-all."},
    {"goes on in the next line", TERM_WORD, NULL,
     "an arrow's head at the end of a bar of a timeline: what the bar does is not over, the next "
     "line begins with the rest of it."},
    {"chunk", TERM_WORD, "chunks stale",
     "of a collective: the part of the buffer that a rank sends at once, one of as many as there "
     "are ranks; a copy that was sent on is stale. Of a schedule: one of the stages that a rank "
     "has. Of a sequence: see zigzag."},
    {"rank class", TERM_WORD, "class",
     "ranks that have the same local shapes and do the same steps: records name them together."},
    /* ---- bytes and time ---- */
    {"bytes", TERM_WORD, "byte KiB MiB GiB TiB bytes/s",
     "the size of what is held, read or sent. KiB, MiB, GiB and TiB are 1024, 1024^2, 1024^3 and "
     "1024^4 bytes; a profile's GB are 10^9. Bytes/s are a bandwidth."},
    {"sent", TERM_WORD, "bytes_sent bytes_in bytes_out out received",
     "of a collective, per rank: `in` is what a rank hands in, `out` what it has afterwards, "
     "`sent` what goes over its links by the ring or pairwise algorithm."},
    {"message", TERM_WORD, "messages",
     "a send between two ranks, as from a stage of a pipeline to the next; counted apart from "
     "collectives, in which a whole group takes part."},
    {"a step", TERM_WORD, "per_step",
     "how often a collective is done in one training step: in each micro-batch, or once."},
    {"compute", TERM_WORD, "computed computes kernel kernels work",
     "what a rank does with the numbers that it has: products, attention, norms, each a kernel; "
     "nothing is sent. In the model of time it is the sum of the kernels' times; what is sent "
     "meanwhile is hidden (`explain exposed`)."},
    {"time", TERM_WORD, "times took span_of_time",
     "of a run with --mpi or --cuda the seconds that passed (measured), else those of the model "
     "(`explain modelled`). As a column, `times` says how often a collective was done."},
    {"modelled", TERM_WORD, "measured time_model",
     "a time that follows from operations, bytes and a hardware profile (`--hardware`). Measured "
     "is what a run with --mpi or --cuda took."},
    {"bus bandwidth", TERM_WORD, "algbw busbw",
     "bytes per second of a collective as nccl-tests count them: `algbw` is the data by its time, "
     "the bus bandwidth what the links carry for it."},
    {"node", TERM_WORD, "nodes link links NVLink",
     "a machine with several GPUs, as many as the hardware profile says. Groups inside one use its "
     "fast links, groups across nodes the network between them: `draw --view mesh`."},
    {"idle", TERM_WORD, NULL,
     "the time in which a rank of a pipeline has nothing to do, by its schedule; `explain "
     "schedule`, `explain closed form`."},
    {"warm-up", TERM_WORD, "warmup cool-down cooldown",
     "of a schedule: the forwards that a stage does before its first backward, so that stages "
     "behind it have work; with 1f1b p-r-1 of rank r, then a forward and a backward in turn, and "
     "at the end (cool-down) as many backwards alone."},
    {"peak over mean", TERM_WORD, "imbalance",
     "how uneven a load is: what the fullest rank or expert has, divided by what each would have "
     "if all had the same. 1 is even; at 2 the others are done after half of the time."},
    /* ---- what the program says ---- */
    {"diagnostic", TERM_WORD, "error warning note severity",
     "what is found in a plan or a run, with a code (`explain E0403`). An error fails, a warning "
     "is a mistake that the numbers decide about, a note is worth knowing; `check --fail-on` says "
     "from which on a plan fails."},
    {"planted", TERM_WORD, "mistake fault",
     "a mistake on purpose in one step, by `faults`, `gradients` or --fault, to see that it is "
     "found. `list faults` has them by name."},
    {"cause", TERM_WORD, "likely_cause",
     "the story that explains the wrong numbers of the first wrong value on every wrong rank that "
     "was looked at."},
    {"worst", TERM_WORD, "used",
     "the value whose error uses the largest share of its bound: `used 55 % of its bound`."},
    {"structure", TERM_WORD, NULL,
     "what can be held without numbers (level 0): every element has the owners that the plan says, "
     "every sum covers its terms once, and members of a group do the same collectives."},
    {"end to end", TERM_WORD, "unsharded",
     "outputs, loss and gradients of the whole run against the unsharded model in float64; each "
     "step is held by itself before that."},
    {"observability", TERM_WORD, "unobservable unnoticed",
     "whether this run would have noticed a rank missing in a reduction: not if the rank's term is "
     "zero or lost in rounding."},
    {"checks", TERM_WORD, "check full",
     "comparisons of values of a run, one for each step and source; full: every product again, "
     "quick: by projections."},
    {"virtual", TERM_WORD, "backend",
     "the ranks of a run are computed by one process; other backends are processes of MPI, and "
     "GPUs."},
    {"equivalent", TERM_WORD, "verdict different invalid",
     "the verdict of a run: every value on every rank is the unsharded model's. `different`: one "
     "is not, and the first is named. `invalid`: the plan breaks a rule."},
    {"wrong", TERM_WORD, "wrong_step first_wrong first_wrong_value wrong_because_of_it",
     "a value is not what it must be. The first wrong one is where the mistake is: its step did "
     "something else than it should with right inputs. Later ones are wrong because of it, or "
     "follow from it (`explain follows`)."},
    {"PASS", TERM_WORD, "FAIL SUSPECT",
     "what a check says of one value. PASS: the error is within what rounding can do. FAIL: no "
     "order of summation could give this error. SUSPECT: in between; it fails with --strict."},
    {"follows", TERM_WORD, "after",
     "in the view `errors`: a right step on a wrong input, so that its result is wrong because of "
     "it."},
    {"level", TERM_WORD, "levels",
     "how a value was checked. 0: the structure, by a second theory of placements; 1: bit by bit; "
     "2: within a bound of rounding derived for the op; 3: integer data, equal by bits (--exact)."},
    {"projection", TERM_WORD, "quick projected projections",
     "--check quick: a product C = A B is held by C r = A (B r) for random columns r, two "
     "for each 64 numbers of a row, and a sum over ranks by the sum of its terms times r. Where "
     "one is odd, the step is checked element by element."},
    {"bit for bit", TERM_WORD, "bit_for_bit_equal equal_bit_for_bit bitwise",
     "the same bits, not only nearly the same number. What is moved, copied or computed in the "
     "same order must be so (level 1); a sum over ranks is added in another order than the "
     "unsharded one and may differ by rounding (level 2)."},
    {"bound", TERM_WORD, "tolerance rounding",
     "the largest difference that rounding alone can make in this op on these numbers. It follows "
     "from the numbers, nobody tunes it."},
    {"inferred", TERM_WORD, "undeclared unasked",
     "a collective that the mathematics needs and no line of the plan asks for. Under `trust: "
     "rules` it is made and told, under `trust: declared` it is not made and the numbers decide, "
     "under `trust: compiler` it is the compiler's."},
    {"exposed communication", TERM_WORD, "exposed hidden overlap waiting compute_waits span beside",
     "the modelled time in which a rank computes nothing while what it needs is sent. Where a "
     "collective cannot begin because another rank of its group is not there yet (in a pipeline: "
     "another stage), that is waiting, not communication. Hidden is what is sent while the rank "
     "computes; what is sent while it waits for other communication is behind that. Compute, "
     "exposed and waiting add up to the span; what several streams do at the same time counts "
     "once. Times are told of the ranks that are the last to end; of those, of the ones that wait "
     "least: the others wait for them."},
    {"roofline", TERM_WORD, "ridge compute-bound memory-bound launch-bound intensity",
     "what a kernel can reach: its FLOPs per byte of memory (its intensity) times the bandwidth, "
     "and at most the machine's FLOP/s; both roofs meet at the ridge. In the model of time a "
     "kernel takes the longer of both, and its launch: whichever is longest is what it is bound "
     "by. With bytes sent and a link in place of bytes of memory the same says whether products "
     "take longer than the collective beside them: then it can be hidden behind them, if both go "
     "on at once. `draw --view roofline` shows both."},
    {"sweep", TERM_WORD, "sweeps factorisation factorization",
     "the same plan with one setting after the other. `draw --view sweep` shows what the fullest "
     "rank holds with each batch, up to what the machine's memory has room for, and how long a "
     "step takes with as many ranks cut over the same axes in each legal way. Each number is that "
     "of a plan of its own (`--set data.batch=64`, `--set mesh.tp=4`); nothing is executed."},
    {"shrink", TERM_WORD, "shrunk",
     "widths D, d, F, V divided by a number so that a plan runs anywhere; head counts, axes and "
     "collectives stay. `--full` undoes it."},
    {"busiest", TERM_WORD, "fullest",
     "the rank that a figure speaks of first: of times that which waits least of those that end "
     "last, and of several computes longest; of rows that which gets most; fullest: that which "
     "holds most bytes."},
    {"FLOP", TERM_WORD, "FLOPs FLOP/s",
     "one addition or multiplication of two numbers: a product of [m, k] and [k, n] is 2 m k n of "
     "them. FLOP/s: how many in a second."},
    {"shape", TERM_WORD, "shapes",
     "how many numbers a tensor has in each of its dims. A local shape is that of what one rank "
     "has: [B/dp, S, D] in letters, [1, 64, 256] in numbers."},
    {"width", TERM_WORD, "widths",
     "a size of the model that `shrink` divides: D, d, F or V. Heads, layers and ranks are none."},
    {"stream", TERM_WORD, "streams",
     "of a timeline: what a rank does one after the other, compute or the collectives over one "
     "axis; several streams go on at once. Of a layer: see residual stream."},
    {"element", TERM_WORD, "elements", "one number of a tensor."},
    {"product", TERM_WORD, "products matrix matrices matrix_product contraction",
     "of matrices: each number of the result is a sum over the dim that both have (it is "
     "contracted). Cut over that dim, each rank has a partial sum."},
    {"norm", TERM_WORD, "norms",
     "a module that brings each token to one length: RMSNorm divides it by the root of the mean of "
     "its squares, LayerNorm takes its mean off first. It needs all D numbers of a token, and a "
     "token may lie on any rank. Of gradients: the length that `optimizer.clip` bounds."},
    {"edge", TERM_WORD, "edges",
     "in the view `block`: the line from a step to one that reads its result, with the local "
     "shape."},
    {"mirror", TERM_WORD, "mirrors mirrored",
     "in the view `block`: the backward pass beside the forward pass, from the bottom up. Each row "
     "undoes the one beside it, and a collective faces its conjugate."},
    {"exchange", TERM_WORD, "exchanges exchanged",
     "what a collective of rows of experts brings from each rank to each: `comms --pairs`, and the "
     "table of the view `routing`."},
    /* ---- heads of tables ---- */
    {"symbolic", TERM_WORD, "symbolic_shape",
     "a local shape in letters, [B/dp, S, H*d/tp]: what each dim is and which axes cut it."},
    {"size", TERM_WORD, "group_size",
     "of a collective: how many ranks one of its groups has; of an axis: how many coordinates."},
    {"why", TERM_WORD, "reason",
     "for what reason a move is made: which sum is pending, or who reads the value and how."},
    {"made by", TERM_WORD, "read_by reads makes",
     "the step that makes a value, and those that read it; `explain PLAN VALUE` shows both."},
    {"from", TERM_WORD, "to from_to",
     "of two ranks: who sends, and who has it then. `comms --pairs` counts rows and bytes of each "
     "two; of rows `known` says that they are those of a run, not those to expect."},
    {"known", TERM_WORD, "expected to_expect",
     "whether numbers of rows are those that a router chose in a run; before it there are the rows "
     "to expect."},
    {"result", TERM_WORD, "ok exit exit_code",
     "what `check` says of a plan: ok or FAIL, with the exit code: 0 holds, 1 does not, 2 wrong "
     "words, 3 a plan that cannot be read, 4 an output that cannot be written, 5 too large."},
    {NULL, TERM_WORD, NULL, NULL},
};
