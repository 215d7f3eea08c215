"""A model of Hugging Face's transformers, with random weights, computes the same with attn."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import attn.torch  # noqa: E402

attn.torch.register_with_transformers()


@pytest.fixture(autouse=True)
def attn_takes_part(monkeypatch):
    """A comparison of torch with torch would pass as well."""
    calls = []
    attend = attn.torch._attend
    monkeypatch.setattr(attn.torch, "_attend", lambda *args, **options: calls.append(1) or attend(*args, **options))
    yield
    assert calls, "no layer has called attn"


def llama(**changes):
    sizes = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=512)
    return transformers.LlamaConfig(**{**sizes, **changes})


def logits(config, ids, **inputs):
    """With torch's own attention and with ours: the same weights, the same text."""
    result = []
    for name in ("sdpa", "attn"):
        torch.manual_seed(0)
        config._attn_implementation = name
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=name).eval()
        with torch.inference_mode():
            result.append(model(ids, **inputs).logits)
    return result


def test_llama_gives_the_same_logits():
    ids = torch.randint(0, 128, (2, 40), generator=torch.Generator().manual_seed(1))
    expected, out = logits(llama(), ids)
    torch.testing.assert_close(out, expected, atol=2e-5, rtol=1e-4)


def test_padding_is_left_out():
    ids = torch.randint(0, 128, (2, 20), generator=torch.Generator().manual_seed(2))
    mask = torch.ones(2, 20, dtype=torch.long)
    mask[0, :7] = 0
    expected, out = logits(llama(), ids, attention_mask=mask)
    torch.testing.assert_close(out[0, 7:], expected[0, 7:], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(out[1], expected[1], atol=2e-5, rtol=1e-4)


def test_sliding_windows():
    config = transformers.MistralConfig(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                                        num_attention_heads=4, num_key_value_heads=2, sliding_window=8)
    ids = torch.randint(0, 128, (1, 50), generator=torch.Generator().manual_seed(3))
    expected, out = logits(config, ids)
    torch.testing.assert_close(out, expected, atol=2e-5, rtol=1e-4)


def test_generates_the_same_text():
    ids = torch.randint(0, 128, (1, 10), generator=torch.Generator().manual_seed(4))
    texts = []
    for name in ("sdpa", "attn"):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(llama(), attn_implementation=name).eval()
        with torch.inference_mode():
            texts.append(model.generate(ids, max_new_tokens=30, do_sample=False, pad_token_id=0))
    assert (texts[0] == texts[1]).all()


def test_an_encoder_sees_both_ways():
    config = transformers.BertConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
    ids = torch.randint(0, 128, (2, 12), generator=torch.Generator().manual_seed(5))
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 9:] = 0
    states = []
    for name in ("sdpa", "attn"):
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config, attn_implementation=name).eval()
        with torch.inference_mode():
            states.append(model(ids, attention_mask=mask).last_hidden_state)
    torch.testing.assert_close(states[1][0], states[0][0], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(states[1][1, :9], states[0][1, :9], atol=2e-5, rtol=1e-4)


def test_softcap_of_gemma_is_applied():
    config = transformers.Gemma2Config(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                                       num_attention_heads=4, num_key_value_heads=2, head_dim=16, sliding_window=16,
                                       attn_logit_softcapping=2.0, query_pre_attn_scalar=16)
    ids = torch.randint(0, 128, (1, 30), generator=torch.Generator().manual_seed(6))
    result = []
    for name in ("eager", "attn"):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=name).eval()
        with torch.inference_mode():
            result.append(model(ids).logits)
    torch.testing.assert_close(result[1], result[0], atol=2e-5, rtol=1e-4)


def test_training_is_refused_by_name():
    model = transformers.AutoModelForCausalLM.from_config(llama(), attn_implementation="attn")
    with pytest.raises(NotImplementedError, match="needs a gradient"):
        model(torch.zeros(1, 4, dtype=torch.long))
    with torch.inference_mode():
        model(torch.zeros(1, 4, dtype=torch.long))
