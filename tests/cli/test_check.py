"""``check`` from end to end: each verdict with its exit code, what TARGET and LOG may be, and what each option does."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from click.testing import Result

if TYPE_CHECKING:
    from tests.cli.conftest import Queue

Run = Callable[..., Result]
RunProcess = Callable[..., subprocess.CompletedProcess[str]]

GOOD = ("Publish:a", "Execute:a", "Ack:a")
TWICE = ("Publish:a", "Execute:a", "Execute:a")
IMPOSSIBLE = ("Publish:a", "Ack:a", "Ack:a")


def verdict(result: Result) -> dict[str, Any]:
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["schema"] == "specwatch.verdict/1", document
    assert document["exit_code"] == result.exit_code
    return document


@pytest.mark.parametrize(
    ("steps", "word", "exit_code"),
    [
        (GOOD, "conforms", 0),
        (TWICE, "violates", 1),
        (IMPOSSIBLE, "diverges", 1),
        ((), "vacuous", 3),
    ],
)
def test_each_verdict_has_its_exit_code(
    run: Run, run_process: RunProcess, queue: Queue, steps: tuple[str, ...], word: str, exit_code: int
) -> None:
    done = run_process("check", queue.spec, queue.log(*steps))
    assert (done.returncode, done.stderr) == (exit_code, "")
    assert word in done.stdout
    found = verdict(run("check", queue.spec, queue.log(*steps), "--json"))
    assert (found["verdict"], found["exit_code"]) == (word, exit_code)


def test_a_gap_in_an_emitters_numbers_is_inconclusive(run: Run, queue: Queue) -> None:
    first = queue.events("Publish:a", emitter="w", seq=1)
    log = queue.write("gap.jsonl", first + queue.events("Execute:a", emitter="w", seq=4))
    found = verdict(run("check", queue.spec, log, "--json"))
    assert (found["verdict"], found["exit_code"]) == ("inconclusive", 3)
    assert found["undecided_by_reason"] == {"gap": 1}
    assert found["ledger"]["gaps"] == [{"emitter": "w", "from": 2, "to": 3}]


def test_a_violation_names_the_event_the_invariant_and_the_values(run: Run, queue: Queue) -> None:
    found = verdict(run("check", queue.spec, queue.log(*TWICE), "--json"))
    (finding,) = found["findings"]
    assert (finding["verdict"], finding["at"], finding["invariant"]) == ("violates", 3, "NoDouble")
    assert finding["event"]["action"] == "Execute"
    assert finding["event"]["source"] == {"file": str(queue.folder / "log.jsonl"), "line": 3}
    conjuncts = finding["explanation"]["conjuncts"]
    assert "FALSE" in [conjunct["value"] for conjunct in conjuncts]
    assert {conjunct["file"] for conjunct in conjuncts} == {queue.spec}
    shown = run("check", queue.spec, queue.log(*TWICE)).stdout
    assert "✗ violates  NoDouble" in shown
    assert "▶ 3" in shown
    assert "Queue.tla:22   runs[t] <= 1   is FALSE" in shown
    assert 'runs["a"] = 2' in shown


def test_a_divergence_marks_the_false_conjunct_and_tells_what_was_enabled(run: Run, queue: Queue) -> None:
    found = verdict(run("check", queue.spec, queue.log(*IMPOSSIBLE), "--json"))
    (finding,) = found["findings"]
    assert (finding["verdict"], finding["at"], finding["action"]) == ("diverges", 3, "Ack")
    why = finding["explanation"]
    assert "FALSE" in [conjunct["value"] for conjunct in why["conjuncts"]]
    assert any("Publish" in text for text in why["enabled_instead"])


# --- TARGET


def test_a_binding_names_its_spec_and_config_relative_to_itself(run: Run, queue: Queue, tmp_path: Path) -> None:
    queue.write("Other.cfg", queue.config_text.replace("INVARIANT NoDouble", ""))
    binding = queue.write("binding.toml", 'spec = "Queue.tla"\nconfig = "Other.cfg"\n')
    found = verdict(run("check", binding, queue.log(*TWICE), "--json"))
    assert found["verdict"] == "conforms"
    assert found["spec"]["config"].endswith("Other.cfg")
    found = verdict(run("check", binding, queue.log(*TWICE), "--json", "--config", queue.config))
    assert found["verdict"] == "violates"


def test_a_binding_beside_a_spec_maps_its_records(run: Run, queue: Queue) -> None:
    rules = '[[rule]]\nmatch = { event = "ran" }\naction = "Execute"\nparams = { t = "$id" }\n'
    rules += '[[rule]]\nmatch = { event = "sent" }\naction = "Publish"\nparams = { t = "$id" }\n'
    binding = queue.write("map.toml", rules)
    log = queue.write("app.log", '{"event": "sent", "id": "a"}\n{"event": "ran", "id": "a"}\n{"event": "noise"}\n')
    found = verdict(run("check", queue.spec, log, "--binding", binding, "--json"))
    assert found["verdict"] == "conforms"
    assert (found["ledger"]["mapped"], found["ledger"]["unmatched"]) == (2, 1)


def test_without_a_config_the_one_named_after_the_module_is_taken(run: Run, queue: Queue) -> None:
    found = verdict(run("check", queue.spec, queue.log(*GOOD), "--json"))
    assert found["spec"]["config"] == queue.config


def test_without_any_config_init_and_next_are_meant(run: Run, queue: Queue) -> None:
    Path(queue.config).unlink()
    found = verdict(run("check", queue.spec, queue.log(*TWICE), "--constant", 'Tasks={"a"}', "--json"))
    assert (found["verdict"], found["spec"]["config"]) == ("conforms", None)


def test_an_unknown_name_gives_the_nearest_names(run: Run, queue: Queue) -> None:
    found = run("check", "celry", queue.log(*GOOD))
    assert found.exit_code == 4
    assert "did you mean celery?" in found.stderr


def test_a_log_in_the_place_of_the_target_is_told(run: Run, queue: Queue) -> None:
    log = queue.log(*GOOD)
    found = run("check", log, queue.spec)
    assert found.exit_code == 4
    assert "TARGET comes before the logs" in found.stderr


# --- LOG


def test_logs_are_read_from_stdin(run_process: RunProcess, queue: Queue) -> None:
    done = run_process("check", queue.spec, "-", "--json", input=queue.events(*TWICE))
    assert (done.returncode, json.loads(done.stdout)["verdict"], done.stderr) == (1, "violates", "")


def test_a_directory_a_glob_and_gz_are_read(run: Run, queue: Queue) -> None:
    logs = queue.folder / "logs"
    logs.mkdir()
    (logs / "a.jsonl.gz").write_bytes(gzip.compress(queue.events(*TWICE).encode()))
    for log in (str(logs), str(logs / "*.gz")):
        assert verdict(run("check", queue.spec, log, "--json"))["verdict"] == "violates"


def test_a_run_directory_is_judged_again_with_its_own_spec(run: Run, queue: Queue) -> None:
    folder = queue.folder / "run"
    folder.mkdir()
    (folder / "events.jsonl").write_text(queue.events(*TWICE))
    (folder / "spec.tla").write_text(queue.module.replace("Queue", "spec"))
    (folder / "spec.cfg").write_text(queue.config_text)
    rules = 'spec = "spec.tla"\nconfig = "spec.cfg"\n[[rule]]\nmatch = { event = "x" }\naction = "Execute"\n'
    (folder / "binding.toml").write_text(rules)
    (folder / "verdict.json").write_text("{}")
    found = verdict(run("check", "celery", str(folder), "--json"))
    assert (found["verdict"], found["findings"][0]["invariant"]) == ("violates", "NoDouble")
    assert found["spec"]["path"] == str(folder / "spec.tla")
    assert any("spec.tla" in assumption for assumption in found["assumptions"])


def test_a_run_directory_is_judged_against_another_spec_where_one_is_named(run: Run, queue: Queue) -> None:
    folder = queue.folder / "run"
    folder.mkdir()
    (folder / "events.jsonl").write_text(queue.events(*TWICE))
    for name in ("spec.tla", "spec.cfg"):
        (folder / name).write_text("not looked at")
    (folder / "binding.toml").write_text("")
    found = verdict(run("check", queue.spec, str(folder), "--json"))
    assert (found["verdict"], found["spec"]["path"]) == ("violates", queue.spec)


# --- options


def test_hidden_actions_are_inserted_and_strict_allows_none(run: Run, queue: Queue) -> None:
    log = queue.log("Execute:a")
    assert verdict(run("check", queue.spec, log, "--json"))["verdict"] == "diverges"
    found = verdict(run("check", queue.spec, log, "--hidden", "Publish,Ack", "--json"))
    assert (found["verdict"], found["hidden_steps"]) == ("conforms", 1)
    assert verdict(run("check", queue.spec, log, "--hidden", "Publish", "--strict", "--json"))["verdict"] == "diverges"


def test_hidden_max_bounds_the_hidden_steps_between_two_events(run: Run, queue: Queue) -> None:
    log = queue.log("Publish:a", "Publish:a", "Ack:a", "Publish:b", "Ack:b", "Ack:b")
    binding = queue.write("b.toml", 'spec = "Queue.tla"\nhidden = ["Publish", "Ack"]\n')
    assert verdict(run("check", binding, log, "--json"))["verdict"] == "conforms"
    assert verdict(run("check", binding, log, "--hidden-max", "0", "--json"))["verdict"] == "diverges"
    assert verdict(run("check", binding, log, "--hidden", "", "--json"))["verdict"] == "diverges"


def test_a_constant_is_given_in_tla_and_overrides_the_config(run: Run, queue: Queue) -> None:
    log = queue.log("Publish:c")
    assert verdict(run("check", queue.spec, log, "--json"))["verdict"] == "diverges"
    assert verdict(run("check", queue.spec, log, "--constant", 'Tasks={"c"}', "--json"))["verdict"] == "conforms"


def test_a_requirement_that_is_not_met_is_vacuous_and_named(run: Run, queue: Queue) -> None:
    log = queue.log("Publish:a")
    found = run("check", queue.spec, log, "--require", "Publish,Ack")
    assert found.exit_code == 3
    assert "Ack" in found.stdout.splitlines()[-1]
    assert verdict(run("check", queue.spec, log, "--require", "Publish", "--json"))["verdict"] == "conforms"


def test_order_emitter_puts_nothing_between_emitters(run: Run, queue: Queue) -> None:
    first = queue.events("Execute:a", emitter="w2", seq=1)
    log = queue.write("two.jsonl", first + queue.events("Publish:a", emitter="w1", seq=1))
    assert verdict(run("check", queue.spec, log, "--json", "--order", "total"))["verdict"] == "diverges"
    assert verdict(run("check", queue.spec, log, "--json", "--order", "emitter"))["verdict"] == "conforms"


def test_scope_key_is_refused_where_the_spec_does_not_fall_apart_and_says_why(run: Run, queue: Queue) -> None:
    found = run("check", queue.spec, queue.log(*GOOD), "--scope", "key")
    assert (found.exit_code, found.stdout) == (4, "")
    assert "Queue.tla:9:8: scope key: this couples two keys" in found.stderr
    assert "explain-plan" in found.stderr


def test_a_log_may_begin_midway(run: Run, queue: Queue) -> None:
    log = queue.log("Execute:a", "Ack:a")
    assert verdict(run("check", queue.spec, log, "--json"))["verdict"] == "diverges"
    found = verdict(run("check", queue.spec, log, "--json", "--start", "midway"))
    assert (found["verdict"], found["undecided_by_reason"]) == ("inconclusive", {"open-at-start": 1})
    binding = queue.write("b.toml", 'spec = "Queue.tla"\nstart = "midway"\n')
    assert verdict(run("check", binding, log, "--json"))["verdict"] == "inconclusive"
    assert verdict(run("check", binding, log, "--json", "--start", "init"))["verdict"] == "diverges"
    assert verdict(run("check", binding, queue.log(*GOOD), "--json"))["verdict"] == "conforms"


def test_a_log_without_an_observation_cannot_say_in_which_state_it_begins(run: Run, queue: Queue) -> None:
    found = verdict(run("check", queue.spec, queue.log(*GOOD), "--json", "--start", "state"))
    assert (found["verdict"], found["reason"]) == ("inconclusive", "open-at-start: no event observed a state")


@pytest.mark.parametrize(("guard", "word"), [("t = $t", "conforms"), ("t # $t", "diverges")])
def test_a_guard_over_the_next_event_narrows_a_hidden_action(run: Run, queue: Queue, guard: str, word: str) -> None:
    binding = queue.write("b.toml", f"spec = \"Queue.tla\"\nhidden.Publish.when = '{guard}'\n")
    found = verdict(run("check", binding, queue.log(*GOOD[1:]), "--json"))
    assert found["verdict"] == word
    assert any(guard in line for line in found["assumptions"])


def test_an_unknown_action_in_an_option_is_refused_with_the_nearest_name(run: Run, queue: Queue) -> None:
    for option in ("--hidden", "--require"):
        found = run("check", queue.spec, queue.log(*GOOD), option, "Publsh")
        assert found.exit_code == 4, option
        assert "Publish" in found.stderr, option


def test_a_setting_that_the_binding_lacks_is_refused(run: Run, queue: Queue) -> None:
    binding = queue.write("b.toml", 'spec = "Queue.tla"\n[settings]\nvisibility_timeout = "3600s"\n')
    assert run("check", binding, queue.log(*GOOD), "--set", "visibility_timeout=7200").exit_code == 0
    found = run("check", binding, queue.log(*GOOD), "--set", "visibility_timeot=7200")
    assert found.exit_code == 4
    assert "visibility_timeout" in found.stderr


def test_a_bound_that_is_reached_is_inconclusive(run: Run, queue: Queue) -> None:
    log = queue.log(*GOOD)
    found = verdict(run("check", queue.spec, log, "--hidden", "Publish,Execute", "--max-states", "1", "--json"))
    assert (found["verdict"], found["exit_code"]) == ("inconclusive", 3)
    assert "--max-states" in json.dumps(found)


def test_max_findings_leaves_the_counts_complete(run: Run, queue: Queue) -> None:
    log = queue.write("runs.jsonl", "".join(queue.events(*TWICE, run=f"r{number}") for number in range(3)))
    found = verdict(run("check", queue.spec, log, "--max-findings", "1", "--json"))
    assert len(found["findings"]) == 1
    assert found["behaviours"]["violates"] == 3


def test_allow_inconclusive_accepts_a_small_undecided_share(run: Run, queue: Queue) -> None:
    good = "".join(queue.events(*GOOD, run=f"r{number}", emitter="w") for number in range(9))
    text = (
        good
        + queue.events("Publish:a", run="gap", emitter="v", seq=1)
        + queue.events("Execute:a", run="gap", emitter="v", seq=2)
        + queue.events("Ack:a", run="gap", emitter="v", seq=4)  # a second Execute may be missing
    )
    log = queue.write("runs.jsonl", text)
    found = verdict(run("check", queue.spec, log, "--json"))
    assert (found["verdict"], found["exit_code"], found["behaviours"]["inconclusive"]) == ("inconclusive", 3, 1)
    found = verdict(run("check", queue.spec, log, "--json", "--allow-inconclusive", "10%"))
    assert (found["verdict"], found["exit_code"]) == ("inconclusive", 0)
    assert verdict(run("check", queue.spec, log, "--json", "--allow-inconclusive", "9%"))["exit_code"] == 3


# --- output


def test_junit_is_written_beside_the_result(run: Run, queue: Queue) -> None:
    report = queue.folder / "junit.xml"
    found = run("check", queue.spec, queue.log(*TWICE), "--junit", str(report))
    assert found.exit_code == 1
    cases = {case.attrib["name"]: [child.tag for child in case] for case in ElementTree.parse(report).iter("testcase")}
    assert cases == {"invariant NoDouble": ["failure"], "action conformance": []}


def test_a_junit_file_that_cannot_be_written_is_exit_code_4(run: Run, queue: Queue) -> None:
    report = str(queue.folder / "no" / "such" / "junit.xml")
    found = run("check", queue.spec, queue.log(*GOOD), "--junit", report)
    assert found.exit_code == 4
    assert report in found.stderr


def test_quiet_prints_the_counts_only(run: Run, queue: Queue) -> None:
    found = run("check", queue.spec, queue.log(*TWICE), "--quiet")
    assert (found.exit_code, found.stdout) == (1, "violates 1\n")


def test_nothing_is_coloured_in_a_pipe(run_process: RunProcess, queue: Queue) -> None:
    assert "\x1b" not in run_process("check", queue.spec, queue.log(*TWICE)).stdout


def test_a_locale_without_the_marks_is_no_error(run_process: RunProcess, queue: Queue) -> None:
    done = run_process("check", queue.spec, queue.log(*TWICE), env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert "violates  NoDouble" in done.stdout
    done = run_process("check", queue.spec, queue.log("Publish:é漢"), "--json", env={"PYTHONIOENCODING": "ascii"})
    assert json.loads(done.stdout)["findings"][0]["event"]["params"] == {"t": "é漢"}


def test_the_same_run_gives_the_same_json(run: Run, queue: Queue) -> None:
    first, second = (run("check", queue.spec, queue.log(*TWICE), "--json").stdout for _ in range(2))
    assert first == second
