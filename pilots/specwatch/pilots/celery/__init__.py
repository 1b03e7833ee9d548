"""The Celery pilot: a task that stores a row, made to run twice by a visibility timeout that expires under it.

``plan.plan`` says what is run, ``experiment.Experiment`` runs it, ``app`` is the application, ``guards`` are its modes.
"""
