/* All kernels, for the type that GPU_REAL and GPU_SUFFIX say; included once for each. */
#include "gpu/move.cu.h"
#include "ops/attention.cu.h"
#include "ops/attention_tiles.cu.h" /* has attention's scores */
#include "ops/balance.cu.h"
#include "ops/einsum.cu.h"
#include "ops/optimizer.cu.h"
#include "ops/pointwise.cu.h"
#include "ops/ring.cu.h"
#include "ops/rmsnorm.cu.h"
#include "ops/layernorm.cu.h" /* has rmsnorm's weights */
#include "ops/rope.cu.h"
#include "ops/router.cu.h"
#include "ops/rows.cu.h"
#include "ops/select.cu.h"
#include "ops/vocab.cu.h"
#include "ops/xielu.cu.h"
