/* The table of diagnostic codes: what each means, why it matters, how to mend it, the exit code it
 * asks for, and the help where a place has none of its own. A code keeps its meaning for ever; new
 * ones are added in their range. Nothing here knows how a problem is found. */
#include "base/diag.h"

const DiagCode diag_codes[] = {
    /* ---- E01xx: files and YAML ---- */
    {"E0101", 3, "a file is missing",
     "No file of this name exists. Paths inside a plan are relative to the plan's own folder; "
     "paths on the command line (and in --set) are relative to the working directory. Check the "
     "spelling and from where the path starts.",
     "check the spelling and where the path starts: on the command line in the working directory, "
     "in a plan in the plan's folder"},
    {"E0102", 3, "a file cannot be read",
     "The path names a folder, or something that may not be opened or that fails while it is read. "
     "Check its kind with `ls -l` and its permissions.",
     "`ls -l` shows what it is and who may read it"},
    {"E0103", 3, "a file is empty",
     "The file has no content, or only comments and blank lines; a pipe that closed without "
     "writing looks the same. A plan needs at least `model` and `mesh`.",
     "a plan has at least `model` and `mesh`; if a pipe wrote it, look at what stands before the "
     "pipe"},
    {"E0104", 3, "the text is not YAML",
     "The YAML reader could not go on at this place. Frequent causes: a tab used for indentation, "
     "a missing blank after a colon, brackets that are not closed, and text with `: `, `#`, `[` or "
     "`*` that needs quotes. Inside {...} and [...] a pattern such as w[qkv] must be quoted.",
     "indent with blanks, put a blank behind each colon, and quotes round text with `: `, `#`, `[` "
     "or `*`"},
    {"E0105", 4, "an output cannot be written",
     "The file or folder could not be made, or writing failed (no space, no permission, the folder "
     "is missing). Outputs are written beside their target and renamed when complete, so nothing "
     "half-written is left and an older file stays as it was.",
     "look at the space and the permissions there, or name another file with -o"},
    {"E0106", 3, "the text is not UTF-8",
     "Inputs are UTF-8 without NUL bytes. UTF-16 and Latin-1 files must be converted first, for "
     "example with `iconv -f UTF-16 -t UTF-8`. A UTF-8 byte order mark is accepted.",
     "convert it to UTF-8: `iconv -f UTF-16 -t UTF-8`"},
    {"E0107", 3, "a key occurs twice",
     "The same key is written twice in one mapping. YAML readers usually keep the last one "
     "silently; here it is an error, because one of the two lines would have no effect. Remove one "
     "of them.",
     "keep one of the two"},
    {"E0108", 3, "a feature of YAML that plans do not use",
     "Anchors (&a), aliases (*a), tags (!!str), merge keys (<<), keys that are not plain text and "
     "more than one document in a file are not accepted: a plan says what it means where it "
     "stands. A pattern that begins with * looks like an alias to YAML and needs quotes: \"*.wq\": "
     "colwise.",
     "write the value itself at each place"},
    {"E0109", 3, "a JSON, safetensors or trace file is malformed",
     "The file is not what its name or place promises: not JSON, nested deeper than 64, a key "
     "twice, a safetensors header whose offsets do not fit the file, or a trace without its "
     "schema. It may be cut off or only partly downloaded.",
     "the file may be cut short or of another kind; make it anew"},
    {"E0110", 3, "a framework's file cannot be read",
     "The text is not what its framework reads: Python, TOML or a list of arguments. Only what is "
     "data is read: names, texts, numbers, lists, dicts and calls with such arguments.",
     "`import` lists the frameworks and kinds of files"},
    /* ---- E02xx: keys and names ---- */
    {"E0201", 3, "an unknown key",
     "The key is not one that stands at this place of a plan. A misspelt key would otherwise be "
     "ignored and its default used, which is the kind of mistake that is never noticed. The "
     "nearest known key is suggested; some keys only belong one level deeper (`batch` under "
     "`data`).",
     "docs/plan.md and `man shardproof-plan` have all keys"},
    {"E0202", 3, "an unknown model preset",
     "`shardproof list models` prints the presets. Other models come from their config: `model: "
     "{hf_config: config.json}`.",
     "`list models` shows all"},
    {"E0203", 3, "an unknown style",
     "A plan line names a style that is neither built in (`shardproof list styles`) nor defined "
     "under `styles:`. PyTorch's class names (ColwiseParallel) and Hugging Face's names "
     "(colwise_rep) are known too.",
     "`list styles` shows all; own ones stand under `styles:`"},
    {"E0204", 3, "an unknown axis or group",
     "A name is used as a mesh axis that is neither a key of `mesh` nor of `groups`. Several axes "
     "together are written as a product, outermost first: dp*cp.",
     "axes are named under `mesh`, groups of them under `groups`"},
    {"E0205", 3, "a pattern matches nothing",
     "No module and no parameter has a path like this. One component of the pattern stands for one "
     "component of the path: `layers.*.attention.wq`, not `*.wq`. Patterns use the module names of "
     "the scheme under `names:`; `shardproof list names` prints them. In PyTorch the same mistake "
     "silently leaves the module unsharded.",
     "`explain PLAN` shows the modules, `list names` their names in other schemes"},
    {"E0206", 3, "an unknown value for a key",
     "The key takes one of a few words and this is none of them. The nearest one is suggested.",
     "docs/plan.md and `man shardproof-plan` have the values of each key"},
    {"E0207", 3, "a config key that is not supported",
     "The model's config has a key, with a value other than null, false, 0 or empty, that this "
     "program does not read and that may change the mathematics. Leaving it out silently would "
     "compare the wrong model. If it is harmless, name it under `model: {ignore_config: [KEY]}`.",
     "correct it in the config, or set it under `config:` in the plan"},
    {"E0208", 3, "a required key is missing",
     "`model` and `mesh` are required in every plan, and some keys need a companion: `kind: mlp` "
     "needs `sizes`, a fault needs `at`.",
     "add it; docs/plan.md has an example of each key"},
    {"E0209", 3, "an unknown name",
     "No value, step, module or parameter has this name. Values have the same names in every "
     "naming scheme (layers.0.q_proj); module boundaries are MODULE.input and MODULE.output. "
     "`shardproof shapes PLAN` prints them all. A file given with --against of which nothing has "
     "such a name compares nothing: --map translates names, also prefixes (\"module.*\": \"*\").",
     "`explain` and `list` know the names"},
    {"E0210", 1, "two lines lay out one parameter differently",
     "A tied parameter (embedding and head) is one tensor; two lines of the plan give it two "
     "layouts. Give both the same layout, or name only one.",
     "remove one of the two lines, or make them agree"},
    {"E0211", 3, "nothing to draw in this view",
     "The plan or trace has no data for this picture: a trace without times for `timeline`, "
     "without checks for `errors`. The message says what to run. `shardproof list views` prints "
     "the pictures that can be drawn.",
     "draw it from a plan that is run, or choose another view: `list views`"},
    {"E0212", 2, "wrong usage of the command line",
     "An option, its value, or a key given with --set is not known, or would do nothing: a trace "
     "is a run already, and heeds no --set. `shardproof --help` prints the options; keys of --set "
     "are those of a plan, with dots between plain keys and plan[PATTERN] for patterns.",
     NULL},
    {"E0213", 3, "unknown hardware",
     "`shardproof list hardware` prints the known machines; each is a file in plans/hardware/.",
     "`list hardware` shows the profiles; a file of your own works too"},
    {"E0214", 3, "not supported by this version",
     "The plan language knows this, but this version cannot run it yet. Nothing was guessed in its "
     "place.",
     "leave it out, or write it in another way; `explain E0214` says more"},
    {"E0215", 3, "keys that exclude each other",
     "Two keys say different things about the same matter, for example `preset` and `hf_config`. "
     "Keep one of them.",
     "remove one of the two keys"},
    {"E0216", 3, "a name that cannot be used",
     "Names of axes and groups are letters, digits and _, starting with a letter, and no group is "
     "called like an axis: shapes such as [B/dp, S/(cp*sp), D] could not be read otherwise. "
     "`layer_names` of an mlp name its values too, so none is called as a value that is there "
     "without it (input, act1, loss, grad), as another layer, or as something inside one.",
     "choose another name"},
    {"E0217", 3, "a plan that only an execution could tell",
     "A framework's file is read as data and never executed: branches, loops, comprehensions, "
     "f-strings, arithmetic and functions of the file are followed as far as literals in it decide "
     "them, and no further. Write what the rest comes to in your run: `loss_parallel = True` in a "
     "line above is enough. `for layer in model.layers:` is read as 'layers.*'.",
     "give the value as a number or a name; the file is read, not executed"},
    {"E0218", 3, "a plan that the other framework cannot say",
     "`export` leaves nothing out: a style, placement or key that has no counterpart there is an "
     "error at its place in the plan. The hint names what comes nearest.",
     "change the plan to what the other framework can say, or export without that line"},
    {"E0219", 1, "a table that the library itself refuses",
     "Hugging Face's library ends with an error when it applies this table to this model: experts "
     "that the ranks do not divide, a style for linear layers on a module that is none. `import hf "
     "--names` says where, before anything is started.",
     "correct the table, or leave the rule out"},
    /* ---- E03xx: sizes and types of values ---- */
    {"E0301", 3, "a value of the wrong type",
     "A mapping, a list, text, a number or true/false was found where another kind of value "
     "belongs. Quotes make text: \"2\" is not a number. true and false are the only truth values.",
     "docs/plan.md and `man shardproof-plan` have an example of each key"},
    {"E0302", 3, "a size that is not a whole number of 1 .. 2^63-1",
     "Sizes are written in plain decimal digits: no sign, fraction, exponent, hexadecimal, octal "
     "or separators. What YAML readers make of 010, 0x10, 1e3 or 1_000 differs from one to the "
     "next, so none of them is accepted.",
     "write a whole number, in decimal digits, within the range of the key (docs/plan.md)"},
    {"E0303", 1, "heads do not divide",
     "The query heads must be a multiple of the size of the axes that cut them: an attention head "
     "cannot be computed on two ranks. Choose an axis size that divides the number of heads. JAX "
     "runs such a table, and XLA moves what a head lacks: under `trust: compiler` it is E0214.",
     "choose a size of the axis that divides the heads"},
    {"E0304", 1, "the zigzag order does not divide",
     "Zigzag context parallelism gives each rank two blocks of the sequence, one from either end, "
     "so the sequence must be a multiple of 2 * cp. Change the sequence, the axis, or use `order: "
     "contiguous`.",
     "make the sequence a multiple of twice the axis, or leave zigzag out"},
    {"E0305", 1, "key/value heads do not fit the axis",
     "K % tp == 0 cuts them; tp % K == 0 with H % tp == 0 replicates each over tp / K ranks "
     "(unless `kv_replicate: never`). Any other combination would pair query heads with the wrong "
     "key/value heads. Under `trust: compiler`, where JAX's compiler pairs them, it is E0214.",
     "choose a size of the axis that divides the key/value heads, or is a multiple of them"},
    {"E0306", 3, "the mesh is too large",
     "The product of the mesh's sizes does not fit in 63 bits. It is the number of ranks.",
     "make the axes smaller"},
    {"E0307", 3, "sizes disagree",
     "Two places give the same size differently: a config and its weights, the number of layer "
     "names and of layers, inputs and the plan.",
     "make the two agree; `params` shows the sizes that a plan has"},
    {"E0308", 1, "shrink cannot be applied",
     "`shrink: n` divides D, d, F and V by n while heads, layers, batch and sequence stay. With "
     "this n a size would lose its meaning (d must stay even and at least 8).",
     "choose another `shrink`, or leave it out and set sizes under `config:`"},
    {"E0309", 3, "a number out of its range",
     "The number is well formed but makes no sense here: a negative learning rate, a beta outside "
     "0 .. 1, an index out of order.",
     "write a number within the range"},
    {"E0310", 3, "a pipeline schedule that is none",
     "The schedule cannot be made for these numbers of ranks, stages and micro-batches, or a file "
     "of actions lacks one, has one twice, or has one that no rank can do. Each stage needs the "
     "forward of every micro-batch once, and its backward: B, or both I (gradient of the input) "
     "and W (gradients of the weights). A file that has UNSHARD gathers a stage before each use of "
     "it, until RESHARD or REDUCE_GRAD drops it; one that has REDUCE_GRAD has one for each stage, "
     "behind its last backward. The table of schedules in the manual says what each needs.",
     "`explain schedule` says what each schedule asks for"},
    {"E0311", 3, "a pipeline schedule that comes to no end",
     "Going through the lists of all ranks, some come to an action that waits for something that "
     "never comes: an action of its own list that stands later, a message that nobody sends or "
     "receives, or room for a third message where two wait to be received. On a machine the run "
     "would hang there. For each rank the message names the first such action and what it waits "
     "for.",
     "look at the order of the named ranks: each waits for the next"},
    /* ---- E04xx: layouts and types ---- */
    {"E0401", 3, "a placement's dim is out of range",
     "shard(d) counts the stored dims of this tensor from 0, or from the end with -1, -2. A "
     "letter, shard(f), names one of the tensor's atomic dims.",
     "dims count from 0, or from -1 at the end; `shapes` shows how many there are"},
    {"E0402", 1, "a label differs from the actual layout",
     "A style says how its input lies (colwise: replicate; rowwise: shard(-1); sequence_parallel: "
     "shard(1)), and the value that arrives lies otherwise. PyTorch does not look: it believes the "
     "label and computes something else. Mend the label, or the output of the module before. "
     "`trust: declared` runs it as PyTorch would.",
     "correct the label, or the line that makes the value"},
    {"E0403", 1, "a pending sum meets an op that is not linear, or is left pending",
     "Each rank holds only its share of a sum that has not been added up. Only linear ops may work "
     "on shares; a norm, an activation, a product of two such values, or the end of the block "
     "needs the sum. Declare an output (replicate or shard) that reduces it.",
     "reduce the sum before this step: `output: replicate` or `output: shard(1)`"},
    {"E0404", 1, "a finding of verify",
     "Propagating cut, partial and equal through the explicit program, independently of the pass "
     "that made it, gives another type than the program claims: a reduction is missing, doubled, "
     "or on the wrong axis.",
     "`explain PLAN NAME` shows how the value came about"},
    {"E0405", 1, "one axis cuts two dims",
     "A mesh axis can cut only one dim of a tensor: with two, most blocks of it would be held by "
     "nobody.",
     "let another axis cut one of the two"},
    {"E0406", 1, "a contiguous cut goes through packed blocks or heads",
     "The stored dim holds several blocks (gate and up, or q, k and v) or whole heads. Cutting it "
     "as it lies in memory gives ranks the wrong rows, with all shapes right. Use shard(f) on the "
     "letter, or a size that divides the heads.",
     "cut it by blocks or heads: `shard` in place of `contiguous`"},
    {"E0407", 1, "an axis is used twice",
     "An axis occurs twice in one product or mapping, directly or through a group.",
     "name the axis once"},
    {"E0408", 1, "a DTensor meets a plain tensor",
     "PyTorch's operators do not mix DTensors with plain tensors (\"got mixed torch.Tensor and "
     "DTensor\"). DTensors are what sequence_parallel and prepare_module_input hand on by default, "
     "and every module with `use_local_output: false`; plain are the parameters of layers that no "
     "line names, labels, and the local results of other modules: in a residual sum, a product, "
     "the attention; and the cosines and sines that queries and keys are turned by, an argument of "
     "attention, unless prepare_module_input has a label for them. Name the layer, or make them "
     "all the one or all the other. loss_parallel is the other way round: it takes no plain part "
     "of the logits.",
     "set `use_local_output`, or the label, so that both are of one kind"},
    {"E0409", 1, "a sharding that does not divide",
     "JAX lays an array out by a NamedSharding only if the axes of each dim divide its size: "
     "device_put, and jit for what goes in and comes out, raise (\"... implies that the global "
     "size of its dimension 0 should be divisible by 3\", IndivisibleError). What is cut inside of "
     "jit is padded by XLA. Under `trust: compiler` parameters and tokens are such arrays.",
     "an axis size that divides it, null for this dim, or a size that is padded"},
    /* ---- E05xx: values ---- */
    {"E0501", 1, "values differ",
     "What a rank holds is not the slice of the unsharded model's value that its layout claims. "
     "The first such value in the order of execution is the one to look at: later ones usually "
     "follow from it.",
     "`explain PLAN NAME` shows how the value came about, `draw --view errors` where it began"},
    {"E0502", 3, "a tensor is missing in the weights",
     "The safetensors file has no tensor of this name. `weights_names` says in which scheme the "
     "file names its tensors, `weights: {prefix:}` what stands before them.",
     "`list names` has the names in each scheme; look whether the files are complete"},
    {"E0503", 3, "a tensor has the wrong shape",
     "The tensor in the file has another shape or kind of number than the model needs. The file "
     "may belong to another config.",
     "look whether the weights and the config are of one model"},
    {"E0504", 3, "NaN or infinity in an input",
     "Weights, inputs and what a run is compared with must be finite: a comparison with NaN can "
     "prove nothing.",
     "look at the file's values, or leave the file out: random numbers prove as much"},
    {"E0505", 1, "an expectation failed",
     "The plan's own `expect` section says something that the run did not do. `shardproof check "
     "--update-expect` writes the section from a run.",
     "correct the plan, or the expectation: `check --update-expect` writes what is"},
    {"E0506", 1, "another implementation's values differ",
     "A tensor of the file given with --against differs by more than the tolerance of its dtype. "
     "Shapes are compared first: a tensor that is transposed, sequence first or otherwise in "
     "another order is told for what it is. --tolerance overrides.",
     "`--against` at an earlier value narrows down where the two part"},
    {"E0507", 3, "an id or label is out of range",
     "Token ids are 0 .. V-1, labels 0 .. V-1 or `ignore_index`.",
     "look whether the file and the model have the same vocabulary"},
    /* ---- E06xx: devices and backends ---- */
    {"E0601", 5, "a device or backend is missing",
     "The run asked for MPI (--mpi), and the plug-in of the MPI whose launcher started it is not "
     "beside the program, or cannot be loaded. `make` builds one for each MPI that it finds: Open "
     "MPI (openmpi-bin libopenmpi-dev), MPICH (mpich libmpich-dev). Or for CUDA "
     "(--cuda=virtual): the plug-in that `make CUDA=1` builds where CUDA's toolkit is, NVIDIA's "
     "driver, a GPU. Without either every plan runs on virtual ranks.",
     "`explain E0601` says how the program is built with it"},
    {"E0603", 5, "other processes than ranks",
     "With --mpi every rank of the mesh is a process that a launcher has started: mpirun -n 8 for "
     "a mesh of 8 ranks; with --cuda torchrun and srun may start them too, and on several machines "
     "MASTER_ADDR says where rank 0 is. Without a launcher there is one process, and with that of "
     "another MPI each process is alone.",
     "start as many processes as the mesh has ranks"},
    {"E0604", 5, "fewer GPUs than ranks",
     "With --cuda each rank computes on a GPU of its own, and a machine has fewer than the ranks "
     "that were started on it. CUDA_VISIBLE_DEVICES may hide some.",
     "start fewer ranks on each machine, or take --cuda=virtual (all ranks on one GPU) or "
     "--cuda=share (several processes on one)"},
    {"E0605", 5, "a rank was lost",
     "A process was stopped, hangs, or never started: nothing was heard of it for the seconds of "
     "--deadline. All processes end; files are whole or not there. A process that works or "
     "checks, for however long, is heard of. While it starts and ends a rank is watched by a "
     "process of its own, shardproofguard.",
     "look at the messages of the rank that ended first"},
    {"E0606", 5, "the processes of a run do not run the same",
     "Plan, options, the files that the plan names and the version of shardproof must be the same "
     "for all processes, wherever they run: every process reads them by itself. The plan was "
     "not run, and nothing is said against it. Of weights and inputs the names, shapes and some "
     "bytes of every tensor are held against each other; a number that differs elsewhere is found "
     "by the check of what each rank loaded (E0501).",
     "start all processes with the same words, files and program"},
    {"E0607", 5, "the engine failed",
     "MPI, or the GPU, could not be started or broke off, or the plug-in is that of another "
     "version of shardproof; the words are the engine's own. Where MPI ends the processes by "
     "itself (Open MPI, if it cannot start), its words and its exit code are all there is. Or the "
     "small process that watches a rank could not be started: then the message says so, and MPI is "
     "well.",
     "try without --mpi or --cuda; `explain E0607` says more"},
    {"E0608", 5, "the GPU has not the memory",
     "With --cuda=virtual the values of all ranks lie in the memory of one GPU, also those that "
     "ranks of a real run would have on as many GPUs. What they take is counted before anything is "
     "allocated there.",
     "make the model smaller with `shrink`, use f32, or leave --cuda out"},
    /* ---- E07xx: limits ---- */
    {"E0701", 5, "the memory limit was reached",
     "The run would need more memory than there is; it is told before anything is allocated. A "
     "larger `shrink`, fewer layers, f32 instead of f64, fewer `--threads`, or a shape-only "
     "command "
     "(shapes, params, comms, draw) needs less.",
     "make the model smaller with `shrink`, or look at it with `shapes`, `comms` and `params`, "
     "which execute nothing"},
    {"E0702", 5, "a file is too large",
     "Plans are at most 1 MiB; other inputs have limits of their own. The limit keeps a wrong "
     "path, or an endless device, from filling the memory.",
     "look whether this is the file you mean"},
    {"E0703", 5, "too many ranks or axes",
     "A mesh has at most 12 axes, 32 groups and 1,048,576 ranks, a plan at most 500 styles of its "
     "own, and a run 16,384 ranks; shape-only commands (shapes, params, comms, draw) take the "
     "rest.",
     "join axes into one, or leave out what cuts nothing"},
    {"E0704", 3, "a limit of the plan's text was reached",
     "YAML is read with hard limits: depth 32, 100,000 items, 4096 bytes for one text.",
     "a plan is short: patterns such as layers.*.attention.wq stand for many lines"},
    {"E0705", 5, "a time limit was reached",
     "The work was stopped at the time limit that was set for it.",
     "raise the limit, or make the model smaller with `shrink`"},
    {"E0706", 5, "a thread could not be started",
     "Pictures need a few threads. The limit of processes (ulimit -u), or that of memory for their "
     "stacks (ulimit -v, ulimit -s), leaves none; commands without pictures do with one.",
     "say --threads 1, or raise the limit of processes (`ulimit -u`)"},
    {"E0707", 5, "the run would take too long",
     "Before a run its time is estimated from sizes, steps and ranks, at the rates of one machine: "
     "more than 100 hours are refused, as a slip of a number, and more than one where a plan says "
     "no `shrink`: --full, or `shrink: 1`, asks for the full widths. Fewer `optimizer.steps`, "
     "smaller sizes or a larger `shrink` take less; shape-only commands compute nothing.",
     "make the model smaller with `shrink`, or say `check --static`, which executes nothing"},
    {"E0708", 5, "too many folders to search",
     "`check` of a folder takes the plans in it and in all folders below it, of which there may be "
     "10,000. Hidden folders, folders that tools fill (build, node_modules) and other file systems "
     "are not among them. Nothing is checked of a folder with more: a part of its plans would be "
     "taken for all of them.",
     "name the folder of the plans, or a pattern"},
    {"E0901", 70, "an internal error",
     "This is a bug of shardproof, not of the plan. Please report it with the plan.",
     "please report it with the plan and the command"},
    /* ---- notes and warnings ---- */
    {"N0001", 0, "moves that no style asked for",
     "The plan does not say how a value lies here, so the cheapest correct move was made, a "
     "collective or a slice. Frameworks make only moves that a line asks for: there blocks do not "
     "fit, or a part of a sum goes on as the whole. The verdict says that it rests on such moves; "
     "the note says which line asks for one. Under `trust: declared` none is made, and the numbers "
     "show what that does; `check --fail-on note` fails.",
     NULL},
    {"N0002", 0, "a parameter that no line names",
     "No line of the plan matches this parameter: every rank holds all of it.", NULL},
    {"N0003", 0, "an axis that cuts nothing, or more than there is",
     "No value and no parameter is cut over this axis: its ranks all do the same work. Or there "
     "are fewer parts than ranks: some hold nothing of the data or of a parameter, and wait.",
     NULL},
    {"N0004", 0, "key/value heads are replicated by splitting the axis",
     "There are fewer key/value heads than ranks on the axis. It was split into an outer part, "
     "which cuts the heads, and an inner part, whose ranks hold copies and add up their "
     "gradients.",
     NULL},
    {"N0005", 0, "a line that another one beats",
     "Everything this line matches is matched by a better line: exact beats wildcard, then fewer "
     "wildcards, then the later line.",
     NULL},
    {"N0006", 0, "uneven shards that a framework does not compute on",
     "A dim is not a multiple of the axis that cuts it, so the last ranks hold less, or nothing. "
     "Here that is legal. PyTorch differs in three cases, in the systems whose styles are "
     "DTensor's (torchtitan, torchtune, kind: mlp): a dim shorter than the axis is gathered and "
     "computed whole on every rank; a plain local tensor under a label that cuts it is taken for "
     "one of n equal blocks, which raises where they are not equal (`use_local_output: false` "
     "where it is made hands on its true size); a vocabulary that leaves a rank without a class "
     "fails in loss_parallel. Also FSDP over several axes: PyTorch cuts rows over all their ranks "
     "at once, here axis by axis; where the rows do not divide the last ranks hold other parts. "
     "And experts: torchtitan, transformers and Megatron core want as many of them on each rank, "
     "and raise where ep does not divide them.",
     NULL},
    {"N0007", 0, "something was folded or left out",
     "The output leaves something out that is the same elsewhere, and says what.", NULL},
    {"N0008", 0, "a gradient's sum that no line of the plan declares",
     "The ranks of an axis have used a whole value (a norm's weight, a module's input) for "
     "different tokens, heads or columns, so its gradient is the sum of what they have. Frameworks "
     "make that sum only where something asks for it: a style that owns the parameter (`colwise`, "
     "`rowwise`, `sequence_parallel`, `replicated_with_grad_allreduce`), `data_parallel` for its "
     "axes, `gradients:`, or `desired_input` for an activation. Nothing does here; a parameter "
     "that no line names is a plain tensor. Forward and loss are right without the sum, and the "
     "copies drift apart. It was made all the same (`inferred` in its record), and the verdict "
     "lists it under `undeclared`; under `trust: declared` it is not made, and the numbers show "
     "what that does. The note says which line declares it; `check --fail-on note` fails.",
     NULL},
    {"N0009", 0, "a style of the plan replaces a built-in one",
     "A style under `styles:` has the name of a built-in style. Lines of this plan use the plan's "
     "own.",
     NULL},
    {"N0010", 0, "a config key was ignored",
     "`ignore_config` names a key of the model's config that this program does not read, or the "
     "config says how its checkpoint stores weights (`quantization_config`), which are multiplied "
     "here in the plan's dtype.",
     NULL},
    {"N0011", 0, "loss_parallel that does nothing",
     "In torchtitan's and torchtune's names loss_parallel is PyTorch's, which replaces what is "
     "done with DTensors. Logits of a head that has no line, or whose style hands out plain "
     "tensors (every one without `use_local_output: false`), have their loss as without it. Where "
     "such plain logits are cut over the vocabulary PyTorch raises (E0408).",
     NULL},
    {"N0012", 0, "a sum of gradients over ranks that hold them equal",
     "A style whose hook sums a gradient whatever it is (`replicated_with_grad_allreduce`) stands "
     "at a module that every rank uses alike, or `data_parallel` names an axis (`axis`, "
     "`replicate`, `shard`) whose ranks work on the same tokens. Frameworks add up what its ranks "
     "hold without looking: equal gradients count once per rank, and gradients of different shards "
     "of a parameter are added as if they were the same one. Sums here follow from layouts, so "
     "none of that is done and the run's numbers do not show it. Name the axes that cut the batch "
     "or the sequence; a sum over another axis is a style's.",
     NULL},
    {"N0013", 0, "a label on a DTensor that lies otherwise",
     "A label (`input`, or `output` beside `desired_output`) says how a plain tensor lies. What "
     "PyTorch's sequence_parallel, prepare_module_input, or `use_local_output: false` hand on is a "
     "DTensor, which knows how it lies: PyTorch does not look at the label there, neither does "
     "this program. Where label and desired layout are the same PyTorch moves nothing at the "
     "boundary, and the op that needs it otherwise moves it, which is made here as the layer's "
     "`desired_input`. Under `trust: declared` each op gathers for itself, and once more in the "
     "backward pass, because autograd keeps what the op was given; the gradients of its uses are "
     "added up before they are reduced, as PyTorch 2.15 does with its fused RMSNorm (in pieces, as "
     "on CPUs, each such norm reduces three times and gathers [B, S, 1]). PyTorch's op may choose "
     "another way to the same numbers. Where label and desired layout differ and the DTensor lies "
     "as desired nothing moves forward either, but the backward pass reduces the gradient to that, "
     "each layer for itself; so is it here.",
     NULL},
    {"N0014", 0, "a plan that cannot be executed here was held by rules and structure",
     "`check` executes a plan on virtual ranks. Where the machine has no room or time for that "
     "(E0701, E0703, E0707) it does what `check --static` does: rules, structure, orders of "
     "collectives; no values are compared, the line of the result says `not executed`, and JUnit "
     "counts it as skipped. A plan that expects something of values or plants a mistake, and "
     "options that want a run (--check full and quick too), keep the error; `check --fail-on note` "
     "fails.",
     NULL},
    {"N0015", 0, "a router's choice that rounding decides",
     "Two experts have all but the same score for a token, and the run chose another one than the "
     "unsharded float64 model. Rounding may do that, and everything behind would differ although "
     "nothing is wrong; so the unsharded run takes the run's choice over and goes on, where the "
     "scores are no further apart than rounding can put them (the gap and the bound are in the "
     "message and in the trace's records `tie`). That the run's choice follows from the run's own "
     "scores is held by bits all the same. With `moe: {routing: replayed}` every choice is taken "
     "over, whatever the gap.",
     NULL},
    {"N0016", 0, "numbers were computed in another dtype",
     "`data: {dtype: bf16, execute: f32}`: shapes, bytes, memory and modelled times are those of "
     "bf16, and the numbers of the ranks and of the unsharded model were computed and compared in "
     "f32. A wrong plan is found as it is in f32; what bf16 rounds away, on the ranks or in a sum, "
     "was not looked at.",
     NULL},
    {"N0017", 0, "ops ran on the host for want of a kernel",
     "With --cuda the ranks' blocks lie in the memory of a GPU. What it has no kernel for is "
     "fetched, computed on the host and put back: the same result, slower. The note names the ops "
     "and how many calls there were.",
     NULL},
    {"N0018", 0, "a key that changes nothing here",
     "The plan asks for a way of doing something that it does not do: when gradients are summed "
     "over ranks is a question of several micro-batches, and there is one; who is dropped is one "
     "of a capacity, and there is none; `rows` are of an mlp, and the model reads tokens; an "
     "optimizer makes a step under `pass: train` alone; a schedule file gathers where the plan "
     "cuts no parameters, or gathers them as `reshard` says. The result is the same without the "
     "key.",
     NULL},
    {"N0019", 0, "a slope that rounding decides",
     "A ReLU's gradient jumps at 0, a clamp's at its ends. Where a number is all but there, "
     "rounding decides which slope it gets on the ranks, and in a small model the gradients are "
     "then far from those of the unsharded float64 model, although every step follows from its "
     "inputs. So the unsharded model was run once more with the ranks' sides, where its own "
     "numbers are no further from the bend than rounding can put them, and with those the end of "
     "the run agrees. That the slopes follow from the run's own numbers is held by its steps.",
     NULL},
    {"N0020", 0, "a value of which rounding leaves nothing",
     "At the end a run is compared with the unsharded float64 model. Rounding can grow on the way: "
     "a gradient that is zero by identity is nothing else, and a few steps of training through a "
     "norm of all but zero make any small difference a large one. Where the unsharded model, run "
     "again with numbers that are off by what rounding does, itself is off by more than the "
     "value's largest number, no such comparison can say anything. That each step follows from its "
     "inputs is held as in every run. Where numbers inside of an op are larger than float32 has "
     "(the squares of a norm's inputs, once training has run away) its result is no rounded one at "
     "all, on the ranks as in an unsharded float32 model; the float64 one has them.",
     NULL},
    {"N0021", 0, "a schedule that PyTorch refuses",
     "The order is well defined and is run; PyTorch's class for it stops with a ValueError when it "
     "is made. Schedule1F1B wants as many micro-batches as stages: with fewer, the first ranks "
     "have no forward left to pair with a backward, and idle longer than they work.",
     NULL},
    {"N0022", 0, "files and folders that are left out",
     "Below a folder that `check` is given, hidden folders are not searched, nor links to folders, "
     "those that tools fill (build, dist, venv, node_modules, site-packages, __pycache__) and "
     "other file systems; each is searched if it is named itself. Of what a pattern in quotes "
     "matches ('**/*.yaml'), "
     "`check` takes the plans, as it does of a "
     "folder: files with a `mesh`, or with `model` and another key of plans. Hardware profiles, "
     "maps and other YAML files that lie between them are left out, and this note names them. A "
     "file that is named itself is always checked.",
     NULL},
    {"N0023", 0, "lines that act on an axis named for something else",
     "A style acts on `tp` where its line names no axis. This mesh has none, and one axis only, so "
     "the lines act on that one, though its name says pipeline stages (pp), data (dp, fsdp), "
     "context (cp) or experts (ep): what is run is tensor parallelism over it. Most often the axis "
     "was to be called tp, or one more is missing.",
     NULL},
    {"W0001", 0, "a warning",
     "Something unusual that does not stop the run. The message says what.", NULL},
    {"W0401", 0, "a finding of verify under trust: declared",
     "The static rules reject this plan, but it is run as declared, so that the numbers can show "
     "what the mistake does.",
     NULL},
    {"W0402", 0, "a mean of means",
     "`normalise: local_mean`: every block of tokens that a rank, or a micro-batch, has is divided "
     "by its own count, and the means are averaged. That is the mean over all tokens only where "
     "all blocks have as many that count, which no layout promises: one label more that is "
     "ignored makes loss and gradients others. Where this run's blocks have as many its numbers "
     "are right, and other data may show it. `normalise: global` divides by the count of all "
     "ranks.",
     NULL},
    {"W0601", 0, "several processes that each do the same",
     "A launcher of MPI has started more than one process on a line without --mpi. Each of them "
     "runs the whole plan on virtual ranks, says the same and writes the same files; with --mpi "
     "each is one rank of the mesh.",
     NULL},
    {"W0602", 0, "ranks share a GPU",
     "With --cuda=share several processes compute on one GPU and talk through NCCL as if each were "
     "on a machine of its own, by its sockets; from NCCL 2.30.3 on by a switch of its own "
     "(NCCL_MULTI_RANK_GPU_ENABLE). The GPU does one process's work at a time: a collective of a "
     "few bytes takes milliseconds. The numbers are as true as with a GPU each; times are not, and "
     "the trace's backend says `nccl-share`. NVIDIA calls it unsupported: it may hang, which "
     "--deadline ends.",
     NULL},
};
const int n_diag_codes = (int)(sizeof diag_codes / sizeof diag_codes[0]);
