"""The collector: from whatever programs log to events, and from events to behaviours.

``assemble.collect`` is its face; ``binding.load`` reads what a log means; ``errors.CollectorError`` is all that it raises.
"""
