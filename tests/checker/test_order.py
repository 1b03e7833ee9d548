"""What is known of the order of events: emitters, causes, times within skew; and where something is missing."""

from __future__ import annotations

import itertools
import random

import pytest

from specwatch.checker.behaviour import Behaviour, Event, Loss
from specwatch.checker.order import Cause, Ordered, ordered

SECOND = 1_000_000_000


def event(emitter: str, seconds: float | None = None, action: str = "A", **fields: object) -> Event:
    time = None if seconds is None else round(seconds * SECOND)
    return Event(action=action, emitter=emitter, time=time, **fields)  # type: ignore[arg-type]


def timed(
    *events: Event, skew: float = 1.0, causes: tuple[Cause, ...] = (), losses: list[Loss] | None = None
) -> Ordered:
    behaviour = Behaviour(events=list(events), order="time", skew=round(skew * SECOND), losses=losses or [])
    return ordered(behaviour, causes)


def edges(order: Ordered) -> dict[str, dict[str, int]]:
    """``{"a0": {"b": 2}}``: the first event of ``a`` needs two of ``b``."""
    return {
        f"{name}{index}": {order.names[other]: count for other, count in own}
        for name, needs in zip(order.names, order.needs, strict=True)
        for index, own in enumerate(needs)
        if own
    }


def test_times_beyond_the_skew_are_an_order_and_no_others() -> None:
    assert edges(timed(event("a", 0), event("b", 1.0), event("c", 1.001))) == {"c0": {"a": 1}}


def test_an_interval_comes_before_what_begins_after_its_end() -> None:
    first = event("a", 0, until=5 * SECOND)
    assert edges(timed(first, event("b", 5.5), event("c", 6.5))) == {"c0": {"a": 1}}


def test_times_that_go_round_in_a_circle_with_an_emitters_order_tell_nothing() -> None:
    """By time b comes before the first of a and after the second: neither is more wrong than the other."""
    order = timed(event("a", 10), event("a", 3), event("b", 5))
    assert edges(order) == {}
    assert order.dropped > 0


def test_a_cause_wins_over_times_and_shows_that_two_clocks_are_wrong() -> None:
    order = timed(event("a", 10, seq=1), event("b", 1, after=[("a", 1)]))
    assert (edges(order), order.dropped, order.suspects) == ({"b0": {"a": 1}}, 1, frozenset({"a", "b"}))


def test_what_the_named_record_was_is_not_there_all_up_to_it_comes_first() -> None:
    """The predecessor may be another key's event, or lost."""
    order = timed(event("a", 0, seq=1), event("a", 0, seq=2), event("a", 0, seq=5), event("b", 0, after=[("a", 4)]))
    assert edges(order) == {"b0": {"a": 2}}


def test_a_number_that_two_lives_of_an_emitter_bear_names_no_record() -> None:
    lives = [event("a", 0, seq=1, boot="x"), event("a", 0, seq=2, boot="x"), event("a", 0, seq=1, boot="y")]
    assert edges(timed(*lives, event("b", 0, after=[("a", 1)]))) == {}


def test_vector_clocks_are_causes() -> None:
    order = timed(event("a", 0, clock={"a": 1}), event("a", 0, clock={"a": 2}), event("b", 0, clock={"a": 1, "b": 1}))
    assert edges(order) == {"b0": {"a": 1}}


def test_a_span_begins_before_its_children() -> None:
    order = timed(
        event("a", 0, extra={"trace_id": "t", "span_id": "1"}),
        event("a", 0, extra={"trace_id": "t", "span_id": "1"}),
        event("b", 0, extra={"trace_id": "t", "span_id": "2", "parent_span_id": "1"}),
        event("c", 0, extra={"trace_id": "another", "span_id": "3", "parent_span_id": "1"}),
    )
    assert edges(order) == {"b0": {"a": 1}}


PICKUP = Cause(first="Pickup", then=("Start",), on=("t",))


def picked(emitter: str, action: str, task: str) -> Event:
    return event(emitter, 0, action, params={"t": task})


def test_what_the_binding_says_comes_first_does() -> None:
    order = timed(picked("m", "Pickup", "1"), picked("m", "Pickup", "2"), picked("c", "Start", "2"), causes=(PICKUP,))
    assert edges(order) == {"c0": {"m": 2}}


def test_which_of_two_emitters_was_first_is_not_known() -> None:
    order = timed(picked("m", "Pickup", "1"), picked("n", "Pickup", "1"), picked("c", "Start", "1"), causes=(PICKUP,))
    assert edges(order) == {}


def test_the_first_of_all_may_be_what_is_missing() -> None:
    loss = Loss(reason="gap", detail="", emitter="m", count=1, after=-1, before=0)
    order = timed(picked("m", "Pickup", "1"), picked("c", "Start", "1"), causes=(PICKUP,), losses=[loss])
    assert edges(order) == {}


def test_causes_in_a_circle_leave_no_event_unreachable() -> None:
    order = timed(event("a", 0, seq=1, after=[("b", 1)]), event("b", 0, seq=1, after=[("a", 1)]))
    assert linearisations(order)


def linearisations(order: Ordered) -> set[tuple[int, ...]]:
    """All orders that the needs allow, by walking them."""
    found: set[tuple[int, ...]] = set()

    def walk(cut: tuple[int, ...], way: tuple[int, ...]) -> None:
        if len(way) == sum(map(len, order.lanes)):
            found.add(way)
        for lane in range(len(order.lanes)):
            if order.is_ready(cut, lane):
                walk((*cut[:lane], cut[lane] + 1, *cut[lane + 1 :]), (*way, order.places[lane][cut[lane]]))

    walk((0,) * len(order.lanes), ())
    return found


@pytest.mark.parametrize("seed", range(40))
def test_all_orders_of_small_behaviours_are_those_that_the_rules_allow(seed: int) -> None:
    """Emitter order; else an end more than the skew before a begin, unless the emitters' order says otherwise."""
    draw = random.Random(seed)
    events = []
    for emitter in "abc":
        for _ in range(draw.randrange(1, 3)):
            begin = draw.randrange(0, 5)
            until = (begin + draw.randrange(0, 3)) * SECOND if draw.random() < 0.3 else None
            events.append(event(emitter, begin, until=until))
    expected = set()
    for way in itertools.permutations(range(len(events))):
        place = {number: index for index, number in enumerate(way)}
        fine = True
        for one, other in itertools.combinations(range(len(events)), 2):
            if events[one].emitter == events[other].emitter and place[one] > place[other]:
                fine = False
        if fine and all(
            place[one] < place[other]
            for one, other in itertools.permutations(range(len(events)), 2)
            if events[one].emitter != events[other].emitter
            and (events[one].until or events[one].time or 0) + SECOND < (events[other].time or 0)
        ):
            expected.add(way)
    # An emitter's clock that goes back is wrong, also where that closes no circle.
    backward = {
        other.emitter or ""
        for place, one in enumerate(events)
        for other in events[place:]
        if one.emitter == other.emitter and (other.until or other.time or 0) + SECOND < (one.time or 0)
    }
    order = timed(*events)
    if expected:
        # Where every rule can hold at once, exactly the orders in which it does; else some edge had to go.
        assert (linearisations(order), set(order.suspects)) == (expected, backward)
        assert bool(order.dropped) == bool(backward)
    else:
        assert order.dropped > 0
        assert linearisations(order)


def test_windows_lie_between_the_neighbours_in_the_emitter_and_what_times_tell_of_the_others() -> None:
    events = [event("a", 0), event("b", 0.5), event("b", 3), event("a", 4), event("b", 9)]
    loss = Loss(reason="gap", detail="", emitter="a", count=1, after=0, before=3, begin=2 * SECOND, end=4 * SECOND)
    [window] = timed(*events, losses=[loss]).windows
    assert (window.low, window.high) == ((1, 1), (1, 2))


def test_in_total_order_a_window_lies_between_two_places() -> None:
    loss = Loss(reason="gap", detail="", emitter="a", count=1, after=0, before=2)
    [window] = ordered(Behaviour(events=[event("a"), event("b"), event("a")], losses=[loss])).windows
    assert [window.is_open((cut,)) for cut in range(4)] == [False, True, True, False]


def test_lanes_do_not_depend_on_the_order_of_arrival() -> None:
    one = [event("a", 0), event("b", 0), event("a", 1)]
    first, second = timed(*one), timed(one[1], one[0], one[2])
    assert (first.names, first.lanes, first.needs) == (second.names, second.lanes, second.needs)
