"""attn.torch beside torch's own function."""

import contextlib
import os
import random

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import attn.torch  # noqa: E402

theirs = torch.nn.functional.scaled_dot_product_attention
ours = attn.torch.scaled_dot_product_attention
PROBLEMS = int(os.environ.get("ATTN_TORCH_PROBLEMS", "2000"))


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def tensor(generator, shape, dtype):
    """Normal numbers, in memory that is laid out in some way or other."""
    way = generator.choice(["contiguous", "rows first", "slice", "transposed"])
    make = lambda *sizes: torch.randn(*sizes, generator=generator.torch).to(dtype)  # noqa: E731
    if way == "rows first" and len(shape) == 4:
        return make(shape[0], shape[2], shape[1], shape[3]).transpose(1, 2)
    if way == "slice":
        return make(*shape[:-1], shape[-1] + 3)[..., 1:-2]
    if way == "transposed":
        return make(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
    return make(*shape)


def mask_of(generator, batch, heads, rows, keys, dtype):
    """A mask of some shape that broadcasts, in which every row sees a key; bool, or float with -inf and finite numbers."""
    shape = generator.choice([(rows, keys), (1, keys), (batch, 1, rows, keys), (1, heads, rows, keys), (batch, heads, 1, keys)])
    visible = torch.rand(*shape, generator=generator.torch) < 0.7
    visible[..., generator.randrange(keys)] = True
    if generator.random() < 0.5:
        return visible
    added = torch.randn(*shape, generator=generator.torch)
    return torch.where(visible, added, torch.tensor(float("-inf"))).to(dtype)


class Problem:
    """One random call of scaled_dot_product_attention."""

    def __init__(self, seed):
        generator = random.Random(seed)
        generator.torch = torch.Generator().manual_seed(seed)
        self.dtype = generator.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64])
        batch, kv_heads, groups = generator.choice([1, 1, 2, 3]), generator.choice([1, 2, 3]), generator.choice([1, 1, 1, 2, 4])
        rows, keys = generator.choice([1, 1, 2, 5, 17, 64, 130]), generator.choice([1, 2, 7, 33, 64, 129, 300])
        if generator.random() < 0.4:
            keys = rows
        dim, value_dim = generator.choice([1, 4, 8, 16, 32, 64, 80]), None
        value_dim = dim if generator.random() < 0.8 else generator.choice([1, 8, 24])
        heads = kv_heads * groups
        self.query = tensor(generator, (batch, heads, rows, dim), self.dtype)
        self.key = tensor(generator, (batch, kv_heads, keys, dim), self.dtype)
        self.value = tensor(generator, (batch, kv_heads, keys, value_dim), self.dtype)
        self.options = {}
        if groups > 1:
            self.options["enable_gqa"] = True
        kind = generator.choice(["plain", "causal", "mask", "mask"])
        if kind == "causal":
            self.options["is_causal"] = True
        if kind == "mask":
            self.options["attn_mask"] = mask_of(generator, batch, heads, rows, keys, self.dtype)
        if generator.random() < 0.3:
            self.options["scale"] = generator.choice([0.05, 0.5, 1.0])

    def call(self, function):
        return function(self.query, self.key, self.value, **self.options)

    def judged(self, out):
        """What the judge says of an answer: float64, and the contract's bound."""
        mask = self.options.get("attn_mask")
        is_bool = mask is not None and mask.dtype == torch.bool
        return attn.check(
            self.query, self.key, self.value, out, causal="top-left" if self.options.get("is_causal") else False,
            mask=mask if is_bool else None, bias=None if is_bool else mask, scale=self.options.get("scale"),
        )

    def __repr__(self):
        shown = {name: f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else value
                 for name, value in self.options.items()}
        return f"{self.dtype} q {tuple(self.query.shape)} k {tuple(self.key.shape)} v {tuple(self.value.shape)} {shown}"


def test_agrees_with_torch_on_random_problems():
    failures = []
    for seed in range(PROBLEMS):
        problem = Problem(seed)
        out = problem.call(ours)
        reference = problem.call(theirs)
        assert out.shape == reference.shape and out.dtype == reference.dtype
        for name, answer in (("attn", out), ("torch", reference)):
            diagnosis = problem.judged(answer)
            if not diagnosis:
                failures.append(f"{seed}: {name}: {problem}: {diagnosis!r}")
    assert failures == []


def test_where_the_meaning_differs():
    """All of it: rows that see no key, and what hidden keys hold."""
    q, k, v = (torch.randn(1, 1, 3, 4) for _ in range(3))
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    blind = mask.clone()
    blind[1] = False
    assert not ours(q, k, v, attn_mask=blind)[0, 0, 1].any()  # torch: 0 or NaN, by version
    v[0, 0, 2] = float("nan")
    out = ours(q, k, v, attn_mask=mask)
    assert not out[0, 0, :2].isnan().any() and out[0, 0, 2].isnan().all()
    assert theirs(q, k, v, attn_mask=mask).isnan().all()  # weights of 0 times NaN


def test_batches_broadcast_and_fold():
    q, k = torch.randn(2, 3, 4, 5, 8), torch.randn(2, 3, 4, 6, 8)
    mask = torch.rand(2, 1, 1, 5, 6) < 0.8
    mask[..., 0] = True
    for arguments in [(q, k, k), (q, k[:, :1], k[:1]), (q[0, 0], k[0, 0], k[0, 0]), (q[0, 0, 0], k[0, 0, 0], k[0, 0, 0]),
                      (q[0, :1], k[0], k[0]), (q[:1, 0], k[:, 0], k[:, 0]), (q[0], k[0, :1], k[0]), (q[0], k[0, 0], k[0, 0]), (q, k, k, mask)]:
        expected = theirs(*arguments)
        out = ours(*arguments)
        assert out.shape == expected.shape
        torch.testing.assert_close(out, expected)


def test_parameters_and_inference_mode():
    q = torch.nn.Parameter(torch.randn(1, 2, 3, 4))
    torch.testing.assert_close(ours(q, q, q), theirs(q, q, q))
    with torch.inference_mode():
        x = torch.randn(1, 2, 3, 4)
        torch.testing.assert_close(ours(x, x, x, is_causal=True), theirs(x, x, x, is_causal=True))


x = torch.ones(1, 2, 3, 4)


@pytest.mark.parametrize("error, says, call", [
    (NotImplementedError, "^dropout_p: 0.5; dropout is not available", lambda: ours(x, x, x, dropout_p=0.5)),
    (ValueError, "^attn_mask: given together with is_causal", lambda: ours(x, x, x, torch.ones(3, 3, dtype=torch.bool), is_causal=True)),
    (ValueError, "^key, value: dtypes", lambda: ours(x, x.double(), x)),
    (ValueError, "^query: on device meta", lambda: ours(x.to("meta"), x, x)),
    (ValueError, "^k: head dim 2", lambda: ours(x, x[..., :2], x)),
    (TypeError, "^q: dtype torch.int64", lambda: ours(x.long(), x.long(), x.long())),
    (ValueError, "^q: 3 heads, but k has 2", lambda: ours(torch.ones(1, 3, 3, 4), x, x, enable_gqa=True)),
    (ValueError, "^query, key, value: shapes.*give enable_gqa=True", lambda: ours(torch.ones(1, 4, 3, 4), x, x)),
    (TypeError, "^key: a ndarray, but this function takes torch tensors", lambda: ours(x, x.numpy(), x)),
    (ValueError, "^scale: ", lambda: ours(x, x, x, scale=float("inf"))),
])
def test_wrong_use_is_told_in_a_sentence(error, says, call):
    with pytest.raises(error, match=says):
        call()


def test_gradients_are_refused_by_name():
    q = torch.randn(1, 2, 3, 4, requires_grad=True)
    with torch.enable_grad(), pytest.raises(NotImplementedError, match="^query: needs a gradient.*torch.no_grad"):
        ours(q, x, x)


def test_enable_routes_and_says_what_it_did():
    q = torch.randn(1, 4, 200, 64)
    with attn.torch.enable(everything=True) as routing:
        F = torch.nn.functional
        out = F.scaled_dot_product_attention(q, q, q, is_causal=True)
        F.scaled_dot_product_attention(q, q, q, None, 0.5)
        with torch.enable_grad():
            F.scaled_dot_product_attention(q.clone().requires_grad_(), q, q).sum().backward()
        with contextlib.suppress(RuntimeError):
            F.scaled_dot_product_attention(q[..., :3], q, q)
    assert (out == ours(q, q, q, is_causal=True)).all()
    assert routing.left["attn refuses it"] == 1  # and torch has raised its own error
    assert routing.routed == 1 and routing.left["dropout"] == 1 and routing.left["needs a gradient"] == 1
    assert "computed by attn" in str(routing) and "left to torch: dropout" in str(routing)
    with pytest.raises(ZeroDivisionError), attn.torch.enable() as routing:
        raise ZeroDivisionError
    torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert routing.calls == 0


def test_enable_leaves_to_torch_what_it_does_as_fast():
    small, large = torch.randn(1, 1, 2, 8), torch.randn(1, 8, 512, 64)
    with attn.torch.enable() as routing:
        torch.nn.functional.scaled_dot_product_attention(small, small, small)
        torch.nn.functional.scaled_dot_product_attention(large, large, large)
    assert routing.left["torch is as fast"] == 1 and routing.routed == 1


def test_enable_leaves_what_it_does_not_understand_as_it_was():
    import torch.nn.attention.bias

    F, q = torch.nn.functional, torch.randn(1, 2, 64, 8)
    bias = torch.nn.attention.bias.causal_lower_right(5, 64)
    negative = torch.randn(1, 2, 64, 8, dtype=torch.complex64).conj().imag
    for arguments in [(q[:, :, :5], q, q, bias), (negative, negative, negative)]:
        expected = F.scaled_dot_product_attention(*arguments)
        with attn.torch.enable(everything=True):
            torch.testing.assert_close(F.scaled_dot_product_attention(*arguments), expected)
    torch.testing.assert_close(ours(negative, negative, negative), theirs(negative, negative, negative))

    from torch.fx.experimental.proxy_tensor import make_fx

    with attn.torch.enable(everything=True) as routing:
        graph = make_fx(lambda one: F.scaled_dot_product_attention(one, one, one))(q)
    torch.testing.assert_close(graph(q), theirs(q, q, q))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward-mode"):
        ours(q, q, q)
    with attn.torch.enable(everything=True) as outer, attn.torch.enable(everything=True) as inner:
        F.scaled_dot_product_attention(q, q, q)
    assert inner.routed == 1 and outer.calls == 0
    with torch.device("meta"), attn.torch.enable(everything=True):
        torch.testing.assert_close(F.scaled_dot_product_attention(q, q, q), theirs(q, q, q))


def test_modules_give_what_they_gave():
    layer = torch.nn.MultiheadAttention(64, 4, batch_first=True).train()
    x = torch.randn(2, 10, 64)
    expected = layer(x, x, x, need_weights=False)[0]
    with attn.torch.enable(everything=True):
        torch.testing.assert_close(layer(x, x, x, need_weights=False)[0], expected)


def test_numbers_of_numpy_and_torch_are_the_same():
    q = numpy.random.default_rng(0).standard_normal((1, 2, 5, 8), numpy.float32)
    out = attn.attention(torch.from_numpy(q), q, q)
    assert isinstance(out, torch.Tensor) and (out.numpy() == attn.attention(q, q, q)).all()
    sixteen = torch.from_numpy(q).bfloat16()
    assert attn.attention(sixteen, sixteen, sixteen).dtype == torch.bfloat16
