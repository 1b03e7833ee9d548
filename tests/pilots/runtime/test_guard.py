"""No program outlives the command that started it, and nothing of the program outlives it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specwatch.pilots.runtime import ServerError
from specwatch.pilots.runtime.guard import Process, spawn

Until = Callable[..., bool]
Alive = Callable[[int], bool]
Start = Callable[..., Process]

PLAIN = "import signal; print('up', flush=True); signal.pause()"
POLITE = (
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('up', flush=True); signal.pause()"
)
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)
FAMILY = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        os.fork()
        os.write(1, b"%d\\n" % os.getpid())  # In one piece: an unbuffered print writes the end of its line by itself.
        signal.pause()
while True:
    signal.pause()
"""
"""A program with four descendants in sessions of their own, none of which hears of SIGTERM."""
COMMAND = f"""
import pathlib, signal, sys, time
from specwatch.pilots.runtime.guard import spawn
folder = pathlib.Path(sys.argv[1])
data = folder / "data"
program = spawn([sys.executable, "-c", {FAMILY!r}], log=folder / "log", remove=[data], prepare=data.mkdir)
while len(program.log.read_text().split()) < 4:
    time.sleep(0.01)
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def start(tmp_path: Path, until: Until) -> Iterator[Start]:
    """Start guarded Python code, and wait until it has said so many words."""
    started: list[Process] = []

    def run(code: str, words: int = 1, **more: Any) -> Process:
        process = spawn([sys.executable, "-c", code], log=tmp_path / f"{len(started)}.log", **more)
        started.append(process)
        assert until(lambda: len(said(process)) >= words or process.poll() is not None)
        return process

    yield run
    for each in started:
        each.stop()


def said(process: Process) -> list[str]:
    return process.log.read_text(encoding="utf-8").split()


def test_the_pid_is_the_programs_own_and_its_output_is_in_the_log(start: Start) -> None:
    process = start("import os, sys; print(os.getpid()); sys.stderr.write(str(os.getsid(0)))", words=2)
    assert process.wait(30) == 0
    assert said(process) == [str(process.pid)] * 2


def test_a_program_has_the_environment_and_the_folder_that_it_is_given(start: Start, tmp_path: Path) -> None:
    process = start(
        "import os; print(os.environ.get('A'), os.environ.get('HOME'), os.getcwd())", env={"A": "1"}, cwd=tmp_path
    )
    assert process.wait(30) == 0
    assert said(process) == ["1", "None", str(tmp_path)]


def test_a_program_gets_no_input_and_no_signal_is_ignored_or_blocked_for_it(start: Start) -> None:
    code = "import signal, sys; print(repr(sys.stdin.read()), *(signal.getsignal(n) == 0 for n in (15, 1, 17)))"
    assert said(start(code, words=4)) == ["''", "True", "True", "True"]


@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)])
def test_the_exit_code_is_the_programs(start: Start, code: str, expected: int) -> None:
    process = start(code)
    assert process.wait(30) == expected
    assert (process.poll(), process.stop()) == (expected, expected)


def test_a_wait_has_an_end(start: Start) -> None:
    process = start(PLAIN)
    assert (process.poll(), process.wait(0.05)) == (None, None)


@pytest.mark.parametrize("file", ["/no/such/program", "/etc/passwd"])
def test_a_program_that_cannot_be_started_is_an_error_that_names_it(tmp_path: Path, file: str) -> None:
    data = tmp_path / "data"
    with pytest.raises(ServerError, match=f"cannot start {file}: .*(No such file|Permission denied)"):
        spawn([file], log=tmp_path / "log", remove=[data], prepare=data.mkdir)
    assert not data.exists()


def test_an_error_while_preparing_is_passed_on_and_what_was_made_is_removed(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def prepare() -> None:
        data.mkdir()
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        spawn([sys.executable, "-c", PLAIN], log=tmp_path / "log", remove=[data], prepare=prepare)
    assert not data.exists()


def test_the_end_of_with_stops_a_program_and_removes_its_folders(tmp_path: Path, alive: Alive) -> None:
    data = tmp_path / "data"
    with spawn([sys.executable, "-c", PLAIN], log=tmp_path / "log", remove=[data], prepare=data.mkdir) as process:
        assert (alive(process.pid), alive(process.guard_pid), data.exists()) == (True, True, True)
    assert (alive(process.pid), alive(process.guard_pid), data.exists()) == (False, False, False)


def test_a_program_may_end_by_itself_when_it_is_stopped(start: Start) -> None:
    assert start(POLITE).stop() == 7


def test_a_program_is_stopped_by_the_signal_that_it_wants(start: Start) -> None:
    assert start(PLAIN, stop_signal=signal.SIGUSR1).stop() == -signal.SIGUSR1


def test_a_program_that_does_not_hear_is_killed_after_the_grace(start: Start) -> None:
    assert start(STUBBORN, grace=0.1).stop() == -signal.SIGKILL


def test_a_paused_program_is_stopped_all_the_same(start: Start, until: Until) -> None:
    process = start(POLITE)
    process.send_signal(signal.SIGSTOP, group=True)
    assert until(lambda: " T " in Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8"))
    assert process.stop() == 7


def test_a_signal_goes_to_the_program_or_to_its_group(start: Start, until: Until) -> None:
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'heard\\n'))\n"
        "os.fork()\n"
        "os.write(1, b'up\\n')\n"
        "while True: signal.pause()"
    )
    process = start(code, words=2)
    process.send_signal(signal.SIGUSR1)
    assert until(lambda: said(process).count("heard") == 1)
    process.send_signal(signal.SIGUSR1, group=True)
    assert until(lambda: said(process).count("heard") == 3)


def test_terminate_and_kill_reach_the_program(start: Start) -> None:
    process = start(POLITE)
    process.terminate()
    assert process.wait(30) == 7
    process = start(STUBBORN)
    process.kill()
    assert process.wait(30) == -signal.SIGKILL


def test_a_signal_to_a_program_that_has_ended_goes_nowhere(start: Start) -> None:
    process = start("pass")
    assert process.wait(30) == 0
    process.kill()
    process.stop()
    process.kill()
    assert process.poll() == 0


def test_when_a_program_has_ended_nothing_of_it_is_left_in_whatever_session(start: Start, alive: Alive) -> None:
    process = start(FAMILY, words=4)
    family = [int(pid) for pid in said(process)]
    assert [alive(pid) for pid in family] == [True] * 4
    process.kill()
    assert process.wait(30) == -signal.SIGKILL
    assert [alive(pid) for pid in family] == [False] * 4


def test_a_stop_ends_the_descendants_in_whatever_session(start: Start, alive: Alive) -> None:
    process = start(FAMILY, words=4, grace=0.1)
    process.stop()
    assert [alive(int(pid)) for pid in said(process)] == [False] * 4


def test_however_the_command_ends_nothing_is_left(command: Callable[..., Any], ending: int, until: Until) -> None:
    one = command(COMMAND)
    family = one.ready()
    assert len(family) == 6  # the guard, the program and its four
    assert one.left_after(ending, family) == set()
    assert until(lambda: not (one.folder / "data").exists(), 5)


def test_a_fork_of_the_command_that_holds_the_pipe_keeps_nothing_alive(command: Callable[..., Any]) -> None:
    """A library may fork without exec; the guard then sees that its parent is another."""
    one = command(
        "import os, pathlib, signal, sys\n"
        "from specwatch.pilots.runtime.guard import spawn\n"
        f"program = spawn([sys.executable, '-c', {PLAIN!r}], log=pathlib.Path(sys.argv[1]) / 'log')\n"
        "fork = os.fork()\n"
        "if fork: (pathlib.Path(sys.argv[1]) / 'fork').write_text(str(fork)); print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    family = one.ready()
    fork = int((one.folder / "fork").read_text(encoding="utf-8"))
    try:
        # The fork is in the command's session, which is not looked at.
        assert one.left_after(signal.SIGKILL, family - {fork}) == set()
    finally:
        os.kill(fork, signal.SIGKILL)


def test_a_command_that_is_killed_while_it_prepares_leaves_no_folder(command: Callable[..., Any], until: Until) -> None:
    one = command(
        "import os, pathlib, sys\n"
        "from specwatch.pilots.runtime.guard import spawn\n"
        "data = pathlib.Path(sys.argv[1]) / 'data'\n"
        "def prepare():\n"
        "    data.mkdir()\n"
        "    print('made', flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "spawn(['true'], log=pathlib.Path(sys.argv[1]) / 'log', remove=[data], prepare=prepare)\n"
    )
    assert one.process.wait(60) == -signal.SIGKILL
    assert one.said() == "made\n"
    assert until(lambda: not (one.folder / "data").exists(), 5)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_a_program_dies_with_its_guard(start: Start, alive: Alive, until: Until) -> None:
    process = start(STUBBORN)
    os.kill(process.guard_pid, signal.SIGKILL)
    assert until(lambda: not alive(process.pid), 5)
    assert process.wait(30) == -signal.SIGKILL
    process.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_guard_that_is_told_to_end_stops_its_program_first(start: Start, number: int) -> None:
    process = start(POLITE)
    os.kill(process.guard_pid, number)
    assert process.wait(30) == 7


def test_a_signal_to_the_commands_group_reaches_neither_guard_nor_program(start: Start) -> None:
    """Ctrl-C is one: the command alone decides when its workers stop."""
    process = start(PLAIN)
    groups = {os.getpgid(process.pid), os.getpgid(process.guard_pid)}
    assert groups == {process.pid, process.guard_pid}
    assert {os.getsid(pid) for pid in groups} == groups


def test_logs_of_one_name_are_appended_to(tmp_path: Path) -> None:
    for word in ("first", "second"):
        with spawn([sys.executable, "-c", f"print('{word}')"], log=tmp_path / "logs" / "log") as process:
            assert process.wait(30) == 0
    assert (tmp_path / "logs" / "log").read_text(encoding="utf-8") == "first\nsecond\n"


def test_stopping_does_not_wait_for_a_grace_that_no_one_needs(start: Start) -> None:
    process = start(PLAIN, grace=3600)
    began = time.monotonic()
    process.stop()
    assert time.monotonic() - began < 60
