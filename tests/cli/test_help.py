"""The face of the command: its help, its subcommands and its options."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import Result

from specwatch.cli.app import app
from specwatch.cli.commands import COMMANDS, help_text

Run = Callable[..., Result]

COMMON = "--json --quiet --no-color --max-states --timeout --max-memory"
OPTIONS = {
    "check": f"{COMMON} --config --binding --constant --hidden --hidden-max --order --scope --start --skew --require "
    "--strict --format --keep-constraints --set --junit --max-findings --allow-inconclusive",
    "explore": f"{COMMON} --config --deadlock --no-deadlock --ignore-unchecked",
    "parse": "--tree --json --quiet --no-color",
}


def test_help_is_the_same_with_and_without_click(run: Run) -> None:
    found = run("--help")
    assert (found.exit_code, found.stdout) == (0, help_text())


def test_help_imports_neither_click_nor_a_subcommand() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--help']; from specwatch.cli.main import main; main(); "
        "print(sorted(m for m in sys.modules if m.startswith(('specwatch.', 'click', 'lark', 'rich', 'msgspec'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['specwatch.cli', 'specwatch.cli.commands', 'specwatch.cli.main']"


def test_help_of_a_subcommand_loads_neither_the_checker_nor_the_collector() -> None:
    code = (
        "import sys; sys.argv[1:] = ['check', '--help']; from specwatch.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m.startswith(('specwatch.ch', 'specwatch.co', 'lark', 'rich'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_row_of_the_table_is_a_subcommand_of_that_name(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert command.name == name


@pytest.mark.parametrize("name", OPTIONS)
def test_a_subcommand_has_the_options_that_scripts_rely_on_and_no_other(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    found = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in found if word.startswith("-")} == set(OPTIONS[name].split())


def test_an_unknown_command_is_a_usage_error_with_the_nearest_name(run: Run) -> None:
    found = run("chekc")
    assert found.exit_code == 2
    assert "did you mean 'check'?" in found.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["check"],
        ["check", "celery"],
        ["check", "celery", "log", "--no-such-option"],
        ["check", "celery", "log", "--effects", "rows.csv"],
        ["check", "celery", "log", "--jobs", "2"],
        ["check", "celery", "log", "--hidden-max", "-1"],
        ["check", "celery", "log", "--order", "random"],
        ["check", "celery", "log", "--constant", "Tasks"],
        ["check", "celery", "log", "--set", "=1"],
        ["check", "celery", "log", "--timeout", "soon"],
        ["check", "celery", "log", "--max-memory", "much"],
        ["check", "celery", "log", "--allow-inconclusive", "5"],
        ["explore"],
        ["parse"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_nothing_on_stdout(run: Run, arguments: list[str]) -> None:
    found = run(*arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "Usage: " in found.stderr


def test_the_version_is_printed(run: Run) -> None:
    found = run("--version")
    assert found.exit_code == 0
    assert found.stdout.startswith("specwatch ")
