"""What the checker's tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specwatch.checker import load_spec
from specwatch.checker.spec import Spec

MakeSpec = Callable[..., Spec]


@pytest.fixture
def make_spec(tmp_path: Path) -> MakeSpec:
    """``make_spec("body", "config", name="M")``: a spec from the text of a module's body."""

    def make(body: str, config: str = "", name: str = "M") -> Spec:
        module = tmp_path / f"{name}.tla"
        module.write_text(f"---- MODULE {name} ----\n{body}\n====\n", encoding="utf-8")
        if config:
            (tmp_path / f"{name}.cfg").write_text(config, encoding="utf-8")
        return load_spec(module)

    return make
