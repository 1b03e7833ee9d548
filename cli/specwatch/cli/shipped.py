"""The specs that ship with the product, one folder a broker: ``specs/<name>/`` with ``binding.toml``."""

from __future__ import annotations

import difflib
from pathlib import Path

from .errors import Refused


def specs_folder() -> Path:
    """Where the shipped specs are: a checkout's ``specs/``, so that an edit there is seen; else ``specwatch/specs``.

    An editable install holds a copy too, made when it was installed: the checkout comes first.
    """
    checkout = Path(__file__).parents[3]
    # Not a walk upwards: an environment that lies inside a user's own project would find that project's specs/.
    if (checkout / "pyproject.toml").is_file() and (checkout / "specs").is_dir():
        return checkout / "specs"
    return Path(__file__).parents[1] / "specs"


def names() -> list[str]:
    """The shipped names, sorted."""
    return sorted(path.parent.name for path in specs_folder().glob("*/binding.toml"))


def binding_path(name: str) -> Path:
    """The binding of a shipped name. Raises ``Refused`` with the nearest names for any other."""
    known = names()
    if name in known:
        path = specs_folder() / name / "binding.toml"
        here = Path.cwd()
        # Reports and JSON name the file as a person in a checkout would.
        return path.relative_to(here) if path.is_relative_to(here) else path
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the shipped names are: {', '.join(known) or 'none'}"
    raise Refused(f"no shipped spec is called {name!r}", hint=f"{hint} (or give the path of a .tla or .toml file)")
