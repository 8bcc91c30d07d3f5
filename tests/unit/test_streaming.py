"""Learning in chunks: the same bits as one call, every query once a pass, bounded memory."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.checks.base import same
from keyhole.checks.rankers import play_by_hand
from keyhole.data.letor.reader import iterate_letor, letor_columns, read_letor
from keyhole.game.log import replay
from keyhole.game.play import play
from keyhole.game.stream import LetorStream
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.reveals.top import Top
from keyhole.worlds.queries import Queries

BLOCK = 4_000


def _write(path, n_queries, *, longest=9, n_features=4, seed=0):
    numbers = np.random.default_rng(seed)
    lines = []
    for query in range(n_queries):
        # The longest list and the largest grade come last.
        n_items = longest if query == n_queries - 1 else int(numbers.integers(1, longest))
        for _ in range(n_items):
            x = numbers.random(n_features)
            grade = 3 if query == n_queries - 1 else int(x[0] > 0.6)
            values = " ".join(f"{i + 1}:{v:.3f}" for i, v in enumerate(x))
            lines.append(f"{grade} qid:{query} {values}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return _write(tmp_path_factory.mktemp("letor") / "train.txt", 120)


def _ranker(facts):
    return ContextualRTopK(
        facts.n_features, facts.n_items, surrogate="kl", row_norm=facts.largest_norm, seed=7
    )


def _queries(part):
    world, first, end = part
    assert isinstance(world, Queries)
    assert end > first
    return world


def _world(path):
    queries = read_letor(path, normalise="minmax")
    return Queries(queries.features, queries.relevance, queries.starts)


def _same(one, other):
    assert np.array_equal(one.rounds, other.rounds)
    assert np.array_equal(one.scores, other.scores)
    assert np.array_equal(one.greedy, other.greedy)
    assert _same_state(one.states[0], other.states[0])


def _same_state(one, other):
    return same(one, other)


@pytest.mark.interpreted
def test_a_call_that_goes_on_ends_where_one_call_does(path):
    world = _world(path)
    ranker = _ranker(world)
    whole = play(ranker, world, rounds=500, seed=7)
    first = play(ranker, world, rounds=123, seed=7)
    state = {name: array.copy() for name, array in first.states[0].items()}
    rest = play(ranker, world, rounds=377, seed=7, start=first)
    assert _same_state(state, first.states[0])
    assert first.rounds[-1] == 123
    assert rest.rounds[-1] == 500
    assert rest.average_score.mean == whole.average_score.mean
    assert rest.average_greedy_score.mean == whole.average_greedy_score.mean
    assert _same_state(rest.states[0], whole.states[0])
    with pytest.raises(InvalidInput, match="`rounds` must be an integer between 1 and"):
        play(ranker, world, rounds=0, start=first)
    for changed, sentence in (
        (ranker.fresh(mix=0.3), "state must be of a contextual-rtopk with mix=0.3"),
        (Descent(world.n_features, world.n_items), "state of Descent must hold|with .*=None"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            play(changed, world, rounds=5, seed=7, start=first)
    with pytest.raises(InvalidInput, match="`start` must have the 2 runs to go on with, got 1"):
        play(ranker, world, rounds=5, seed=7, start=first, runs=2)


@pytest.mark.parametrize("rounds", [50, 700])
def test_one_chunk_gives_the_bits_of_one_call(path, rounds):
    stream = LetorStream(path, normalise="minmax")
    world = _world(path)
    for name in ("n_queries", "n_items", "n_features", "max_grade", "largest_norm"):
        assert getattr(stream, name) == getattr(world, name)
    streamed = play(_ranker(stream), stream, rounds=rounds, seed=7)
    _same(streamed, play(_ranker(world), world, rounds=rounds, seed=7))


def test_many_chunks_show_every_query_once_a_pass(path):
    stream = LetorStream(path, normalise="minmax", block_bytes=BLOCK)
    world = _world(path)
    for name in ("n_queries", "n_items", "n_features", "max_grade", "largest_norm"):
        assert getattr(stream, name) == getattr(world, name)
    parts, passes, t = stream.parts(0, 2 * stream.n_queries), [], 0
    for _ in range(2):
        seen: list[bytes] = []
        sizes: list[int] = []
        while len(seen) < stream.n_queries:
            part = _queries(next(parts))
            rounds = range(t, t + part.n_queries)
            seen += [np.asarray(part.query(round).features).tobytes() for round in rounds]
            sizes.append(part.n_queries)
            t += part.n_queries
        assert len(sizes) > 5
        passes.append(seen)
    features = np.split(world.features, world.params.starts[1:-1])
    assert sorted(passes[0]) == sorted(passes[1]) == sorted(x.tobytes() for x in features)
    assert passes[0] != passes[1]
    assert set(passes[0][: sizes[0]]) == {x.tobytes() for x in features[: sizes[0]]}


def test_many_chunks_learn_what_the_rounds_learn_one_by_one(path):
    stream = LetorStream(path, normalise="minmax", block_bytes=BLOCK)
    rounds = int(2.5 * stream.n_queries)
    reported: list[int] = []
    ranker = _ranker(stream)
    learnt = play(ranker, stream, rounds=rounds, seed=7, progress=reported.append)
    assert sum(reported) == rounds
    assert learnt.rounds[-1] == rounds
    one_call = play(_ranker(stream), _world(path), rounds=rounds, seed=7)
    assert np.array_equal(learnt.rounds, one_call.rounds)
    by_hand, t = ranker.fresh(), 0
    for part, first, end in stream.parts(0, rounds):
        assert first == t
        for _ in range(first, end):
            impression = by_hand.rank(part.query(t, seed=7), round=t)
            relevance = part.relevance(t, seed=7)
            by_hand.update(impression, Top(1)(relevance, impression.ranking, round=t, seed=7))
            t += 1
    assert t == rounds
    assert _same_state(by_hand.state_dict(), learnt.states[0])


def test_the_columns_are_those_of_all_files(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 0:2 3:1\n")
    (tmp_path / "b.txt").write_text("1 qid:1 5:2\n")
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    assert letor_columns(files, block_bytes=3) == (0, 6)
    assert letor_columns(files[1]) == (1, 5)
    parts = iterate_letor(files, first_index=0, n_features=6)
    assert np.array_equal(
        np.concatenate([part.features for part in parts]), read_letor(files).features
    )


def test_group_files_are_streamed_too(tmp_path):
    (tmp_path / "rank.train").write_text("1 1:0.7\n0 2:0.1\n2 1:0.4 2:0.2\n0 1:1\n" * 9)
    (tmp_path / "rank.query").write_text("2\n1\n1\n" * 9)
    stream = LetorStream(tmp_path / "rank.train", groups=tmp_path / "rank.query", block_bytes=40)
    assert (stream.n_queries, stream.n_documents, stream.n_dropped) == (18, 27, 9)
    assert (stream.n_items, stream.n_features, stream.max_grade) == (2, 2, 2.0)
    parts = stream.parts(0, 99)
    assert _queries(next(parts)).params.first_round == 0
    assert _queries(next(parts)).params.first_round > 0


def _peak(path, rounds):
    gc.collect()  # what other tests have left to be collected is not of this game
    tracemalloc.start()
    stream = LetorStream(path, normalise="minmax", block_bytes=16 * BLOCK)
    play(_ranker(stream), stream, rounds=rounds, seed=7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_no_game_leaves_work_to_the_garbage_collector(path):
    def learn():
        stream = LetorStream(path, normalise="minmax")
        play(_ranker(stream), stream, rounds=10, seed=7)

    learn()
    gc.collect()
    gc.disable()
    try:
        learn()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_memory_is_that_of_a_few_chunks(path, tmp_path):
    _peak(path, rounds=240)  # what is compiled or imported once is not of a file's size
    sizes = {n: _write(tmp_path / f"{n}.txt", n, n_features=40) for n in (700, 5600)}
    small, large = (_peak(file, 2 * n) for n, file in sizes.items())
    tracemalloc.start()
    read_letor(sizes[5600])
    whole = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    chunks = [file.stat().st_size // (16 * BLOCK) for file in sizes.values()]
    assert chunks[0] > 10
    # Beyond the chunks, only the identities of a file's queries are kept, in a set that has a
    # quarter of its memory more while it grows.
    identities = {str(query) for query in range(5600)}
    kept = 1.25 * sys.getsizeof(identities) + sum(map(sys.getsizeof, identities))
    peaks = f"{small:,} B for {chunks[0]} chunks, {large:,} B for {chunks[1]}, {whole:,} B whole"
    # A chunk more may be alive at the moment of the peak, and one may be longer than another.
    assert large < small + kept + 2 * 16 * BLOCK, peaks
    assert whole > 4 * large, peaks


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must have at least one document"),
        ("1 qid:1\n", "must have at least one feature"),
        ("0 qid:1 1:2\n", "at least one query with a relevant document"),
        ("1 qid:1 1:x\n", "line 1"),
    ],
)
def test_bad_files_are_one_sentence(text, sentence, tmp_path):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        LetorStream(tmp_path / "bad.txt")


def test_files_that_grow_are_refused(tmp_path):
    path = _write(tmp_path / "train.txt", 20)
    stream = LetorStream(path, block_bytes=BLOCK)
    _write(path, 20, longest=12)
    with pytest.raises(InvalidInput, match="`n_items` of a larger set must be at least 1"):
        play(_ranker(stream), stream, rounds=100, seed=7)


def test_parts_pass_the_loop_of_the_rounds(path):
    stream = LetorStream(path, normalise="minmax", block_bytes=BLOCK)
    part = _queries(next(stream.parts(0, 5)))
    ranker = _ranker(stream)
    log = play_by_hand(ranker.fresh(), part, Top(1), 5)
    assert len(log) == 5
    assert part.n_items == stream.n_items >= max(i.query.n_items for i, _ in log)


def test_a_stream_can_be_left_and_taken_up_again(path):
    stream = LetorStream(path, normalise="minmax", block_bytes=BLOCK)
    ranker, rounds = _ranker(stream), int(1.5 * stream.n_queries)
    whole = play(ranker, stream, rounds=rounds, seed=7, runs=2, record=True)
    first = play(ranker, stream, rounds=rounds // 3, seed=7, runs=2, record=True)
    both = play(
        ranker, stream, rounds=rounds - rounds // 3, seed=7, runs=2, record=True, start=first
    )
    for run in range(2):
        assert _same_state(both.states[run], whole.states[run])
        assert _same_state(both.logs[run]._asdict(), whole.logs[run]._asdict())
        assert _same_state(replay(ranker, both.logs[run]).state_dict(), whole.states[run])
    assert np.array_equal(both.scores[:, -1], whole.scores[:, -1])
    t = rounds // 2
    part, *_ = next(stream.parts(t, t + 1))
    assert np.array_equal(stream.relevance(t, seed=7), part.relevance(t, seed=7))
    assert stream.query(t).features.tolist() == part.query(t).features.tolist()  # type: ignore[union-attr]
