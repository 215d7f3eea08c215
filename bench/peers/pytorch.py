#!/usr/bin/env python3
"""PyTorch's scaled_dot_product_attention beside attn.torch's, from Python, and a model of transformers with both.

  scripts/test-pytorch python bench/peers/pytorch.py            the calls
  scripts/test-pytorch python bench/peers/pytorch.py --model    a Llama-type model of random weights

Calls are interleaved, and each figure is the median of rounds. "bf16 products" multiplies in bfloat16 as torch does; without,
attn computes bfloat16 tensors in float32.
"""

import argparse
import copy
import os
import statistics
import time

# Set on some machines for old builds of OpenBLAS; it would slow down a current one.
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)

import torch  # noqa: E402

import attn.torch  # noqa: E402

# B, Hq, Hkv, N, M, D, causal
SHAPES = [
    (1, 1, 1, 3, 3, 8, False), (1, 4, 4, 16, 16, 32, True), (1, 8, 8, 32, 32, 64, True), (1, 12, 12, 64, 64, 64, False),
    (1, 12, 12, 128, 128, 64, False), (8, 12, 12, 128, 128, 64, False), (1, 8, 8, 256, 256, 64, True), (1, 8, 8, 512, 512, 64, True),
    (1, 32, 8, 512, 512, 128, True), (1, 8, 8, 2048, 2048, 64, True), (1, 12, 12, 1, 16, 64, False), (1, 12, 12, 1, 128, 64, False), (1, 12, 12, 1, 1024, 64, False), (1, 12, 12, 8, 1024, 64, False),
    (1, 32, 8, 1, 512, 128, False), (1, 32, 32, 1, 4096, 128, False), (1, 32, 8, 1, 4096, 128, False), (8, 32, 8, 1, 2048, 128, False),
]


def seconds_of(calls, rounds, least=0.02):
    """The median time of each call, one after the other in every round."""
    counts = []
    for call in calls:
        call()
        begin = time.perf_counter()
        call()
        counts.append(max(1, int(least / max(time.perf_counter() - begin, 1e-7))))
    times = [[] for _ in calls]
    for _ in range(rounds):
        for one, call, count in zip(times, calls, counts):
            begin = time.perf_counter()
            for _ in range(count):
                call()
            one.append((time.perf_counter() - begin) / count)
    return [statistics.median(one) for one in times]


def compare_calls(rounds):
    theirs = torch.nn.functional.scaled_dot_product_attention
    print("| dtype | B, Hq, Hkv, N, M, D | multiply-adds | PyTorch | attn | torch / attn | attn, bf16 products |")
    print("|---|---|---|---|---|---|---|")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for batch, heads, kv_heads, rows, keys, dim, causal in SHAPES:
            q = torch.randn(batch, heads, rows, dim).to(dtype)
            k, v = (torch.randn(batch, kv_heads, keys, dim).to(dtype) for _ in range(2))
            options = dict(is_causal=causal, **({"enable_gqa": True} if heads != kv_heads else {}))
            calls = [lambda: theirs(q, k, v, **options), lambda: attn.torch.scaled_dot_product_attention(q, k, v, **options)]
            if dtype == torch.bfloat16:
                calls.append(lambda: attn.attention(q, k, v, causal=causal, bf16_products=True))
            times = seconds_of(calls, rounds)
            shape = ", ".join(str(size) for size in (batch, heads, kv_heads, rows, keys, dim)) + (" causal" if causal else "")
            products = f"{times[2] * 1e6:,.0f} µs" if len(times) > 2 else ""
            print(f"| {str(dtype)[6:]} | {shape} | {batch * heads * rows * keys * dim:.1e} | {times[0] * 1e6:,.0f} µs | "
                  f"{times[1] * 1e6:,.0f} µs | {times[0] / times[1]:.2f} | {products} |", flush=True)


def compare_models(rounds):
    import transformers

    attn.torch.register_with_transformers()
    config = transformers.LlamaConfig(vocab_size=32000, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
                                      num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192)
    models = {}
    for name in ("sdpa", "attn"):
        torch.manual_seed(0)
        # A copy each: the name is kept in the configuration, and models would share it.
        models[name] = transformers.AutoModelForCausalLM.from_config(copy.deepcopy(config), attn_implementation=name).eval()
    print("| tokens | PyTorch | attn | torch / attn | largest difference of a logit |\n|---|---|---|---|---|")
    with torch.inference_mode():
        for tokens in (128, 512, 2048):
            ids = torch.randint(0, 32000, (1, tokens), generator=torch.Generator().manual_seed(tokens))
            logits = [models[name](ids, logits_to_keep=8).logits for name in models]
            times = seconds_of([lambda name=name: models[name](ids, logits_to_keep=8) for name in models], rounds)
            print(f"| {tokens} | {times[0]:.2f} s | {times[1]:.2f} s | {times[0] / times[1]:.2f} | "
                  f"{(logits[0] - logits[1]).abs().max():.1e} (logits up to {logits[0].abs().max():.1f}) |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="store_true", help="a whole model instead of calls")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print(f"PyTorch {torch.__version__}, attn {attn.__version__} on {attn.isa()}, {torch.get_num_threads()} threads\n")
    with torch.inference_mode():
        compare_models(arguments.rounds) if arguments.model else compare_calls(arguments.rounds)


if __name__ == "__main__":
    main()
