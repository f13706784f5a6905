"""The owner's data: import it, read it through the sandbox, evaluate a study's features once.

Nothing here sends anything. The time an evaluation takes depends on the data and is not hidden here; whoever decides
when packets leave must draw those times without looking at it.
"""
