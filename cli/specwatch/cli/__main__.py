"""``python -m specwatch.cli`` is ``specwatch``."""

from __future__ import annotations

from .main import main

main()
