"""Every docstring's example runs as printed."""

import doctest
import importlib
import pkgutil

import pytest

import attn

MODULES = ["attn"] + [f"attn.{module.name}" for module in pkgutil.iter_modules(attn.__path__) if module.name != "_core"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run_as_printed(name):
    if name == "attn.torch":
        pytest.importorskip("torch")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_every_public_name_has_an_example():
    missing = [name for name in attn.__all__ if name not in ("Diagnosis", "isas", "force_isa", "mistakes")
               and ">>>" not in (getattr(attn, name).__doc__ or "")]
    assert missing == []
