"""What torchtitan's apply_tp comes to."""
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    parallelize_module,
    PrepareModuleInput,
    RowwiseParallel as Row,
    SequenceParallel,
)

mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("dp", "tp"))
tp_mesh = mesh["tp"]

model = parallelize_module(
    model,
    tp_mesh,
    {
        "tok_embeddings": Row(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(
            input_layouts=Shard(1),
            output_layouts=Shard(-1),
            use_local_output=False,
        ),
    },
)
prepare = PrepareModuleInput(
    input_layouts=(Shard(1), None),
    desired_input_layouts=(Replicate(), None),
)
for transformer_block in model.layers.values():
    layer_plan = {
        "attention_norm": SequenceParallel(),
        "attention": prepare,
        "attention.wq": ColwiseParallel(),
        "attention.wk": ColwiseParallel(),
        "attention.wv": ColwiseParallel(),
        "attention.wo": Row(output_layouts=Shard(1)),
        "ffn_norm": SequenceParallel(),
        "feed_forward": PrepareModuleInput(
            input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
        ),
        "feed_forward.w1": ColwiseParallel(),
        "feed_forward.w2": Row(output_layouts=Shard(1)),
        "feed_forward.w3": ColwiseParallel(),
    }
    parallelize_module(
        module=transformer_block, device_mesh=tp_mesh, parallelize_plan=layer_plan
    )
    fully_shard(transformer_block, mesh=mesh["dp"], reshard_after_forward=True)
fully_shard(model, mesh=mesh["dp"], reshard_after_forward=True)
with loss_parallel():
    loss.backward()
