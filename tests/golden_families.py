#!/usr/bin/env python3
"""Golden values of model families: this program's own random weights, through Hugging Face transformers (float64, eager).

python3 tests/golden_families.py [FAMILY ...]      from the repository root, with ./shardproof built

Writes tests/golden/families/FAMILY.json: the config, the loss and, of the logits and of the gradient of each parameter (by their
names' order), the sum over all elements x_i of x_i cos(i). Nothing of the product or its tests needs this script.
"""
import json, os, re, subprocess, sys, tempfile, types
import importlib.util
import torch, transformers
from safetensors.torch import load_file
from transformers import AutoConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "families")
BASE = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=22,
            max_position_embeddings=64, pad_token_id=None, bos_token_id=None, eos_token_id=None)
FAMILIES = {
    "mistral": dict(sliding_window=5),
    "ministral": dict(sliding_window=4, layer_types=["full_attention", "sliding_attention"], head_dim=6),
    "seed_oss": dict(head_dim=6, attention_out_bias=True, residual_dropout=0.0, attention_dropout=0.0),
    "smollm3": dict(num_hidden_layers=3, no_rope_layer_interval=2, use_sliding_window=True, sliding_window=5),
    "ernie4_5": dict(head_dim=6, use_bias=True),
    "helium": dict(head_dim=4, attention_bias=True, mlp_bias=True),
    "granite": dict(embedding_multiplier=3.0, attention_multiplier=0.3, residual_multiplier=0.6, logits_scaling=1.7, attention_bias=True),
    "arcee": dict(mlp_bias=True),
    "gemma": dict(head_dim=6),
    "glm": dict(head_dim=8, attention_bias=True),
    "glm4": dict(head_dim=8, attention_bias=False, partial_rotary_factor=0.75),
    "gemma2": dict(head_dim=6, sliding_window=4, query_pre_attn_scalar=5, attn_logit_softcapping=1.5, final_logit_softcapping=2.0),
    "gemma3_text": dict(head_dim=6, num_hidden_layers=3, sliding_window=4, sliding_window_pattern=2, query_pre_attn_scalar=5,
                        attn_logit_softcapping=None, rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
                        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0}}),
    "nemotron": dict(head_dim=8, mlp_bias=True),
    "apertus": dict(attention_bias=False),
    "phi3": dict(hidden_size=32, sliding_window=7, original_max_position_embeddings=8, rope_parameters={"rope_type": "longrope", "rope_theta": 5000.0,
                 "partial_rotary_factor": 0.75, "short_factor": [1.0, 1.5, 2.0], "long_factor": [1.25, 2.5, 4.0]}),
    "olmo": dict(clip_qkv=0.3),
    "olmo2": dict(attention_bias=True),
    "olmo3": dict(num_hidden_layers=3, sliding_window=4, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                  rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
                  "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0}}),
    "olmoe": dict(num_experts=5, num_experts_per_tok=2, clip_qkv=0.9),
    "flex_olmo": dict(num_experts=5, num_experts_per_tok=2),
    "cohere2_moe": dict(num_experts=5, num_experts_per_tok=2, sliding_window=4, num_hidden_layers=3, head_dim=6,
                        layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "flint": dict(head_dim=6, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=9, shared_expert_intermediate_size=7,
                  num_hidden_layers=4, sliding_window=4),
    "cohere": dict(use_qk_norm=True, attention_bias=True, logit_scale=0.3),
    "cohere2": dict(num_hidden_layers=3, sliding_window=4, layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "gpt_neox": dict(hidden_size=32, num_key_value_heads=None),
    "gpt2": dict(n_embd=16, n_layer=2, n_head=4, n_positions=19, n_inner=None),
    "cwm": dict(bos_token_id=1, head_dim=6, mlp_bias=True, sliding_window=4, num_hidden_layers=3),
    "youtu": dict(q_lora_rank=7, kv_lora_rank=6, qk_rope_head_dim=4, qk_nope_head_dim=3, v_head_dim=5, num_key_value_heads=4, attention_bias=True),
    "glm4_moe_lite": dict(q_lora_rank=7, kv_lora_rank=6, qk_rope_head_dim=4, qk_nope_head_dim=3, v_head_dim=5, num_key_value_heads=4,
                          n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=9, n_group=2, topk_group=1),
    "solar_open": dict(head_dim=6, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=9, n_group=1, topk_group=1,
                       routed_scaling_factor=1.3, attention_bias=True, intermediate_size=None),
    "hy_v3": dict(head_dim=6, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=9, num_shared_experts=2, num_hidden_layers=3,
                  mlp_layer_types=["sparse", "dense", "sparse"]),
    "gpt_oss": dict(head_dim=6, num_local_experts=5, num_experts_per_tok=2, num_hidden_layers=3, sliding_window=4, swiglu_limit=0.7,
                    swiglu_alpha=1.3, max_position_embeddings=4096, rope_parameters={"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0,
                    "beta_fast": 2.0, "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 16}),
    "aria_text": dict(moe_num_experts=5, moe_topk=2, attention_bias=True),
    "exaone4": dict(num_hidden_layers=3, sliding_window=5, sliding_window_pattern=2),
}
PLAN = """model: {{hf_config: {config}, layers: all, parts: [embedding, blocks, norm, head, loss]}}
data: {{dtype: f64, batch: 2, sequence: 11, seed: 7}}
names: hf
mesh: {{tp: 1}}
pass: backward
"""


def sums(x):
    x = x.detach().double().reshape(-1)
    return float((x * torch.cos(torch.arange(x.numel(), dtype=torch.float64))).sum())


def make(name, own):
    config = dict({} if name == "gpt2" else BASE, vocab_size=22, model_type=name) | own
    if config.get("intermediate_size", 0) is None: del config["intermediate_size"]
    with tempfile.TemporaryDirectory() as d:
        json.dump(config, open(f"{d}/config.json", "w"))
        open(f"{d}/plan.yaml", "w").write(PLAN.format(config="config.json"))
        r = subprocess.run(["./shardproof", "run", f"{d}/plan.yaml", "--save-values", f"{d}/v.safetensors"], capture_output=True, text=True)
        if r.returncode: return print(name, "\n", r.stdout, r.stderr)
        v = load_file(f"{d}/v.safetensors")
        cfg = AutoConfig.from_pretrained(d)
    cfg._attn_implementation = "eager"
    cfg._experts_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    cls = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[name]
    module = {"gemma3_text": "gemma3", "aria_text": "aria"}.get(name, name)
    model = getattr(double(f"transformers.models.{module}.modeling_{module}"), cls)(cfg).eval()
    names = dict(model.named_parameters())
    for n, p in names.items():
        if n not in v: return print(name, "no", n, sorted(v)[:9])
        with torch.no_grad(): p.copy_(v[n].reshape(p.shape))
    for n, b in model.named_buffers():
        if n in v: b.copy_(v[n].reshape(b.shape))
    extra = [k for k in v if k.endswith((".weight", ".bias", "_bias")) and k not in {**names, **dict(model.named_buffers())} and not k.startswith(("grad.", "rank"))]
    if extra: print(name, "left over:", extra)
    out = model(input_ids=v["input_ids"].long())
    logits = out.logits
    labels = v["labels"].long()
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
    loss.backward()
    worst = 0
    values = {"logits": sums(logits), "loss_mean": float(loss.detach())}
    def hold(what, mine, its):
        nonlocal worst
        e = float((mine.reshape(-1) - its.reshape(-1)).abs().max() / (its.abs().max() + 1e-300))
        worst = max(worst, e)
        if e > 1e-6: print("   ", name, what, e)
    hold("logits", v["logits"], logits.detach())
    hold("loss", v["loss_mean"], loss.detach())
    for n, p in names.items():
        values[f"grad.param.{n}"] = sums(p.grad)
        if f"grad.param.{n}" in v: hold(n, v[f"grad.param.{n}"], p.grad)
        else: print("no grad", n, [k for k in v if n in k])
    print(f"{name:10s} worst {worst:.1e}, {len(values)} values")
    short = lambda x: float(f"{x:.15g}")
    record = {"config": config, "logits": short(values["logits"]), "loss_mean": short(values["loss_mean"]),
              "gradients": [short(values[k]) for k in sorted(values) if k.startswith("grad.param.")]}
    os.makedirs(HERE, exist_ok=True)
    with open(f"{HERE}/{name}.json", "w") as f: f.write(json.dumps(record, separators=(",", ":")) + "\n")


def double(name):
    """Module `name` of the library with every float32 in its source made float64: norms, rotary tables and softmax."""
    if name + "_f64" in sys.modules: return sys.modules[name + "_f64"]
    spec = importlib.util.find_spec(name)
    source = open(spec.origin).read()
    source = re.sub(r"torch\.float32\b", "torch.float64", source)
    source = re.sub(r"torch\.float\b(?!\d)", "torch.float64", source)
    source = re.sub(r"\.float\(\)", ".double()", source)
    if not name.endswith("modeling_rope_utils"):
        ropes = double("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
        source = re.sub(r"from \.\.\.modeling_rope_utils import", "from transformers.modeling_rope_utils_f64 import", source)
        import transformers.modeling_utils as base
        base.ROPE_INIT_FUNCTIONS = ropes
    m = types.ModuleType(name + "_f64")
    m.__file__, m.__package__ = spec.origin, name.rpartition(".")[0]
    sys.modules[m.__name__] = m
    exec(compile(source, spec.origin, "exec"), m.__dict__)
    return m


if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES: make(name, FAMILIES[name])
