"""Where bytes come from. ``tail``: files, directories, globs and stdin."""
