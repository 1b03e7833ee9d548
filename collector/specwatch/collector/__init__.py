"""The collector: from whatever programs log to events, and from events to behaviours.

``assemble.collect`` is its face, ``binding.load_binding`` reads what a log means, and ``errors.CollectorError`` is all
that either raises.
"""
