"""explain, check and plot_weights."""

import numpy
import pytest
import reference
from reference import normal

import attn

Q, K, V = [[2, 1], [0, 1], [1, 1]], [[2, 1], [0, 1], [1, 0]], [[3, 0], [0, 4], [1, 1]]
TOKENS = ["order", "4471", "shipped"]


def test_explain_works_the_example():
    worked = attn.explain(Q, K, V, tokens=TOKENS, causal=True, format="json", tile=1, cache=True)
    assert worked["tokens"] == TOKENS and worked["scores"][2] == [3, 1, 1]
    assert numpy.allclose(worked["weights"][2], [0.673, 0.164, 0.164], atol=5e-4)
    assert len(worked["tiles"][2]) == 3 and len(worked["steps"]) == 3
    assert numpy.allclose(worked["out"], attn.attention(*(numpy.array(one, float) for one in (Q, K, V)), causal=True))
    for format in ("text", "markdown", "latex"):
        assert "shipped" in attn.explain(Q, K, V, tokens=TOKENS, format=format)


def test_explain_takes_embeddings_heads_masks_and_mistakes():
    identity = numpy.eye(2)
    worked = attn.explain(x=[[1, 0], [0, 1]], wq=identity, wk=identity, wv=identity, heads=2, format="json")
    assert numpy.shape(worked["scores"]) == (2, 2, 2)
    masked = attn.explain(Q, K, V, mask=numpy.tri(3, dtype=bool), format="json")
    assert masked["weights"] == attn.explain(Q, K, V, causal=True, format="json")["weights"]
    mistaken = attn.explain(Q, K, V, mistake="scale-missing", format="json")
    assert numpy.allclose(mistaken["mistaken_out"], attn.attention(*(numpy.array(one, float) for one in (Q, K, V)), scale=1.0))
    assert all("scale" in text for text in [attn.explain(Q, K, V, mistake="scale-missing")])


@pytest.mark.parametrize("says, call", [
    ("^k: 1 rows, but q has 3|^k: ", lambda: attn.explain(Q, K[:1], V)),
    ("^k: NULL", lambda: attn.explain(Q, None, V)),
    ("^q, k, v: not given", lambda: attn.explain(x=Q)),
    ("^tokens: 2 names for 3", lambda: attn.explain(Q, K, V, tokens=["a", "b"])),
    ("^mistake: \"typo\"", lambda: attn.explain(Q, K, V, mistake="typo")),
    ("^format: \"pdf\"", lambda: attn.explain(Q, K, V, format="pdf")),
    ("^q: a dimension of size 1000|^q: ", lambda: attn.explain(numpy.ones((1000, 2)), numpy.ones((1000, 2)), numpy.ones((1000, 2)))),
    ("^mask: ", lambda: attn.explain(Q, K, V, mask=numpy.ones((2, 2), bool))),
    ("cache|later", lambda: attn.explain(Q, K, V, cache=True)),
    ("^heads|columns", lambda: attn.explain(x=Q, wq=numpy.eye(2), wk=numpy.eye(2), wv=numpy.eye(2), heads=3)),
])
def test_explain_refuses_in_a_sentence(says, call):
    with pytest.raises(ValueError, match=says):
        call()


def test_check_names_the_mistake():
    generator = numpy.random.default_rng(0)
    q, k, v = normal(generator, 1, 4, 12, 16), normal(generator, 1, 4, 12, 16), normal(generator, 1, 4, 12, 16)
    right = attn.check(q, k, v, attn.attention(q, k, v, causal=True), causal=True)
    assert right and right.right and right.verdict == "right" and right.mistakes == [] and str(right).startswith("right")
    wrong = attn.check(q, k, v, reference.attention(q, k, v).astype(numpy.float32), causal=True)
    assert not wrong and wrong.verdict == "wrong" and wrong.mistakes == ["causal-missing"]
    assert "causal-missing" in str(wrong) and "wrong" in repr(wrong) and wrong.max_error > wrong.bound
    assert attn.check(q, k, v, attn.attention(q, k, v) + numpy.float32(0.1), causal=True).verdict == "unexplained"
    assert attn.check(q, k, v, attn.attention(q, k, v) + numpy.float32(0.1), tolerance=0.2)
    assert set(wrong.mistakes) < set(attn.mistakes())
    with pytest.raises(ValueError, match="theirs"):
        attn.check(q, k, v, q[:, :, :3])
    with pytest.raises(ValueError, match="tolerance"):
        attn.check(q, k, v, q, tolerance=-1)


def test_nan_never_passes():
    generator = numpy.random.default_rng(1)
    q, k, v = (normal(generator, 1, 4, 8) for _ in range(3))
    out = attn.attention(q, k, v)
    out[0, 2, 3] = numpy.nan
    assert not attn.check(q, k, v, out)
    assert not attn.check(q, k, v, out, tolerance=1e30)


def test_plot_weights(tmp_path):
    pytest.importorskip("matplotlib")
    weights = attn.weights(*(numpy.array([one], float) for one in (Q, K)), causal=True)
    figure = attn.plot_weights(weights, tokens=TOKENS)
    figure.savefig(tmp_path / "weights.png")
    assert (tmp_path / "weights.png").stat().st_size > 5000
    texts = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert texts == TOKENS and "not why" in figure.get_supxlabel()
    assert len(attn.plot_weights(numpy.random.rand(6, 5, 5)).axes) == 7
    for wrong in (numpy.ones(3), numpy.ones((2, 2, 2, 2)), numpy.ones((0, 3))):
        with pytest.raises(ValueError, match="weights"):
            attn.plot_weights(wrong)
    with pytest.raises(ValueError, match="2 names for 3"):
        attn.plot_weights(weights, tokens=["a", "b"])
