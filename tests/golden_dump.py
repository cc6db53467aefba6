#!/usr/bin/env python3
"""A recorded dump: Hugging Face's Llama under its own tp_plan on two ranks, one step of AdamW, written by docs/dump_ranks.py.

torchrun --nproc-per-node 2 tests/golden_dump.py           from the repository root, with ./shardproof built
torchrun --nproc-per-node 1 tests/golden_dump.py bf16      the same model in bf16, some of its values

Writes tests/golden/dump/rank0.safetensors and rank1.safetensors, or bf16.safetensors. The weights are this program's own, of tests/golden/dump/plan.yaml
on one rank. Nothing of the product or its tests needs this script.
"""
import json, os, subprocess, sys, tempfile
import torch, torch.distributed as dist
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = os.path.join(ROOT, "tests", "golden", "dump")
sys.path.insert(0, os.path.join(ROOT, "docs"))
from dump_ranks import Dump

BF16 = "bf16" in sys.argv[1:]
KEPT = {f"model.layers.0.{m}.output" for m in ("input_layernorm", "self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj")} | \
    {f"grad.param.model.{m}.weight" for m in ("embed_tokens", "layers.0.self_attn.q_proj", "layers.0.self_attn.v_proj", "layers.0.mlp.up_proj",
                                              "layers.0.mlp.down_proj", "norm")} | \
    {"lm_head.output", "after.0.model.layers.0.self_attn.v_proj.weight", "after.0.model.layers.0.self_attn.v_proj.weight.exp_avg"}
dtype = torch.bfloat16 if BF16 else torch.float32
dist.init_process_group("gloo")
rank = dist.get_rank()
with tempfile.TemporaryDirectory() as d:
    subprocess.run(["./shardproof", "run", "-q", "-o", d, "--set", "mesh.tp=1", "--set", "data.dtype=" + ("bf16" if BF16 else "f32"), "--save-values", f"{d}/v.safetensors", f"{HERE}/plan.yaml"],
                   check=False, stdout=subprocess.DEVNULL)
    v = load_file(f"{d}/v.safetensors")
    names = [k for k in v if k.endswith(".weight") and not k.startswith(("grad.", "after.", "rank"))]
    save_file({k: v[k].to(dtype) for k in names}, f"{d}/model.safetensors", metadata={"format": "pt"})
    json.dump(json.load(open(f"{HERE}/config.json")), open(f"{d}/config.json", "w"))
    model = AutoModelForCausalLM.from_pretrained(d, tp_plan=None if BF16 else "auto", dtype=dtype, attn_implementation="eager")
dump = Dump(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
logits = model(input_ids=v["input_ids"].long()).logits
torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), v["labels"].long().reshape(-1)).backward()
dump.gradients()
optimizer.step()
dump.step(optimizer, 0)
if BF16: save_file({k: x for k, x in dump.out.items() if k in KEPT}, f"{HERE}/bf16.safetensors")
else: dump.save(rank, HERE)
if rank == 0:
    for k, x in dump.out.items(): print(k, tuple(x.shape), x.dtype)
