"""Events of one process: numbered without a hole, each on a line of its own, and never at the application's cost."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specwatch.collector.assemble import Collected, collect
from specwatch.collector.probes import Moment, configure, emit, emitter, failures, start, stop

Lines = list[dict[str, Any]]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory that this process emits to, for the length of a test."""
    monkeypatch.setattr(emitter, "_failures", 0)
    directory = tmp_path / "events"
    configure(directory, role="test")
    yield directory
    configure("")


def lines(path: Path) -> Lines:
    """What a file, or the only file of a directory, holds."""
    if path.is_dir():
        (path,) = path.iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def steps(path: Path) -> Lines:
    return [line for line in lines(path) if "lane" not in line]


def numbers(path: Path) -> list[int]:
    return [line["seq"] for line in lines(path)]


def run(code: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program that emits to ``directory``; it has ``emit`` and the other names of the probes."""
    names = "import os, signal, sys\nfrom specwatch.collector.probes import *\n"
    return subprocess.run(
        [sys.executable, "-c", names + textwrap.dedent(code)],
        env={**os.environ, "SPECWATCH_EVENTS": str(directory), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def collected(*paths: Path) -> Collected:
    return collect([str(path) for path in paths])


def test_an_event_is_a_native_event_with_everything_that_orders_it(events: Path) -> None:
    at = Moment(1893492002_181000001, 77)
    emit("Execute", t="7f3c", w="A@h", key="7f3c", attempt=2, extra={"task": "app.job"}, at=at)
    first, second = lines(events)
    host, pid = os.uname().nodename, os.getpid()
    boot = first["boot"]
    assert second == {
        "action": "Execute",
        "params": {"t": "7f3c", "w": "A@h"},
        "key": "7f3c",
        "attempt": 2,
        "emitter": f"{host}/{pid}",
        "seq": 2,
        "time": "2030-01-01T10:00:02.181000001Z",
        "boot": boot,
        "monotonic": 77,
        "pid": pid,
        "host": host,
        "task": "app.job",
    }
    assert (first["action"], first["seq"], first["lane"], first["params"]) == ("EmitterStart", 1, "emitter", {})
    assert boot.startswith(first["boot_id"])
    (event,) = collected(events).behaviours[0].events
    assert (event.time, event.attempt, event.boot, event.extra and event.extra["monotonic"]) == (at.time, 2, boot, 77)


def test_the_clocks_are_read_when_the_event_is_emitted(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    monkeypatch.setattr("time.time_ns", lambda: 1893492002_000000000)
    monkeypatch.setattr("time.monotonic_ns", lambda: 5)
    emit("A")
    assert [(line["time"], line["monotonic"]) for line in steps(events)] == [("2030-01-01T10:00:02.000000000Z", 5)]


def test_each_process_has_a_file_named_by_its_role_and_pid(events: Path) -> None:
    emit("A")
    assert [path.name for path in events.iterdir()] == [f"test-{os.getpid()}.jsonl"]


def test_a_role_names_no_other_directory(tmp_path: Path) -> None:
    run("configure(role='../w@h'); emit('A')", tmp_path / "events")
    assert [path.name.rsplit("-", 1)[0] for path in (tmp_path / "events").iterdir()] == [".._w@h"]


def test_reserved_words_are_fields_and_can_still_be_parameters(events: Path) -> None:
    emit("A", params={"key": 1, "state": "x"}, key="k", state={"v": 2}, lane="fault", run="r", after=[("e", 1)], b=3)
    (line,) = [line for line in lines(events) if line["action"] == "A"]
    assert line["params"] == {"key": 1, "state": "x", "b": 3}
    assert [line[name] for name in ("key", "state", "lane", "run", "after")] == [
        "k",
        {"v": 2},
        "fault",
        "r",
        [["e", 1]],
    ]


def test_further_fields_give_way_to_those_of_the_event(events: Path) -> None:
    further = {"seq": 99, "time": "never", "pid": 0, "emitter": "x", "action": "B", "params": 1, "key": 2, "mine": 3}
    emit("A", key="k", extra=further)
    (line,) = steps(events)
    assert (line["seq"], line["pid"], line["action"], line["params"], line["key"], line["mine"]) == (
        2,
        os.getpid(),
        "A",
        {},
        "k",
        3,
    )
    assert collected(events).ledger.unparsed == 0


def test_a_program_that_ends_says_so_last(tmp_path: Path) -> None:
    run("import atexit; atexit.register(lambda: emit('AtExit')); emit('A')", tmp_path)
    assert [line["action"] for line in lines(tmp_path)] == ["EmitterStart", "A", "AtExit", "EmitterStop"]


def test_what_comes_after_the_stop_is_told_and_followed_by_another(events: Path) -> None:
    """Finalisers may emit when the interpreter is nearly gone. The stop is the last number all the same."""
    emit("A")
    stop()
    stop()
    emit("Late")
    assert [(line["seq"], line["action"]) for line in lines(events)] == [
        (1, "EmitterStart"),
        (2, "A"),
        (3, "EmitterStop"),
        (4, "Late"),
        (5, "EmitterStop"),
    ]


def test_a_killed_program_has_no_stop(tmp_path: Path) -> None:
    done = run("emit('A'); os.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert [line["action"] for line in lines(tmp_path)] == ["EmitterStart", "A"]


def test_a_program_that_emits_nothing_leaves_nothing(tmp_path: Path) -> None:
    run("stop()", tmp_path / "events")
    assert not (tmp_path / "events").exists()


def test_a_forked_child_is_an_emitter_of_its_own(tmp_path: Path) -> None:
    code = """
        emit("Before")
        if os.fork() == 0:
            emit("Child"); emit("Child"); stop(); os._exit(0)
        os.wait()
        emit("After")
    """
    run(code, tmp_path)
    files = [lines(path) for path in tmp_path.iterdir()]
    files.sort(key=lambda file: file[1]["action"])
    assert [[line["action"] for line in file[1:-1]] for file in files] == [["Before", "After"], ["Child", "Child"]]
    assert [[line["seq"] for line in file] for file in files] == [[1, 2, 3, 4]] * 2
    assert len({file[0]["emitter"] for file in files}) == len({file[0]["boot"] for file in files}) == 2


def test_a_fork_below_python_is_noticed(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no hook ran: only the pid tells."""
    emit("Parent")
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    emit("Child")
    monkeypatch.undo()
    assert [line["action"] for line in lines(events / "test-4711.jsonl")] == ["EmitterStart", "Child"]
    assert numbers(events / f"test-{os.getpid()}.jsonl") == [1, 2]


def test_a_pid_that_comes_again_appends_a_life_of_its_own(events: Path) -> None:
    """A container's program always has the same pid. The one before it died in the midst of a line."""
    emit("A")
    (path,) = events.iterdir()
    with path.open("a") as file:
        file.write('{"action": "To')
    configure(events)
    emit("B")
    assert [line.startswith("{") for line in path.read_text().splitlines()] == [True] * len(
        path.read_text().splitlines()
    )
    found = collected(events)
    assert [event.action for event in found.behaviours[0].events] == ["A", "B"]
    assert (found.ledger.gaps, found.ledger.duplicate, found.ledger.unparsed) == ([], 0, 1)


def test_several_processes_may_share_one_file(tmp_path: Path) -> None:
    code = """
        pids = [os.fork() for _ in range(2)]
        for number in range(500):
            emit("A", n=number)
        if 0 in pids:
            stop(); os._exit(0)
        os.wait(); os.wait()
    """
    run(code, tmp_path / "deep" / "events.jsonl")
    found = collected(tmp_path / "deep" / "events.jsonl")
    assert (found.ledger.mapped, found.ledger.unparsed, found.ledger.gaps) == (4 * 500, 0, [])


def test_threads_leave_no_hole(events: Path) -> None:
    def work() -> None:
        for _ in range(200):
            emit("A")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(events) == list(range(1, 4 * 200 + 2))


def test_odd_values_are_told_as_well_as_can_be(events: Path) -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    emit("A", big=2**200, half="\ud800", odd=Odd(), path=Path("/x"))
    (line,) = steps(events)
    assert line["params"] == {"big": 2**200, "half": "?", "odd": "<Odd>", "path": "/x"}
    assert (failures(), collected(events).ledger.unparsed) == (0, 0)


def test_what_cannot_be_told_leaves_a_hole_and_is_counted(events: Path, caplog: pytest.LogCaptureFixture) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with caplog.at_level(logging.WARNING, "specwatch.probes"):
        emit("A", x=endless)
        emit("B", x=endless)
        emit("C")
    assert numbers(events) == [1, 4]
    assert failures() == 2
    assert [record.name for record in caplog.records] == ["specwatch.probes"]
    assert [(gap.first, gap.last) for gap in collected(events).ledger.gaps] == [(2, 3)]


def test_a_directory_that_cannot_be_made_is_counted_and_tried_again(
    events: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events.write_text("in the way")
    emit("A")
    events.unlink()
    emit("B")
    assert failures() == 2  # The start, which the first event brings, and could not be told either.
    assert [line["action"] for line in lines(events)] == ["B"]
    assert len(caplog.records) == 1


def test_a_deleted_file_is_made_anew_within_a_second(events: Path) -> None:
    start()
    now = time.time_ns()
    emit("A", at=Moment(now, 0))
    for path in events.iterdir():
        path.unlink()
    events.rmdir()
    emit("B", at=Moment(now, 1_000_000_000))
    assert ([line["action"] for line in lines(events)], failures()) == (["B"], 0)


def test_a_full_disk_costs_its_events_and_no_others(tmp_path: Path) -> None:
    """The part of a line that fitted is a line of its own."""
    code = """
        import resource
        emit("A")
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, unlimited[1]))
        for _ in range(5):
            emit("Lost", filler="x" * 100)
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        emit("B")
        print(failures())
    """
    done = run(code, tmp_path)
    found = collected(tmp_path)
    assert "an event could not be told" in done.stderr
    assert done.stdout.strip() == str(sum(gap.last - gap.first + 1 for gap in found.ledger.gaps))
    assert [event.action for event in found.behaviours[0].events if event.action != "Lost"] == ["A", "B"]
    assert found.ledger.unparsed <= 1


def test_closed_descriptors_are_opened_again(tmp_path: Path) -> None:
    done = run("emit('A'); os.closerange(3, 2000); emit('B'); print(failures())", tmp_path)
    assert (done.stdout, numbers(tmp_path)) == ("0\n", [1, 2, 3, 4])


@pytest.mark.parametrize("limit", [1024, 64])
def test_nothing_is_written_to_a_descriptor_that_is_another_files_now(tmp_path: Path, limit: int) -> None:
    """A program that closes all that it does not know is given the same numbers for its sockets."""
    code = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
        emit("A")
        os.closerange(3, 2000)
        numbers = [os.open({str(tmp_path / "other")!r}, os.O_RDWR | os.O_CREAT) for _ in range(50)]
        emit("B")
    """
    run(code, tmp_path / "events")
    assert (tmp_path / "other").read_bytes() == b""
    assert numbers(tmp_path / "events") == [1, 2, 3, 4]


def test_what_a_signal_handler_throws_is_the_applications(tmp_path: Path) -> None:
    """A soft time limit that strikes in the midst of an event is raised, and leaves no hole in the numbers."""
    code = """
        class SoftTimeLimit(Exception): pass
        def strike(number, frame): raise SoftTimeLimit
        signal.signal(signal.SIGALRM, strike)
        start()
        struck = told = 0
        while struck < 50:
            try:
                # Thrown at any point of the loop, which is nearly all emit.
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + struck % 10 * 0.0001)
                while True:
                    emit("A")
            except SoftTimeLimit:
                struck += 1
        print(struck, failures())
    """
    done = run(code, tmp_path)
    assert (done.stdout, done.stderr) == ("50 0\n", "")
    found = collected(tmp_path)
    assert (found.ledger.gaps, found.ledger.unparsed) == ([], 0)


@pytest.mark.parametrize("written", [False, True])
def test_an_event_that_is_struck_at_its_write_is_told(tmp_path: Path, written: bool) -> None:
    code = f"""
        class SoftTimeLimit(Exception): pass
        def strike(number, frame): raise SoftTimeLimit
        signal.signal(signal.SIGALRM, strike)
        start()
        write = os.write
        def struck(fd, line):
            os.write = write
            if {written}: write(fd, line)
            signal.raise_signal(signal.SIGALRM)
        os.write = struck
        try:
            emit("A")
        except SoftTimeLimit:
            emit("B")
    """
    run(code, tmp_path)
    found = collected(tmp_path)
    assert [event.action for event in found.behaviours[0].events] == ["A", "B"]
    assert (found.ledger.gaps, found.ledger.duplicate) == ([], int(written))


def test_a_handler_may_emit_in_the_midst_of_an_event(tmp_path: Path) -> None:
    code = """
        signal.signal(signal.SIGALRM, lambda *_: emit("Handler"))
        start()
        write = os.write
        def struck(fd, line):
            os.write = write
            signal.raise_signal(signal.SIGALRM)
            return write(fd, line)
        os.write = struck
        emit("A")
    """
    assert run(code, tmp_path).returncode == 0
    assert sorted(numbers(tmp_path)) == [1, 2, 3, 4]


def test_without_anyone_to_tell_nothing_happens(tmp_path: Path) -> None:
    done = run("emit('A'); start(); stop(); print(failures())", tmp_path, SPECWATCH_EVENTS="")
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("0\n", "", [])


def test_events_can_be_sent_elsewhere_later(events: Path, tmp_path: Path) -> None:
    emit("A")
    configure(tmp_path / "elsewhere")
    emit("B")
    assert [line["action"] for line in lines(events)] == ["EmitterStart", "A", "EmitterStop"]
    assert [(line["seq"], line["action"]) for line in lines(tmp_path / "elsewhere")] == [(1, "EmitterStart"), (2, "B")]


def test_the_directory_is_meant_as_it_was_when_named(tmp_path: Path) -> None:
    """A daemon changes to / before it does anything."""
    code = f"os.chdir({str(tmp_path)!r}); configure('events'); start(); os.chdir('/'); emit('A')"
    run(code, tmp_path)
    assert [line["action"] for line in lines(tmp_path / "events")][1] == "A"


def test_importing_the_probes_loads_nothing_heavy(tmp_path: Path) -> None:
    done = run("print(*sys.modules)", tmp_path)
    loaded = set(done.stdout.split())
    assert loaded & {"opentelemetry", "celery", "structlog", "logging", "asyncio", "msgspec", "lark"} == set()
    assert not any(name.startswith("specwatch.checker") for name in loaded)
