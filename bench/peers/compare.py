#!/usr/bin/env python3
"""Times attn beside whichever peers are installed, on the same arrays, one call after the other.

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install numpy onnx onnxruntime
    /tmp/peers/bin/python bench/peers/compare.py            # after ./test, which builds the library it calls
    … compare.py --threads 1 --json peers.json --svg docs/pictures/peers.svg

A peer that is not installed, or that refuses a shape, is named as such. Each row is the median of interleaved
rounds; `share` is of the multiply-add peak measured right beside every call of every peer. Results are compared
with attn's before anything is timed: a peer that computes something else does not count. Every peer has a process
of its own, which is stopped while another one's turn is: threads that spin for more work would slow the others.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import pathlib
import signal
import statistics
import sys
import time

# Set on some machines for old builds of OpenBLAS; it would slow down a current one.
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name, (B, H, Hkv, N, M, D), causal
SHAPES = [
    ("prefill", (1, 8, 8, 512, 512, 64), False),
    ("prefill", (1, 8, 8, 512, 512, 64), True),
    ("prefill", (1, 8, 8, 1024, 1024, 64), False),
    ("prefill", (1, 8, 8, 1024, 1024, 64), True),
    ("prefill", (1, 8, 8, 4096, 4096, 64), False),
    ("prefill", (1, 8, 8, 4096, 4096, 64), True),
    ("prefill", (1, 8, 8, 4096, 4096, 128), False),
    ("prefill", (1, 8, 8, 4096, 4096, 128), True),
    ("grouped", (1, 32, 8, 2048, 2048, 128), True),
    ("short batch", (64, 12, 12, 128, 128, 64), False),
    ("decode", (1, 32, 8, 1, 4096, 128), False),
    ("decode", (1, 32, 8, 1, 32768, 128), False),
    ("decode", (8, 32, 8, 1, 4096, 128), False),
    ("small call", (1, 1, 1, 3, 3, 2), False),
    ("small call", (1, 1, 1, 16, 16, 64), False),
]


def flops(shape, causal):
    b, h, _, n, m, d = shape
    return 4.0 * b * h * d * (n * (n + 1) / 2 if causal else n * m)


class Attn:
    """This project, through bench/peers/attn_peer.cc."""

    name = "attn"

    def __init__(self, threads):
        self.threads = threads
        self.library = ctypes.CDLL(str(ROOT / "build/release/bench/libattn_peer.so"))
        self.library.attn_peer_peak.restype = ctypes.c_double
        self.version = "this tree"

    def peak(self):
        return self.library.attn_peer_peak(self.threads)

    def prepare(self, q, k, v, causal):
        import numpy as np

        out = np.empty_like(q)
        sizes = (ctypes.c_int64 * 6)(q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3])
        pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)
        arguments = (pointer(q), pointer(k), pointer(v), pointer(out), sizes, int(causal), self.threads)

        def call():
            if self.library.attn_peer_forward(*arguments) != 0:
                raise RuntimeError("refused")
            return out

        return call


class AttnCache(Attn):
    """This library's KV cache, of f32: for decode, which is what caches are for."""

    name = "attn, f32 cache"

    def prepare(self, q, k, v, causal):
        import numpy as np

        if q.shape[2] > 16 or k.shape[2] < 1024 or causal:
            raise RuntimeError("no decode")
        out = np.empty_like(q)
        sizes = (ctypes.c_int64 * 6)(q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3])
        pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)
        self.library.attn_peer_cache.restype = ctypes.c_void_p
        cache = ctypes.c_void_p(self.library.attn_peer_cache(pointer(k), pointer(v), sizes, 0))
        arguments = (cache, pointer(q), pointer(out), sizes, self.threads)

        def call():
            if self.library.attn_peer_attend(*arguments) != 0:
                raise RuntimeError("refused")
            return out

        return call


class OnnxRuntime:
    """ONNX Runtime's own Attention operator (ai.onnx, opset 23)."""

    name = "ONNX Runtime"

    def __init__(self, threads):
        import onnx
        import onnxruntime

        self.onnx, self.runtime, self.threads = onnx, onnxruntime, threads
        self.version = onnxruntime.__version__

    def prepare(self, q, k, v, causal):
        onnx = self.onnx
        tensor = lambda name, array: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape)
        node = onnx.helper.make_node("Attention", ["q", "k", "v"], ["out"], is_causal=int(causal))
        graph = onnx.helper.make_graph([node], "attention", [tensor("q", q), tensor("k", k), tensor("v", v)],
                                       [tensor("out", q)])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
        model.ir_version = 10
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 4
        session = self.runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feed = {"q": q, "k": k, "v": v}
        return lambda: session.run(None, feed)[0]


class OnnxMultiHead:
    """ONNX Runtime's MultiHeadAttention (com.microsoft), which takes [B, N, H·D]."""

    name = "ONNX Runtime MHA"

    def __init__(self, threads):
        self.inner = OnnxRuntime(threads)
        self.version = self.inner.version

    def prepare(self, q, k, v, causal):
        import numpy as np

        if q.shape[1] != k.shape[1]:
            raise RuntimeError("no grouped heads")
        onnx, runtime = self.inner.onnx, self.inner.runtime
        packed = [np.ascontiguousarray(x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)) for x in (q, k, v)]
        tensor = lambda name, array: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape)
        node = onnx.helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["out"], domain="com.microsoft",
                                     num_heads=q.shape[1], unidirectional=int(causal))
        graph = onnx.helper.make_graph([node], "attention", [tensor(n, x) for n, x in zip("qkv", packed)],
                                       [tensor("out", packed[0])])
        imports = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)]
        model = onnx.helper.make_model(graph, opset_imports=imports)
        model.ir_version = 9
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.inner.threads
        options.log_severity_level = 4
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feed = dict(zip("qkv", packed))
        b, h, n, d = q.shape
        call = lambda: session.run(None, feed)[0]
        call.to_heads = lambda out: out.reshape(b, n, h, d).transpose(0, 2, 1, 3)
        return call


class Torch:
    """PyTorch's scaled_dot_product_attention."""

    name = "PyTorch"

    def __init__(self, threads):
        import torch

        torch.set_num_threads(threads)
        self.torch, self.version = torch, torch.__version__

    def prepare(self, q, k, v, causal):
        torch = self.torch
        tensors = [torch.from_numpy(x) for x in (q, k, v)]
        group = q.shape[1] // k.shape[1]
        b, h, m, d = k.shape
        if group > 1 and not causal:  # heads of a group as queries of one: its fastest way
            tensors[0] = tensors[0].reshape(b, h, group * q.shape[2], d)
        elif group > 1:  # keys and values repeated beforehand; enable_gqa takes its slow path
            tensors[1:] = [x[:, :, None].expand(b, h, group, m, d).reshape(b, h * group, m, d) for x in tensors[1:]]

        def call():
            with torch.inference_mode():
                return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

        call.to_heads = lambda out: out.numpy().reshape(q.shape)
        return call


class NumPy:
    """The formula, as one writes it: the table of scores is stored."""

    name = "NumPy"

    def __init__(self, threads):
        import numpy
        import threadpoolctl

        threadpoolctl.threadpool_limits(threads)
        self.version = numpy.__version__

    def prepare(self, q, k, v, causal):
        import numpy as np

        if q.shape[2] * k.shape[2] * q.shape[0] * q.shape[1] > 2e8:
            raise RuntimeError("its table would not fit")
        group = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        hidden = np.triu(np.ones((q.shape[2], k.shape[2]), bool), 1) if causal else None

        def call():
            scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[3]))
            if hidden is not None:
                scores[..., hidden] = -np.inf
            scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(-1, keepdims=True)
            return scores @ v

        return call


KINDS = (Attn, AttnCache, OnnxMultiHead, OnnxRuntime, Torch, NumPy)


def arrays(shape):
    import numpy as np

    b, h, hk, n, m, d = shape
    random = np.random.default_rng(1)
    return [random.standard_normal(s, dtype=np.float32) for s in ((b, h, n, d), (b, hk, m, d), (b, hk, m, d))]


def one_turn(call, repeats, peak):
    before = peak()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    elapsed = (time.perf_counter() - start) / repeats
    return elapsed, (before + peak()) / 2


def serve(kind, threads, connection):
    """The life of a peer's process: answers requests until there are no more."""
    try:
        peer, ruler = kind(threads), Attn(threads)
    except ImportError as missing:
        connection.send(("missing", str(missing)))
        return
    connection.send(("ready", peer.version))
    call = repeats = None
    while (request := connection.recv()) is not None:
        if request == "turn":
            connection.send(one_turn(call, repeats, ruler.peak))
            continue
        try:
            call = peer.prepare(*arrays(request[0]), request[1])
            out = getattr(call, "to_heads", lambda x: x)(call()).copy()
            start = time.perf_counter()
            call()
            repeats = max(1, min(20000, int(0.005 / (time.perf_counter() - start))))
            connection.send(("ready", out))
        except Exception as reason:  # a peer may refuse in any way it likes
            connection.send(("refused", str(reason).splitlines()[0][:90]))


class Process:
    """A peer in a process of its own, which runs only while it is asked something."""

    def __init__(self, kind, threads):
        self.name = kind.name
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(kind, threads, theirs), daemon=True)
        self.process.start()
        self.state, self.version = self.connection.recv()
        if self.state == "ready":
            os.kill(self.process.pid, signal.SIGSTOP)

    def ask(self, request):
        os.kill(self.process.pid, signal.SIGCONT)
        self.connection.send(request)
        answer = self.connection.recv()
        os.kill(self.process.pid, signal.SIGSTOP)
        return answer

    def end(self):
        os.kill(self.process.pid, signal.SIGCONT)
        self.connection.send(None)
        self.process.join()


def available_peers(threads):
    peers = []
    for kind in KINDS:
        peer = Process(kind, threads)
        if peer.state == "ready":
            print(f"{peer.name}: {peer.version}", file=sys.stderr)
            peers.append(peer)
        else:
            print(f"not installed: {peer.name} ({peer.version})", file=sys.stderr)
    return peers


def prepare_all(peers, shape, causal):
    """The peers that give attn's result; the others' names with the reason why not."""
    import numpy as np

    able, refused, expected = [], {}, None
    for peer in peers:
        state, out = peer.ask((shape, causal))
        if state == "ready":
            expected = out if expected is None else expected
            error = float(np.abs(out - expected).max())
            if not error <= 1e-4:
                state, out = "refused", f"its result differs by {error:.1e}"
        if state == "ready":
            able.append(peer)
        else:
            refused[peer.name] = out
    return able, refused


def measure(peers, name, shape, causal, rounds, seconds):
    able, refused = prepare_all(peers, shape, causal)
    turns = {peer.name: [] for peer in able}
    end = time.perf_counter() + seconds
    while len(turns["attn"]) < rounds or time.perf_counter() < end:
        for peer in able:
            turns[peer.name].append(peer.ask("turn"))
    work = flops(shape, causal)
    results = {peer: {"ms": 1e3 * statistics.median(seconds for seconds, _ in theirs),
                      "share": statistics.median(work / seconds / 1e9 / peak for seconds, peak in theirs)}
               for peer, theirs in turns.items()}
    return {"name": name, "shape": shape, "causal": causal, "results": results, "refused": refused}


def print_table(rows, names):
    print("\n| shape (B,H,Hkv,N,M,D) | " + " | ".join(names) + " | attn against the best peer |")
    print("|---" * (len(names) + 2) + "|")
    for row in rows:
        cells, best = [], None
        for name in names:
            result = row["results"].get(name)
            if result is None:
                cells.append("–")
                continue
            time_text = f"{result['ms']:.3g} ms" if result["ms"] >= 0.1 else f"{1e3 * result['ms']:.2g} µs"
            cells.append(f"{time_text}, {100 * result['share']:.0f} %")
            if not name.startswith("attn") and (best is None or result["ms"] < best):
                best = result["ms"]
        ours = min(result["ms"] for name, result in row["results"].items() if name.startswith("attn"))
        ratio = f"{best / ours:.2f} ×" if best else "–"
        shape = ",".join(map(str, row["shape"])) + (" causal" if row["causal"] else "")
        print(f"| {row['name']} {shape} | " + " | ".join(cells) + f" | {ratio} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each shape, at least")
    parser.add_argument("--json", help="write all numbers to this file")
    parser.add_argument("--svg", help="draw the bars to this file")
    arguments = parser.parse_args()
    peers = available_peers(arguments.threads)
    rows = []
    for i, (name, shape, causal) in enumerate(SHAPES):
        print(f"{i + 1} of {len(SHAPES)}: {name} {shape}", file=sys.stderr)
        rows.append(measure(peers, name, shape, causal, arguments.rounds, arguments.seconds))
    for peer in peers:
        peer.end()
    names = [peer.name for peer in peers]
    print(f"{arguments.threads} threads; time, and share of the multiply-add peak measured beside each call")
    print_table(rows, names)
    for row in rows:
        for name, reason in row["refused"].items():
            print(f"\n{name} is left out of {row['shape']}: {reason}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"threads": arguments.threads, "rows": rows}, indent=1))
    if arguments.svg:
        sys.path.insert(0, str(ROOT / "bench"))
        from pictures import peers_as_bars

        peers_as_bars(rows, names, arguments.svg)


if __name__ == "__main__":
    main()
