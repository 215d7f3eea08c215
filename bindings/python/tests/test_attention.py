"""attention, weights, plan, merge and rotate: numbers, memory, and what is refused."""

import gc
import os
import sys
import threading
import tracemalloc

import numpy
import pytest
import reference
from reference import normal

import attn

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

DTYPES = [numpy.float32, numpy.float64, numpy.float16] + ([ml_dtypes.bfloat16] if ml_dtypes else [])


class OnlyDLPack:
    """An array that can do nothing but hand out its memory, as those of other libraries do."""

    def __init__(self, array, device=None):
        self._array, self._device = array, device

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._device or self._array.__dlpack_device__()


def problem(seed=0, dtype=numpy.float32, shape=(2, 4, 2, 9, 9, 16)):
    batch, heads, kv_heads, rows, keys, dim = shape
    generator = numpy.random.default_rng(seed)
    return (normal(generator, batch, heads, rows, dim, dtype=dtype),
            normal(generator, batch, kv_heads, keys, dim, dtype=dtype),
            normal(generator, batch, kv_heads, keys, dim, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_right_and_comes_back(dtype):
    q, k, v = problem(dtype=dtype)
    out = attn.attention(q, k, v, causal=True)
    assert out.dtype == dtype and out.shape == q.shape
    expected = reference.attention(q, k, v, visible=numpy.tri(9, dtype=bool))
    tolerance = {2: 1e-2, 4: 2e-6, 8: 1e-12}[out.dtype.itemsize]
    assert numpy.abs(out.astype(numpy.float64) - expected).max() < tolerance
    assert attn.check(q, k, v, out, causal=True)


def test_options_mean_what_they_say():
    q, k, v = problem(1)
    i, j = numpy.arange(9)[:, None], numpy.arange(9)[None, :]
    generator = numpy.random.default_rng(2)
    bias, mask = normal(generator, 9, 9), generator.random((2, 1, 9, 9)) < 0.7
    for options, expected in [
        (dict(causal=True), dict(visible=j <= i)),
        (dict(causal="top-left"), dict(visible=j <= i)),
        (dict(causal=True, align=2), dict(visible=j <= i + 2)),
        (dict(causal=True, align=[0, 3]), dict(visible=j[None, None] <= i + numpy.array([0, 3])[:, None, None, None])),
        (dict(window=2, causal=True), dict(visible=(j <= i) & (j >= i - 2))),
        (dict(window=(1, 3)), dict(visible=(j >= i - 1) & (j <= i + 3))),
        (dict(window=(None, 1)), dict(visible=j <= i + 1)),
        (dict(window=1, causal=True, sink_tokens=2), dict(visible=(j <= i) & ((j >= i - 1) | (j < 2)))),
        (dict(mask=mask), dict(visible=mask)),
        (dict(bias=bias), dict(bias=bias)),
        (dict(scale=0.5), dict(scale=0.5)),
        (dict(key_lengths=[9, 4]), dict(visible=j[None, None] < numpy.array([9, 4])[:, None, None, None])),
        (dict(key_lengths=numpy.array([9, 4])), dict(visible=j[None, None] < numpy.array([9, 4])[:, None, None, None])),
        (dict(alibi=True), dict(bias=-(2.0 ** (-2 * numpy.arange(1, 5)))[:, None, None] * abs(i - j))),
    ]:
        out = attn.attention(q, k, v, **options)
        assert numpy.abs(out - reference.attention(q, k, v, **expected)).max() < 3e-6, options


def test_sinks_and_softcap_take_part():
    q, k, v = problem(3)
    sinks = numpy.array([0, 1, -1, 3], numpy.float32)
    out, lse, weights = attn.attention(q, k, v, sinks=sinks, softcap=5.0, return_lse=True, return_weights=True)
    scores = 5 * numpy.tanh(q.astype(float) @ k.repeat(2, 1).swapaxes(-1, -2).astype(float) / 4 / 5)
    total = numpy.exp(scores).sum(-1) + numpy.exp(sinks.astype(float))[:, None]
    assert numpy.abs(lse - numpy.log(total)).max() < 1e-5
    assert numpy.abs(weights - numpy.exp(scores) / total[..., None]).max() < 1e-6
    assert numpy.abs(out - weights @ v.repeat(2, 1)).max() < 1e-5


def test_what_is_returned_is_what_was_asked_for():
    q, k, v = problem(4)
    out = attn.attention(q, k, v)
    with_lse, lse = attn.attention(q, k, v, return_lse=True)
    with_table, table = attn.attention(q, k, v, return_weights=True)
    assert (out == with_lse).all() and (out == with_table).all()
    assert lse.shape == (2, 4, 9) and table.shape == (2, 4, 9, 9) and lse.dtype == table.dtype == numpy.float32
    assert (attn.weights(q, k, rows=[3, 0], heads=[2]) == table[:, [2]][:, :, [3, 0]]).all()
    given = numpy.empty_like(q)
    assert attn.attention(q, k, v, out=given) is given and (given == out).all()


def test_bits_do_not_depend_on_threads_batch_layout_or_strides():
    q, k, v = problem(5, shape=(2, 4, 2, 300, 300, 48))
    out = attn.attention(q, k, v, causal=True)
    for threads in (1, 2, 3):
        assert (attn.attention(q, k, v, causal=True, threads=threads) == out).all()
    assert (attn.attention(q[1:], k[1:], v[1:], causal=True) == out[1:]).all()
    assert (attn.attention(q[:, :, 100:], k, v, causal="bottom-right") == out[:, :, 100:]).all()
    rows_first = [numpy.ascontiguousarray(one.swapaxes(1, 2)) for one in (q, k, v)]
    swapped = attn.attention(*rows_first, causal=True, layout="bshd")
    assert swapped.shape == (2, 300, 4, 48) and swapped.flags.c_contiguous and (swapped.swapaxes(1, 2) == out).all()
    assert (attn.attention(*(one.swapaxes(1, 2) for one in rows_first), causal=True) == out).all()
    backwards = q[:, :, ::-1]
    assert (attn.attention(backwards, k, v)[:, :, ::-1] == attn.attention(q, k, v)).all()
    odd = numpy.frombuffer(b"x" + q.tobytes(), numpy.uint8)[1:].view(numpy.float32).reshape(q.shape)  # unaligned, read-only
    assert (attn.attention(odd, k, v, causal=True) == out).all()
    one = numpy.broadcast_to(k[:1, :1], k.shape)  # strides of 0
    assert (attn.attention(q, one, one) == attn.attention(q, one.copy(), one.copy())).all()


def test_anything_with_dlpack_is_taken():
    q, k, v = problem(6)
    out = attn.attention(OnlyDLPack(q), OnlyDLPack(k), OnlyDLPack(v.swapaxes(1, 2).copy().swapaxes(1, 2)))
    assert isinstance(out, numpy.ndarray) and (out == attn.attention(q, k, v)).all()
    given = numpy.empty_like(q)
    attn.attention(q, k, v, out=OnlyDLPack(given))
    assert (given == out).all()


def test_packed_sequences():
    q, k, v = problem(7, shape=(1, 4, 2, 11, 11, 16))
    starts = [0, 3, 11]
    out = attn.attention(q, k, v, causal=True, query_starts=starts, key_starts=numpy.array(starts, numpy.int32))
    for begin, end in zip(starts, starts[1:]):
        alone = attn.attention(*(one[:, :, begin:end] for one in (q, k, v)), causal=True)
        assert (out[:, :, begin:end] == alone).all()


def test_merge_joins_disjoint_keys():
    q, k, v = problem(8)
    parts = [attn.attention(q, k[:, :, part], v[:, :, part], return_lse=True) for part in (slice(0, 2), slice(2, 9))]
    out, lse = attn.merge(*zip(*parts))
    whole, whole_lse = attn.attention(q, k, v, return_lse=True)
    assert numpy.abs(out - whole).max() < 1e-6 and numpy.abs(lse - whole_lse).max() < 1e-5
    with pytest.raises(ValueError, match="one lse for each out"):
        attn.merge([out], [])


def test_rotate():
    x = normal(numpy.random.default_rng(9), 2, 3, 5, 8)
    angles = numpy.arange(5)[:, None] * 10000.0 ** (-numpy.arange(4) / 4)
    left, right = x[..., :4], x[..., 4:]
    expected = numpy.concatenate([left * numpy.cos(angles) - right * numpy.sin(angles),
                                  right * numpy.cos(angles) + left * numpy.sin(angles)], -1)
    assert numpy.abs(attn.rotate(x) - expected).max() < 1e-6
    assert (attn.rotate(x, [0, 1, 2, 3, 4]) == attn.rotate(x)).all()
    assert attn.rotate(x, out=x) is x and numpy.abs(x - expected).max() < 1e-6
    with pytest.raises(ValueError, match="scaling"):
        attn.rotate(x, scaling="cubic")


def test_plan_says_what_would_be_done():
    q, k, v = problem(10)
    plan = attn.plan(q, k, v, causal=True, threads=1)
    assert plan["path"] == "tiles" and plan["isa"] == attn.isa() and plan["threads"] == 1
    assert plan["table_bytes"] == 2 * 4 * 9 * 9 * 4 and plan["scratch_bytes"] >= 0


def test_every_target_can_be_forced():
    q, k, v = problem(11)
    before, outs = attn.isa(), []
    try:
        for name in attn.isas():
            attn.force_isa(name)
            assert attn.isa() == name
            if name != "sse4":  # which has no fused multiply-add
                outs.append(attn.attention(q, k, v))
    finally:
        attn.force_isa(before)
    assert all((out == outs[0]).all() for out in outs)
    with pytest.raises(ValueError, match="abacus"):
        attn.force_isa("abacus")


q, k, v = problem(12)
read_only = q.copy()
read_only.flags.writeable = False


@pytest.mark.parametrize("error, says, call", [
    (TypeError, "^q: a list; give a NumPy array", lambda: attn.attention([[1.0]], k, v)),
    (TypeError, "^k: a NoneType", lambda: attn.attention(q, None, v)),
    (TypeError, "^q: dtype int64; give float32", lambda: attn.attention(q.astype(int), k, v)),
    (TypeError, "^v: dtype complex64", lambda: attn.attention(q, k, v.astype(numpy.complex64))),
    (TypeError, "^q: dtype object", lambda: attn.attention(q.astype(object), k, v)),
    (ValueError, "^v: dtype f64, but k has f32", lambda: attn.attention(q, k, v.astype(float))),
    (ValueError, "^k: head dim 8, but q has 16", lambda: attn.attention(q, k[..., :8], v)),
    (ValueError, "^q: 4 heads, but k has 3", lambda: attn.attention(q, k.repeat(2, 1)[:, :3], v.repeat(2, 1)[:, :3])),
    (ValueError, "^v: keys 8, but k has 9", lambda: attn.attention(q, k, v[:, :, :8])),
    (ValueError, "^q: 5 dimensions", lambda: attn.attention(q[None], k, v)),
    (ValueError, "^q: 0 dimensions", lambda: attn.attention(numpy.array(1.0), k, v)),
    (ValueError, "^q: its bytes are in the other order", lambda: attn.attention(q.astype(">f4"), k, v)),
    (ValueError, "^out: is read-only", lambda: attn.attention(q, k, v, out=read_only)),
    (ValueError, "^out: ", lambda: attn.attention(q, k, v, out=q[:, :, :3].copy())),
    (ValueError, "^out: ", lambda: attn.attention(q, k, v, out=q)),
    (ValueError, "^q: on device .*2.*CPU", lambda: attn.attention(OnlyDLPack(object(), (2, 0)), k, v)),
    (ValueError, "^causal: .*bottom-right", lambda: attn.attention(q[:, :, :3], k, v, causal=True)),
    (ValueError, "^causal: \"left\" is no alignment", lambda: attn.attention(q, k, v, causal="left")),
    (ValueError, "^align: given, but causal says already", lambda: attn.attention(q, k, v, causal="top-left", align=2)),
    (TypeError, "^causal: neither", lambda: attn.attention(q, k, v, causal=0)),
    (TypeError, "^causal: neither", lambda: attn.attention(q, k, v, causal=1)),
    (TypeError, "^align: no list", lambda: attn.attention(q, k, v, causal=True, align=True)),
    (TypeError, "^return_lse: neither", lambda: attn.attention(q, k, v, return_lse=1)),
    (TypeError, "^interleaved: neither", lambda: attn.rotate(q, interleaved=1)),
    (TypeError, "^threads: no whole number", lambda: attn.attention(q, k, v, threads=True)),
    (ValueError, "^key_lengths: empty", lambda: attn.attention(q, k, v, key_lengths=[])),
    (ValueError, "^positions: empty", lambda: attn.rotate(q, positions=[])),
    (TypeError, "^q: a masked array", lambda: attn.attention(numpy.ma.masked_array(q, mask=q > 0), k, v)),
    (ValueError, "^heads: |heads|columns", lambda: attn.explain(x=numpy.eye(2), wq=numpy.eye(2), wk=numpy.eye(2), wv=numpy.eye(2), heads=-1, alibi=True)),
    (ValueError, "zero byte", lambda: attn.force_isa("scalar\0zzz")),
    (TypeError, "^window: neither", lambda: attn.attention(q, k, v, window="wide")),
    (TypeError, "^window: neither", lambda: attn.attention(q, k, v, window=(1, 2, 3))),
    (ValueError, "^window: -1 is below 0", lambda: attn.attention(q, k, v, window=-1)),
    (ValueError, "^mask: dtype f32", lambda: attn.attention(q, k, v, mask=numpy.ones((9, 9), numpy.float32))),
    (ValueError, "^mask: ", lambda: attn.attention(q, k, v, mask=numpy.ones((9, 8), bool))),
    (ValueError, "^scale: ", lambda: attn.attention(q, k, v, scale=float("nan"))),
    (ValueError, "^scale: ", lambda: attn.attention(q, k, v, scale=float("inf"))),
    (TypeError, "^scale: no number", lambda: attn.attention(q, k, v, scale="1")),
    (ValueError, "^softcap: ", lambda: attn.attention(q, k, v, softcap=0)),
    (ValueError, "^softcap: ", lambda: attn.attention(q, k, v, softcap=-1.0)),
    (ValueError, "^key_lengths: ", lambda: attn.attention(q, k, v, key_lengths=[9])),
    (ValueError, "^key_lengths: ", lambda: attn.attention(q, k, v, key_lengths=[9, 10])),
    (TypeError, "^key_lengths: no list", lambda: attn.attention(q, k, v, key_lengths=9)),
    (TypeError, "^key_lengths: no whole number", lambda: attn.attention(q, k, v, key_lengths=[1.5, 2])),
    (ValueError, "^key_lengths: does not fit", lambda: attn.attention(q, k, v, key_lengths=[2**70, 2])),
    (ValueError, "^sinks: ", lambda: attn.attention(q, k, v, sinks=numpy.zeros(3, numpy.float32))),
    (ValueError, "^threads: 0", lambda: attn.attention(q, k, v, threads=0)),
    (ValueError, "^threads: 2000", lambda: attn.attention(q, k, v, threads=2000)),
    (ValueError, "^layout: 'hb'", lambda: attn.attention(q, k, v, layout="hb")),
    (ValueError, "^rows: empty", lambda: attn.weights(q, k, rows=[])),
    (ValueError, "^rows: ", lambda: attn.weights(q, k, rows=[9])),
])
def test_wrong_use_is_told_in_a_sentence(error, says, call):
    with pytest.raises(error, match=says):
        call()


def test_flags_of_numpy_are_flags():
    for flag in (True, False):
        assert (attn.attention(q, k, v, causal=numpy.bool_(flag)) == attn.attention(q, k, v, causal=flag)).all()
        assert (attn.rotate(q, interleaved=numpy.bool_(flag)) == attn.rotate(q, interleaved=flag)).all()
        assert (attn.attention(q, k, v, alibi=numpy.bool_(flag)) == attn.attention(q, k, v, alibi=flag)).all()


def test_what_a_callers_own_code_raises_comes_through():
    def interrupted():
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        attn.attention(q, k, v, key_lengths=interrupted())


def test_many_numbers_of_threads_share_pools():
    for threads in range(2, 200):
        attn.attention(q, k, v, threads=threads)
    assert len(os.listdir("/proc/self/task")) < 100


def test_other_threads_run_meanwhile():
    q, k, v = problem(13, shape=(1, 8, 8, 1500, 1500, 64))
    ticks, done = 0, threading.Event()
    worker = threading.Thread(target=lambda: (attn.attention(q, k, v, threads=1), done.set()))
    worker.start()
    while not done.wait(0.0005):
        ticks += 1
    worker.join()
    assert ticks > 5  # the interpreter was free while attn worked


def test_nothing_leaks():
    q, k, v = problem(14, shape=(1, 2, 2, 4, 4, 8))
    boxed = OnlyDLPack(q)

    def round_of_calls():
        attn.attention(q, k, v, causal=True, return_lse=True, return_weights=True)
        attn.attention(boxed, k, v)
        attn.plan(q, k, v)
        attn.weights(q, k, rows=[0])
        attn.check(q, k, v, q)
        attn.explain(q[0], k[0], v[0])
        with pytest.raises(ValueError):
            attn.attention(q, k[..., :3], v)

    round_of_calls()
    counts = [sys.getrefcount(one) for one in (q, k, v, None if sys.version_info >= (3, 12) else q)]
    tracemalloc.start()
    round_of_calls()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        round_of_calls()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert [sys.getrefcount(one) for one in (q, k, v, None if sys.version_info >= (3, 12) else q)] == counts
    assert grown < 50 * 64


def test_empty_dimensions():
    for shape in [(0, 4, 2, 3, 3, 8), (2, 4, 2, 0, 3, 8), (2, 4, 2, 3, 0, 8)]:
        q, k, v = problem(15, shape=shape)
        out = attn.attention(q, k, v)
        assert out.shape == q.shape and not out.any()
