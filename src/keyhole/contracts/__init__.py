"""What a ranker, a measure, a reveal and a world must be: the whole API, a file for each.

Each is a small Python object that validates its arguments once and holds two
things: ``kernel``, compiled functions over explicit arrays, and ``params``, the
NamedTuple those functions read. The per-round methods below and the compiled
loop of :mod:`keyhole.game.play` call the same kernels, so they give the same bits.

Relevance is by item, feedback values by position; hidden values are NaN.
"""
