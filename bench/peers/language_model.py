#!/usr/bin/env python3
"""A language model through attn and through llama.cpp: the same file, the same tokens, the same threads, in turns.

Needs llama-cpp-python (pip builds it for this machine) and the model of scripts/get-model smollm2:

    python3 bench/peers/language_model.py --threads 2

Prints a table: tokens a second of prefill and decode, medians over repeats in which the two take turns.
"""
import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

os.environ.pop("OPENBLAS_CORETYPE", None)

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
MODEL = CACHE / "attn/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WORDS = ("the a kettle toaster ordered arrived broken week last and but it was house river mountain careful engine "
         "water light morning because people machine number attention reads writes over under blue green").split()


def prompt_of(words):
    """Words in a fixed disorder, a sentence every twelve."""
    text, state = [], 1
    for i in range(words):
        state = (state * 1103515245 + 12345) % 2**31
        text.append(WORDS[state // 65536 % len(WORDS)] + ("." if i % 12 == 11 else ""))
    return " ".join(text)


def run_attn(program, model, prompt, decode, threads):
    command = [program, "generate", "--model", model, "-n", str(decode + 1), "--threads", str(threads), "--json", prompt]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["prompt_token_ids"], result["prefill_tokens_per_s"], result["decode_tokens_per_s"]


class LlamaCpp:
    def __init__(self, model, threads, flash):
        from llama_cpp import Llama
        self.name = "llama.cpp, flash" if flash else "llama.cpp"
        self.model = Llama(str(model), n_ctx=8192, n_threads=threads, n_threads_batch=threads, flash_attn=flash,
                           verbose=False)

    def run(self, tokens, decode):
        self.model.reset()
        start = time.perf_counter()
        self.model.eval(tokens)
        middle = time.perf_counter()
        for token in tokens[:decode]:
            self.model.eval([token])
        return len(tokens) / (middle - start), decode / (time.perf_counter() - middle)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attn", default=str(ROOT / "build/release/attn"))
    parser.add_argument("--model", default=str(MODEL))
    parser.add_argument("--tokens", type=int, nargs="+", default=[100, 1000, 8000], help="of the prompt, about")
    parser.add_argument("--decode", type=int, default=48, help="tokens that are decoded after it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    peers = [LlamaCpp(arguments.model, arguments.threads, flash) for flash in (False, True)]
    print(f"| prompt | program | prefill, tokens/s | decode behind it, tokens/s |\n|---|---|---|---|")
    for wanted in arguments.tokens:
        prompt = prompt_of(int(wanted / 1.2))
        rates = {}
        for _ in range(arguments.repeats):
            tokens, *rate = run_attn(arguments.attn, arguments.model, prompt, arguments.decode, arguments.threads)
            rates.setdefault("attn", []).append(rate)
            for peer in peers:
                rates.setdefault(peer.name, []).append(peer.run(tokens, arguments.decode))
        for name, measured in rates.items():
            prefill, decode = (statistics.median(column) for column in zip(*measured))
            print(f"| {len(tokens)} tokens | {name} | {prefill:.0f} | {decode:.0f} |", flush=True)


if __name__ == "__main__":
    main()
