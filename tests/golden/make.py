#!/usr/bin/env python3
"""Cuts the selection in this folder out of ../../../shared/golden. Nothing of the product or its tests needs this script.

python3 tests/golden/make.py    (from the repository root; only the standard library)
"""
import json
import os
import shutil
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
FROM = os.path.join(HERE, "../../../shared/golden")
MOE = "mixtral mixtral-wide qwen3-moe-norm qwen3-moe-raw".split()
DENSE = "llama-gqa llama-bias llama-odd llama-wide llama31-rope qwen2 qwen3".split()


def thin(src, dst, keep):
    """Copies the tensors of a safetensors file whose names `keep` likes, bytes unchanged."""
    with open(src, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(n))
        out, at, parts = {}, 0, []
        if "__metadata__" in head:
            out["__metadata__"] = head["__metadata__"]
        for name in sorted(k for k in head if k != "__metadata__" and keep(k)):
            a, b = head[name]["data_offsets"]
            f.seek(8 + n + a)
            parts.append(f.read(b - a))
            out[name] = dict(head[name], data_offsets=[at, at + b - a])
            at += b - a
    text = json.dumps(out, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(dst), exist_ok=True)
    with open(dst, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def copy(case, *names):
    os.makedirs(os.path.join(HERE, case), exist_ok=True)
    for name in names:
        start, end = os.path.join(FROM, case, name), os.path.join(HERE, case, name)
        if name != "record.json":
            shutil.copyfile(start, end)
            continue
        with open(start) as f, open(end, "w") as g:  # the same values on one line
            g.write(json.dumps(json.load(f), separators=(",", ":"), ensure_ascii=False) + "\n")


def forward(name):
    """Forward values and parameter gradients. Left out: what stands in the file twice (embed, the input of layers above 0),
    the logits, whose every row is judged by loss_per_token, and what the next value judges as well."""
    twice = name == "embed" or (name.endswith(".input") and name.startswith("layers.") and name != "layers.0.input")
    inner = name.endswith((".mlp.gate", ".mlp.up", ".mlp.down", ".resid_attn", ".q_proj", ".k_proj", ".q_rope", ".k_rope",
                           ".attn_context", ".input_norm", ".post_attn_norm"))
    return name.startswith("grad.param.") or not (twice or inner or name == "logits" or "attn_probs" in name or name.startswith("grad."))


def odd(name):
    """Of a single expert's gradients every second is left out."""
    number = name.split(".experts.")[1].split(".")[0]
    return not number.isdigit() or int(number) % 2 == 1


def folders(kind, *starts):
    return [kind + "/" + d for d in sorted(os.listdir(os.path.join(FROM, kind))) if d.startswith(starts) and "wrong" not in d]


for case in DENSE:
    copy("hf/" + case, "config.json", "config_v4.json", "model.safetensors")
    thin(f"{FROM}/hf/{case}/values.safetensors", f"{HERE}/hf/{case}/values.safetensors", forward)
for case in MOE:  # what the experts do inside is judged by what they put out
    copy("hf/" + case, "config.json", "config_v4.json", "model.safetensors")
    thin(f"{FROM}/hf/{case}/values.safetensors", f"{HERE}/hf/{case}/values.safetensors",
         lambda name: forward(name) and ".pairs." not in name and (".experts." not in name or odd(name)))
def routed(name):
    """What a router of these two models does, and the gradients it has to do with; of single experts every third."""
    part = name.split(".experts.")
    single = len(part) > 1 and part[1].split(".")[0].isdigit()
    if name.startswith("grad.param."):
        return int(part[1].split(".")[0]) % 3 == 0 if single else ("experts" in name or "router" in name or ".gate." in name or "shared" in name
                                                                  or "layernorm" in name)
    return name in ("input_ids", "labels", "layers.1.input", "loss_mean", "loss_per_token", "final_norm") or name.endswith(
        (".moe.routed", ".moe.router_scores_biased", ".moe.shared.act", ".moe.router_logits"))


for case in ("deepseek-v3-yarn", "llama4-interleaved"):
    copy("hf/" + case, "config.json", "config_v4.json", "model.safetensors")
    thin(f"{FROM}/hf/{case}/values.safetensors", f"{HERE}/hf/{case}/values.safetensors", routed)
for case in folders("toy", "adamw", "sgd"):
    copy(case, "case.json")
    copy(case, "values.safetensors")

# 01: weights and data come from a formula. 02: the first step. 03: weights, gradients, input and output of the blocks.
# 04: the gradients of the small parameters.
UNUSED = ("grad_", "dx", "grads/", "params_after", "rank0/w", "h", "logits", "labels") + tuple(f"step{i}" for i in range(1, 10))
BLOCKS = ("weights/", "grads/", "acts/tok_embeddings")
SMALL = ("norm.weight", "attention.wk.weight", "attention.wv.weight")


def torch_values(case, name):
    if case.endswith("llama3_reference"):
        return name.startswith(BLOCKS) or name in (
            "acts/layers.0", "acts/layers.1", "acts/layers.0.attention.wo", "ids", "labels", "loss")
    if "/04_" in case:
        return name in ("ids", "labels", "loss") or (name.startswith("grads/") and name.endswith(SMALL))
    if "/01_" in case:
        return name == "output" and ("fig4_col_tp4" in case or "pair" in case)
    return not name.startswith(UNUSED) and "/weights/" not in name


for case in folders("torch", "01", "02", "03", "04_fsdp", "06_uneven_col", "06_uneven_row", "07", "llama3_reference"):
    if "/07_" in case and not case.endswith("_all_to_all"):
        continue
    copy(case, "plan.json", "record.json")
    thin(f"{FROM}/{case}/values.safetensors", f"{HERE}/{case}/values.safetensors", lambda k: torch_values(case, k))

# 08: the wrong plans that a plan here can say, but for missing_reduction and packed_gate_up, whose files are larger.
for stem in "row_bias norm_grad to_local_grad".split():
    for tp in (2, 4):
        copy(f"torch/08_wrong_{stem}_tp{tp}", "record.json", "values.safetensors")

# What the model library did with two of its shipped plans (test_import).
for case in ("Llama.tp2", "Qwen3.tp2"):
    copy("plans/runs", case + ".json")

# Of the runs with experts two: what test_moe_records reads of them.
def of_record(name):
    return name.startswith(("weight.", "total.grad.")) or (name.startswith("rank") and name.split(".", 1)[1] in (
        "x", "dy", "y", "grad.x", "router_logits", "topk_weight", "topk_index", "kept", "order", "expert_input",
        "expert_input_local_expert", "expert_input_source_rank"))


for case in ("mixtral_ep2etp2_capacity1.0_slot", "deepseek3_ep2_empty_rank"):
    copy("moe", case + ".json")
    thin(f"{FROM}/moe/{case}.safetensors", f"{HERE}/moe/{case}.safetensors", of_record)
