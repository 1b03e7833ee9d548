"""Bad input, each with the answer that it deserves: told with file, line and caret, and never with a traceback."""

from __future__ import annotations

import builtins
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import Result

from specwatch.cli import check

if TYPE_CHECKING:
    from tests.cli.conftest import Queue

Run = Callable[..., Result]
RunProcess = Callable[..., subprocess.CompletedProcess[str]]

GOOD = ("Publish:a", "Execute:a", "Ack:a")

SPECS = {
    # what is wrong → (text, its replacement, a word of the message)
    "a syntax error": (r"/\ t \notin ready", r"/\ t \notin", "notin"),
    "an undefined operator": (r"ready \cup {t}", r"redy \cup {t}", "redy"),
    "a type error in a guard": (r"/\ t \notin ready", r"/\ runs + 1 = t", "+"),
    "an invariant that is not Boolean": (r"runs[t] <= 1", r"runs[t] + 1", "Boolean"),
}


def error_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one error in the JSON of exit code 4."""
    assert (done.returncode, done.stderr) == (4, "")
    document = json.loads(done.stdout)
    assert (document["schema"], document["exit_code"]) == ("specwatch.error/1", 4)
    (error,) = document["errors"]
    assert {"file", "line", "column", "message", "hint"} <= set(error)
    return dict(error)


@pytest.mark.parametrize("what", SPECS)
def test_a_wrong_spec_is_told_with_its_place(run_process: RunProcess, queue: Queue, what: str) -> None:
    good, bad, word = SPECS[what]
    line = queue.module[: queue.module.index(good)].count("\n") + 1
    queue.write("Queue.tla", queue.module.replace(good, bad))
    log = queue.log(*GOOD)
    error = error_of(run_process("check", queue.spec, log, "--json"))
    # What is missing at a line's end is told at the next token.
    assert (error["file"], error["line"]) in {(queue.spec, line), (queue.spec, line + 1)}
    assert word in f"{error['message']} {error['hint']}"
    done = run_process("check", queue.spec, log)
    assert (done.returncode, done.stdout) == (4, "")
    assert f"{queue.spec}:{error['line']}:{error['column']}: " in done.stderr
    assert "^" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_evaluation_names_the_event_and_the_values(run: Run, queue: Queue) -> None:
    queue.write("Queue.tla", queue.module.replace(r"/\ t \in ready", r"/\ runs[t] = TRUE", 1))
    found = run("check", queue.spec, queue.log(*GOOD))
    assert found.exit_code == 4
    assert "event 2" in found.stderr
    assert "log.jsonl:2" in found.stderr
    assert "runs" in found.stderr


def test_a_constant_without_a_value_is_named_with_the_way_to_give_one(run_process: RunProcess, queue: Queue) -> None:
    queue.write("Queue.cfg", "SPECIFICATION Spec\n")
    error = error_of(run_process("check", queue.spec, queue.log(*GOOD), "--json"))
    assert "Tasks" in error["message"]
    assert "--constant Tasks=" in error["hint"]


def test_a_value_on_the_command_line_that_is_no_tla_is_told(run: Run, queue: Queue) -> None:
    found = run("check", queue.spec, queue.log(*GOOD), "--constant", "Tasks={1,")
    assert found.exit_code == 4
    assert "Traceback" not in found.stderr
    assert "internal error" not in found.stderr


def test_a_misspelt_key_in_a_binding_is_told_with_the_right_one(run_process: RunProcess, queue: Queue) -> None:
    binding = queue.write("b.toml", 'spec = "Queue.tla"\nrequired = ["Ack"]\n')
    error = error_of(run_process("check", binding, queue.log(*GOOD), "--json"))
    assert (error["file"], error["line"], error["column"]) == (binding, 2, 1)
    assert "required" in error["message"]
    assert "require" in error["hint"]
    shown = run_process("check", binding, queue.log(*GOOD)).stderr
    assert "^^^^^^^^" in shown


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('spec = "Quue.tla"\n', "Queue.tla"),
        ("order = 'total'\n", "names no spec"),
        ("spec = \n", "TOML"),
        ('spec = "Queue.tla"\nconfig = "Quee.cfg"\n', "Queue.cfg"),
    ],
)
def test_a_binding_that_leads_nowhere_is_told(run: Run, queue: Queue, text: str, word: str) -> None:
    found = run("check", queue.write("b.toml", text), queue.log(*GOOD))
    assert (found.exit_code, found.stdout) == (4, "")
    assert word in found.stderr


# --- logs


@pytest.mark.parametrize(
    ("tail", "word"), [('{"action": "Ack", "par', "unparsed"), ("Segmentation fault\n", "unparsed")]
)
def test_a_torn_or_foreign_line_is_a_loss_and_inconclusive(
    run_process: RunProcess, queue: Queue, tail: str, word: str
) -> None:
    log = queue.write("torn.jsonl", queue.events("Publish:a", "Execute:a") + tail)
    done = run_process("check", queue.spec, log, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (3, "inconclusive")
    assert found["undecided_by_reason"] == {word: 1}
    assert found["ledger"]["unparsed"] == 1
    shown = run_process("check", queue.spec, log)
    assert (shown.returncode, shown.stderr) == (3, "")
    assert "torn.jsonl:3" in shown.stdout


def test_a_violation_before_a_torn_line_stands(run: Run, queue: Queue) -> None:
    text = queue.events("Publish:a", "Execute:a", "Execute:a")
    found = json.loads(run("check", queue.spec, queue.write("torn.jsonl", text + '{"action'), "--json").stdout)
    assert (found["verdict"], found["findings"][0]["at"]) == ("violates", 3)


def test_a_binary_file_is_no_log(run_process: RunProcess, queue: Queue) -> None:
    log = queue.write("core.bin", bytes(range(256)) * 40)
    error = error_of(run_process("check", queue.spec, log, "--json"))
    assert error["file"] == log


def test_an_empty_file_is_vacuous(run_process: RunProcess, queue: Queue) -> None:
    for text in ("", "{}\n"):
        done = run_process("check", queue.spec, queue.write("empty.jsonl", text), "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["verdict"], bool(found["reason"])) == (3, "vacuous", True)


def test_a_file_in_which_nothing_is_a_record_is_refused(run_process: RunProcess, queue: Queue) -> None:
    log = queue.write("prose.log", "All went well.\n" * 3)
    assert error_of(run_process("check", queue.spec, log, "--json"))["file"] == log


def test_a_file_that_is_not_there_is_named(run_process: RunProcess, queue: Queue) -> None:
    log = str(queue.folder / "nowhere.jsonl")
    assert error_of(run_process("check", queue.spec, log, "--json"))["file"] == log


def test_a_directory_without_logs_is_refused(run_process: RunProcess, queue: Queue) -> None:
    folder = queue.folder / "empty"
    folder.mkdir()
    assert error_of(run_process("check", queue.spec, str(folder), "--json"))["file"] == str(folder)


def test_a_directory_in_the_place_of_a_spec_is_refused(run: Run, queue: Queue) -> None:
    folder = queue.folder / "Folder.tla"
    folder.mkdir()
    for arguments in (["check", str(folder), queue.log(*GOOD)], ["explore", str(folder)], ["parse", str(folder)]):
        found = run(*arguments)
        assert (found.exit_code, found.stdout) == (4, "")
        assert str(folder) in found.stderr
        assert "internal error" not in found.stderr


@pytest.mark.parametrize("name", ["log.jsonl", "Queue.tla", "Queue.cfg"])
def test_no_permission_is_told_with_the_file(
    run: Run, queue: Queue, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # Permissions do not stop root, as whom tests run in a container: the system's answer is given here instead.
    log = queue.log(*GOOD)
    forbidden = str(queue.folder / name)
    real = builtins.open

    def guarded(file: Any, *arguments: Any, **more: Any) -> Any:
        if str(file) == forbidden:
            raise PermissionError(13, "Permission denied", forbidden)
        return real(file, *arguments, **more)

    monkeypatch.setattr(builtins, "open", guarded)
    monkeypatch.setattr("io.open", guarded)
    found = run("check", queue.spec, log)
    assert (found.exit_code, found.stdout) == (4, "")
    assert forbidden in found.stderr
    assert "permission" in found.stderr.lower()
    assert "internal error" not in found.stderr


def test_ids_of_ten_kilobytes_are_judged_and_stay_readable(run_process: RunProcess, queue: Queue) -> None:
    task = "x" * 10_000
    log = queue.log(f"Publish:{task}", f"Execute:{task}", f"Execute:{task}")
    arguments = ("check", queue.spec, log, "--constant", f'Tasks={{"{task}"}}')
    done = run_process(*arguments)
    assert (done.returncode, done.stderr) == (1, "")
    assert max(map(len, done.stdout.splitlines())) < 1000
    assert json.loads(run_process(*arguments, "--json").stdout)["findings"][0]["event"]["params"] == {"t": task}


def test_terminal_commands_in_a_source_line_are_not_sent_to_the_terminal(run: Run, queue: Queue) -> None:
    queue.write("Queue.tla", queue.module.replace("UNCHANGED runs", "UNCHANGED \x1b[2J runs", 1))
    found = run("check", queue.spec, queue.log(*GOOD))
    assert found.exit_code == 4
    assert "\x1b" not in found.stderr


# --- endings


def test_an_unknown_action_is_refused_with_the_nearest_name(run_process: RunProcess, queue: Queue) -> None:
    error = error_of(run_process("check", queue.spec, queue.log("Publsh:a"), "--json"))
    assert "Publsh" in error["message"]
    assert "Publish" in f"{error['message']} {error['hint']}"


def test_an_unexpected_error_is_one_line_and_exit_code_4(
    run: Run, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("over\nthere")

    monkeypatch.setattr(check, "job", fail)
    found = run("check", queue.spec, queue.log(*GOOD))
    assert (found.exit_code, found.stdout) == (4, "")
    assert found.stderr.startswith("internal error, please report it: ZeroDivisionError: over there")
    assert found.stderr.count("\n") == 1
    found = run("check", queue.spec, queue.log(*GOOD), "--json")
    assert json.loads(found.stdout)["errors"][0]["message"].startswith("internal error")
    monkeypatch.setenv("SPECWATCH_DEBUG", "1")
    assert "Traceback" in run("check", queue.spec, queue.log(*GOOD)).stderr


def test_an_interrupt_is_exit_code_130(run: Run, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "job", interrupt)
    found = run("check", queue.spec, queue.log(*GOOD))
    assert (found.exit_code, found.stdout) == (130, "")
    assert "Traceback" not in found.stderr


def test_an_interrupt_from_the_terminal_is_exit_code_130(queue: Queue) -> None:
    arguments = [sys.executable, "-m", "specwatch.cli", "check", queue.spec, "-"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # It waits on stdin, so that it cannot end by itself; signals are sent until it has begun to listen to them.
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if _is_reading(process.pid):
                process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
        assert process.returncode == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def _is_reading(pid: int) -> bool:
    """Whether the process sleeps in a read of its stdin (a pipe), as Linux tells it."""
    return "pipe" in Path(f"/proc/{pid}/wchan").read_text()


def test_a_closed_pipe_is_no_error(queue: Queue) -> None:
    log = queue.log("Publish:a", "Execute:a", "Execute:a")
    arguments = [sys.executable, "-m", "specwatch.cli", "check", queue.spec, log]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1
