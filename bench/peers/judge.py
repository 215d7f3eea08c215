#!/usr/bin/env python3
"""What `attn check` says of other libraries' answers: PyTorch, ONNX Runtime, NumPy, whichever are installed.

    python3 bench/peers/judge.py --attn build/release/attn

Prints a line a case: who, what, the verdict, and the mistake that is named. Exit code 1 where an answer that should be right
is called wrong, or a known difference is not named.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


def numpy_page(q, k, v, causal):
    """As a hundred pages on attention have it."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def torch_cases(random):
    try:
        import torch
    except ImportError:
        return
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for dtype, save in ((torch.float32, "f32"), (torch.bfloat16, "bf16"), (torch.float16, "f16")):
        for shape in ((2, 8, 128, 64), (1, 4, 300, 32)):
            for causal in (False, True):
                q, k, v = (torch.from_numpy(random.standard_normal(shape).astype(np.float32)).to(dtype) for _ in range(3))
                out = sdpa(q, k, v, is_causal=causal)
                yield f"torch {save} {list(shape)}{' causal' if causal else ''}", (q, k, v, out), ["--causal"] if causal else [], None
    q, k, v = (torch.from_numpy(random.standard_normal((1, 2, n, 16)).astype(np.float32)) for n in (5, 9, 9))
    out = sdpa(q, k, v, is_causal=True)
    yield "torch is_causal, N 5, M 9, as top-left", (q, k, v, out), ["--causal=top-left"], None
    yield "torch is_causal, N 5, M 9, as bottom-right", (q, k, v, out), ["--causal=bottom-right"], "causal-top-left"
    mask = torch.ones(5, 9, dtype=torch.bool)
    mask[2] = False
    scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~mask, float("-inf"))
    yield "torch by hand, a row that sees nothing", (q, k, v, scores.softmax(-1) @ v), ["--mask", mask], "empty-row-nan"


def onnx_cases(random):
    try:
        import onnx
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        return
    shape = (2, 4, 64, 32)
    for causal in (0, 1):
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "QKVY"]
        node = helper.make_node("Attention", ["Q", "K", "V"], ["Y"], is_causal=causal)
        model = helper.make_model(helper.make_graph([node], "g", values[:3], values[3:]),
                                  opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        q, k, v = (random.standard_normal(shape).astype(np.float32) for _ in range(3))
        yield f"onnxruntime {list(shape)}{' causal' if causal else ''}", (q, k, v, session.run(None, {"Q": q, "K": k, "V": v})[0]), \
            ["--causal"] if causal else [], None


def numpy_cases(random):
    for dtype in (np.float32, np.float64):
        for causal in (False, True):
            q, k, v = (random.standard_normal((3, 200, 48)).astype(dtype) for _ in range(3))
            yield f"numpy {np.dtype(dtype).name}{' causal' if causal else ''}", (q, k, v, numpy_page(q, k, v, causal)), \
                ["--causal"] if causal else [], None


def save(folder, name, tensor):
    """bf16 goes into .safetensors, all else into .npy."""
    if hasattr(tensor, "numpy"):
        import torch
        if tensor.dtype is torch.bfloat16:
            header = json.dumps({name: {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [0, tensor.numel() * 2]}}).encode()
            header += b" " * (-len(header) % 8)
            path = folder / f"{name}.safetensors"
            data = tensor.contiguous().view(torch.int16).numpy().tobytes()
            path.write_bytes(len(header).to_bytes(8, "little") + header + data)
            return str(path)
        tensor = tensor.detach().numpy()
    path = folder / f"{name}.npy"
    np.save(path, tensor)
    return str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attn", default=str(ROOT / "build/release/attn"))
    arguments = parser.parse_args()
    random, failures = np.random.default_rng(1), 0
    for cases in (numpy_cases, torch_cases, onnx_cases):
        for what, tensors, flags, mistake in cases(random) or ():
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                paths = [save(folder, n, t) for n, t in zip(("q", "k", "v", "out"), tensors)]
                flags = [f if isinstance(f, str) else save(folder, "mask", f) for f in flags]
                command = [arguments.attn, "check", "--json"] + flags
                for flag, path in zip(("--q", "--k", "--v", "--out"), paths):
                    command += [flag, path]
                said = subprocess.run(command, capture_output=True, text=True)
            if not said.stdout:
                print(f"{what}: {said.stderr.strip()}")
                failures += 1
                continue
            verdict = json.loads(said.stdout)
            named = [" and ".join(e["ids"]) for e in verdict["explanations"]]
            good = verdict["verdict"] == "right" if mistake is None else mistake in named
            failures += not good
            print(f"{'ok ' if good else 'BAD'} {what}: {verdict['verdict']}, precision {verdict['precision']}, error "
                  f"{verdict['max_error']}, bound {verdict['bound']:.2g} {', '.join(named)}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
