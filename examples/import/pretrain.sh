#!/bin/bash
# Llama 3 8B, as people start pretrain_gpt.py of Megatron-LM on one machine
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-1}
CHECKPOINT_PATH=$1 # where weights are saved
DTYPE=bf16
TP=4

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --swiglu --normalization RMSNorm --disable-bias-linear
    --position-embedding-type rope --rotary-base 500000
    --untie-embeddings-and-output-weights --vocab-size 128256
    --seq-length 8192 --max-position-embeddings 8192
)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size 128 \
    --lr 3e-4 --train-iters 1000"
PARALLEL_ARGS=(--tensor-model-parallel-size $TP)
if [ $TP -gt 1 ]; then
    PARALLEL_ARGS+=(--sequence-parallel)
fi
if [[ "$DTYPE" == "bf16" ]]; then
    TRAINING_ARGS+=" --bf16"
fi

mkdir -p "$CHECKPOINT_PATH"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} \
    $TRAINING_ARGS \
    ${PARALLEL_ARGS[@]} \
    --save $CHECKPOINT_PATH 2>&1 | tee log.txt
