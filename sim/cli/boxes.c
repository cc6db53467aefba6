/* What the boxes, edges and keys of figures say, for a reader who sees the word for the first time:
 * labels of ops, and the words that pictures have for gradients and what is kept. Terms of the
 * field are in terms.c. */
#include "cli/words.h"
#include <stddef.h>

const Term cli_boxes[] = {
    /* ---- labels of ops ---- */
    {"linear", TERM_BOX, "matmul", "y = x W^T: a matrix product with a weight"},
    {"add", TERM_BOX, "sum residual", "element by element: a sum of two values, as at the stream"},
    {"multiply", TERM_BOX, NULL, "element by element: a product of two values"},
    {"bias", TERM_BOX, "+_bias", "adds the module's vector to every token"},
    {"scale", TERM_BOX, NULL, "every element times one number"},
    {"attention", TERM_BOX, NULL, "softmax(q k^T / sqrt(d)) v, each head on its own"},
    {"query", TERM_BOX, "queries keys key_and_value",
     "of attention: each token's query is compared with the keys of the tokens that it sees, and "
     "what they are worth weighs their values"},
    {"causal attention", TERM_BOX, NULL,
     "softmax(q k^T / sqrt(d)) v, each head on its own; a token sees itself and those before it"},
    {"partial attention", TERM_BOX, "part_of_attention",
     "attention over the keys that are here, with lse beside it so that it can be merged with that "
     "over others (`explain lse`)"},
    {"without lse", TERM_BOX, NULL,
     "the end of a ring: of each head d+1 numbers are there, and the last, lse, is taken off "
     "(`explain lse`)"},
    {"sink", TERM_BOX, "sinks",
     "a learned score of each head that competes with those of the keys and has no value: what it "
     "draws is attention to nothing"},
    {"RoPE", TERM_BOX, NULL,
     "rotates pairs of numbers of each head of q and k by an angle that grows with the position"},
    {"temperature", TERM_BOX, NULL, "q times a factor that grows with the position"},
    {"RMSNorm", TERM_BOX, "RMSNorm_(1_+_w)",
     "a token divided by the root of the mean of its squares, times the weight (or 1 + weight)"},
    {"LayerNorm", TERM_BOX, "LayerNorm_(1_+_w)",
     "a token less its mean, divided by its deviation, times the weight (or 1 + weight), plus a "
     "bias"},
    {"L2 norm", TERM_BOX, NULL, "RMSNorm of each head, without a weight"},
    {"SiLU", TERM_BOX, NULL, "x sigmoid(x)"},
    {"ReLU", TERM_BOX, "ReLU^2", "x where it is positive, else 0; ReLU^2: its square"},
    {"GELU", TERM_BOX, "GELU_(tanh)",
     "x times the normal distribution up to x, or nearly, by tanh"},
    {"tanh", TERM_BOX, NULL, "the hyperbolic tangent"},
    {"sigmoid", TERM_BOX, NULL, "1 / (1 + exp(-x))"},
    {"xIELU", TERM_BOX, NULL, "an activation with two learned numbers, one for each sign of x"},
    {"SwiGLU", TERM_BOX, NULL, "SiLU(gate) times up, of gate and up in one tensor"},
    {"SwiGLU, up + 1", TERM_BOX, NULL,
     "(up + 1) gate sigmoid(1.702 gate), as gpt-oss has it: of gate and up in one tensor, after a "
     "clamp; up + 1 is up with one added"},
    {"clamp", TERM_BOX, NULL, "what is beyond a limit becomes the limit; no gradient passes there"},
    {"soft cap", TERM_BOX, NULL, "c tanh(x / c): bends x so that it stays between -c and c"},
    {"split", TERM_BOX, NULL, "a part of the numbers of each token or head; nothing is computed"},
    {"concatenate", TERM_BOX, NULL, "numbers of two tensors behind each other, in each head"},
    {"embedding", TERM_BOX, "positions",
     "looks up the row of each token's id, or of its position, in a table"},
    {"max over V", TERM_BOX, NULL,
     "the loss, 1: of each token the largest logit of the vocabulary V; where V is cut each rank "
     "has that of its part"},
    {"sum of exp over V", TERM_BOX, NULL,
     "the loss, 2: of each token the sum of exp(logit - max) over the vocabulary V"},
    {"target logit", TERM_BOX, NULL,
     "the loss, 3: of each token the logit of the right next token; 0 on ranks that have not that "
     "part of V"},
    {"sum over V", TERM_BOX, "over_V exp",
     "of each token the sum over the vocabulary: over V is a sum of as many terms as there are "
     "token "
     "ids. Of the logits themselves it is there for label smoothing"},
    {"negative log likelihood", TERM_BOX, NULL,
     "the loss, 4: of each token log(sum of exp) + max - target logit"},
    {"dot", TERM_BOX, NULL,
     "one number: two tensors multiplied element by element and added up, as tokens' losses with "
     "their weights (the loss, 5)"},
    {"top-k, given", TERM_BOX, NULL, "the chosen experts are those that a file or the plan names"},
    {"score", TERM_BOX, "scores", "how well the router thinks of each expert for a token"},
    {"selection bias", TERM_BOX, NULL,
     "a number of each expert that is added for the choice alone, so that loads even out"},
    {"gate weights", TERM_BOX, "weights weights_of_the_kept share_of_the_chosen",
     "what the outputs of a token's chosen experts are multiplied with before they are added"},
    {"probabilities", TERM_BOX, "shares_of_the_scores", "scores of a token that add up to 1"},
    {"dispatch", TERM_BOX, "dispatched",
     "one row for each token and expert that was chosen, in the order of experts"},
    {"combine", TERM_BOX, "combined",
     "rows come back to their tokens and are added, each times its weight"},
    {"rows per expert", TERM_BOX, NULL, "how many rows each expert has"},
    {"capacity", TERM_BOX, NULL, "leaves out the rows that an expert has no room for"},
    {"load balance", TERM_BOX, NULL, "a term of the loss that grows as experts' loads differ"},
    {"log of the sum", TERM_BOX, NULL, "the logarithm of the sum of exp of a token's scores"},
    {"sum over tokens", TERM_BOX, "minus_the_mean difference", "of router's numbers, for its loss"},
    {"weighted sum", TERM_BOX, NULL,
     "one tensor times a number and another times another: AdamW's first moment, and of SGD weight "
     "decay, momentum and the step"},
    {"AdamW", TERM_BOX, NULL,
     "the step of the optimizer: from gradient and moments to the new parameter"},
    {"sum of squares", TERM_BOX, NULL, "of all gradients: how long they are, for clipping"},
    {"clip factor", TERM_BOX, NULL,
     "what all gradients are multiplied with so that together they are no longer than the plan "
     "says; at most 1"},
    /* ---- gradients ---- */
    {"sum of uses", TERM_BOX, "uses",
     "what several ops read gets a gradient from each of them; its own is their sum"},
    {"′", TERM_BOX, "prime",
     "behind a name: the backward of that op. RMSNorm′ makes the gradient towards the norm's input "
     "from that of its output"},
    {"dx", TERM_BOX, "dy dq dk dv dw dx_via",
     "d before a name is the gradient of the loss with regard to it: dx of an op's input, dw of a "
     "weight; `dx via wo` goes back through wo"},
    {"weight gradient", TERM_BOX, "weight_gradients",
     "how the loss changes with a weight: the product of the input and the gradient of the output, "
     "a sum over all tokens"},
    {"cotangent", TERM_BOX, NULL,
     "the gradient that a backward pass begins with where there is no loss: numbers drawn as the "
     "inputs are"},
    {"conjugate", TERM_BOX, "conjugates adjoint dual",
     "the collective by which the gradient of a collective's result goes back to its input: of an "
     "AllGather a ReduceScatter and the other way round, of a Send one back, of an AllToAll an "
     "AllToAll, of an AllReduce none or an AllReduce (`explain identity`)"},
    {"kept for backward", TERM_BOX, "saved kept",
     "values of the forward pass that the backward pass reads: they stay in memory until then"},
    {"again", TERM_BOX, NULL, "not kept but made again for backward (`explain recompute`)"},
    {"\u03a3", TERM_BOX, "sigma",
     "a sum over ranks. `\u03a3 tp pending`: each rank of tp has a term of it, and nobody has "
     "added them yet (`explain partial sum`); `max` in its place: the largest of all ranks' "
     "numbers"},
    {"dropped", TERM_BOX, NULL,
     "of rows: a token goes to one expert less, for that has no room for it (`explain capacity`); "
     "its other experts and the residual stream are what it goes on with. Of a slice: what the "
     "rank does not keep of a copy"},
    {"local move", TERM_BOX, NULL, "the layout changes and nothing is sent: a slice, a pick"},
    {NULL, TERM_BOX, NULL, NULL},
};
