"""What each rank of a PyTorch run holds, as files that `shardproof check PLAN --against FOLDER` reads: rank0.safetensors, ..."""
import torch
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor


class Dump:
    def __init__(self, model):  # before the forward pass
        self.model, self.out = model, {}
        for name, module in model.named_modules():
            module.register_forward_hook(lambda m, i, o, name=name: self.keep(f"{name}.output", o))

    def keep(self, name, x):
        if isinstance(x, torch.Tensor):
            local = x.to_local() if isinstance(x, DTensor) else x
            self.out[name.replace("_checkpoint_wrapped_module.", "").replace("_orig_mod.", "")] = local.detach().cpu().clone().contiguous()

    def gradients(self):  # after loss.backward()
        for name, p in self.model.named_parameters():
            self.keep(name, p)
            g = p.grad  # of a DTensor it may be whole, or a pending sum, where the optimizer makes a part of it
            self.keep(f"grad.param.{name}", g.redistribute(placements=p.placements) if isinstance(g, DTensor) else g)

    def step(self, optimizer, n):  # after optimizer.step(), n counted from 0
        for name, p in self.model.named_parameters():
            for key, x in {"": p, **optimizer.state[p]}.items():
                if key != "step": self.keep(f"after.{n}.{name}.{key}".rstrip("."), x)

    def save(self, rank, folder="."):
        save_file(self.out, f"{folder}/rank{rank}.safetensors")
