"""Taps: what a broker's own traffic tells of an application that was not changed, and that knows nothing of it.

A tap listens at the broker and writes native events, one emitter that numbers them, in the order of the broker. It sees
what is said to the broker and what the broker does: messages that come, go out, come back and are settled. It does not
see what a worker does in between: whether a body began, had its effect, or failed. What a tap cannot see is hidden, and
nothing is concluded from it: for each receipt the tap says that an effect *may* have followed (a record that begins and
never ends: *in flight*), and the verdict is what holds with and without each of them. A message that was received twice
by an application without a guard is then ``inconclusive``, and never ``conforms``; one that was received once conforms.
So the verdicts from a tap and from probes on the same run do not contradict each other, and probes decide more.

``redis``: ``MONITOR``, or keyspace notifications, for Celery on Redis and Valkey.
"""
