"""KvCache: the bits of recomputing, and what it refuses."""

import threading

import numpy
import pytest
from reference import normal

import attn

HEADS, KV_HEADS, DIM = 4, 2, 16


def tokens(seed, count):
    generator = numpy.random.default_rng(seed)
    return (normal(generator, HEADS, count, DIM), normal(generator, KV_HEADS, count, DIM), normal(generator, KV_HEADS, count, DIM))


@pytest.mark.parametrize("chunk", [1, 2, 7, 40])
def test_has_the_bits_of_recomputing(chunk):
    q, k, v = tokens(0, 40)
    whole = attn.attention(q, k, v, causal=True)
    cache = attn.KvCache(KV_HEADS, DIM, page_tokens=16)
    sequence = cache.add_sequence()
    for begin in range(0, 40, chunk):
        part = slice(begin, begin + chunk)
        cache.append(sequence, k[:, part], v[:, part])
        assert (cache.attend(sequence, q[:, part]) == whole[:, part]).all()
    assert cache.length(sequence) == 40


def test_many_sequences_at_once():
    cache = attn.KvCache(KV_HEADS, DIM)
    numbers = [cache.add_sequence() for _ in range(3)]
    q, k, v = (numpy.stack(one) for one in zip(*(tokens(seed, 5) for seed in range(3))))
    cache.append(numbers, k, v)
    out, lse = cache.attend(numbers, q, return_lse=True)
    expected, expected_lse = attn.attention(q, k, v, causal=True, return_lse=True)
    assert (out == expected).all() and (lse == expected_lse).all()
    packed = attn.KvCache(KV_HEADS, DIM)
    numbers = [packed.add_sequence() for _ in range(2)]
    packed.append(numbers, k[:1], v[:1], starts=[0, 2, 5])
    assert [packed.length(number) for number in numbers] == [2, 3]


def test_fork_truncate_drop_release_save_and_load(tmp_path):
    q, k, v = tokens(1, 30)
    cache = attn.KvCache(KV_HEADS, DIM, type="q8", page_tokens=16)
    assert cache.options == dict(kv_heads=KV_HEADS, key_dim=DIM, value_dim=DIM, type="q8", page_tokens=16)
    sequence = cache.add_sequence()
    cache.reserve(100)
    cache.append(sequence, k, v)
    copy = cache.fork(sequence)
    cache.truncate(copy, 20)
    assert cache.length(copy) == 20 and cache.length(sequence) == 30
    cache.save(tmp_path / "cache")
    loaded = attn.KvCache.load(tmp_path / "cache")
    assert loaded.options == cache.options
    assert (loaded.attend(copy, q[:, 19:20]) == cache.attend(copy, q[:, 19:20])).all()
    cache.drop_before(sequence, 25, sink_tokens=2)
    assert cache.attend(sequence, q[:, 29:], window=4, sink_tokens=2).shape == (HEADS, 1, DIM)
    with pytest.raises(ValueError, match="dropped"):
        cache.attend(sequence, q[:, 29:])
    cache.release(copy)
    with pytest.raises(ValueError, match="not in this cache"):
        cache.length(copy)
    usage = cache.usage()
    assert usage["sequences"] == 1 and usage["bytes"] >= usage["pages_in_use"] * usage["page_bytes"]


@pytest.mark.parametrize("error, says, call", [
    (ValueError, "^type: \"f8\"", lambda c, q, k, v: attn.KvCache(2, 16, type="f8")),
    (ValueError, "kv_heads: ", lambda c, q, k, v: attn.KvCache(0, 16)),
    (ValueError, "page_tokens: ", lambda c, q, k, v: attn.KvCache(2, 16, page_tokens=3)),
    (TypeError, "^kv_heads: no whole number", lambda c, q, k, v: attn.KvCache("2", 16)),
    (ValueError, "sequence", lambda c, q, k, v: c.append(77, k, v)),
    (ValueError, "^k: ", lambda c, q, k, v: c.append(0, k[:1], v)),
    (TypeError, "^v: a list", lambda c, q, k, v: c.append(0, k, [1])),
    (ValueError, "^starts: 2 numbers for 2", lambda c, q, k, v: c.append([0, 0], k, v, starts=[0, 5])),
    (ValueError, "^cache: head dim 16, but q has 8", lambda c, q, k, v: c.attend(0, q[..., :8])),
    (ValueError, "dtype f64", lambda c, q, k, v: c.attend(0, q.astype(float))),
    (TypeError, "^sequence: no whole number", lambda c, q, k, v: c.truncate("0", 1)),
    (ValueError, "tokens: ", lambda c, q, k, v: c.truncate(0, 6)),
    (ValueError, "nowhere", lambda c, q, k, v: attn.KvCache.load("/nowhere/at/all")),
])
def test_wrong_use_is_told_in_a_sentence(error, says, call):
    q, k, v = tokens(2, 5)
    cache = attn.KvCache(KV_HEADS, DIM)
    cache.append(cache.add_sequence(), k, v)
    with pytest.raises(error, match=says):
        call(cache, q, k, v)
    assert cache.length(0) == 5


def test_a_cache_may_be_asked_while_it_is_used(tmp_path):
    q, k, v = tokens(4, 5)
    cache = attn.KvCache(KV_HEADS, DIM)
    sequence = cache.add_sequence()
    cache.append(numpy.int64(sequence), k, v, starts=(5 * i + 0 * cache.length(sequence) for i in range(2)))
    assert cache.length(sequence) == 5
    cache.save(bytes(tmp_path / "cache"))
    assert attn.KvCache.load(tmp_path / "cache").length(sequence) == 5
    with pytest.raises(ValueError, match="null byte"):
        cache.save(str(tmp_path / "cut\0short"))


def test_threads_take_turns():
    q, k, v = tokens(3, 64)
    cache = attn.KvCache(KV_HEADS, DIM, page_tokens=16)
    failures = []

    def one(seed):
        try:
            sequence = cache.add_sequence()
            for token in range(64):
                part = slice(token, token + 1)
                cache.append(sequence, k[:, part], v[:, part])
                cache.attend(sequence, q[:, part])
            cache.release(sequence)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    workers = [threading.Thread(target=one, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures and cache.usage()["sequences"] == 0
