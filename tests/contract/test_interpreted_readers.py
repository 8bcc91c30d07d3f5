"""Interpreted readers, measures, crowds and loops give the bits that compiled ones give.

Games are in ``test_interpreted.py`` and ``test_digests.py``, surrogates and policies beside their
unit tests.
"""

LETOR = """
import hashlib, tempfile, warnings
from pathlib import Path
import numpy as np
warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning)
from keyhole.data.letor.reader import iterate_letor, read_letor
from keyhole.data.letor.decimal import nearest

digest, rng = hashlib.sha256(), np.random.default_rng(0)

def written(x):
    forms = (
        f"{x:.6f}", f"{x:.17g}", f"{x * 1e20:.3e}", f"{int(x * 1e6)}", f"{x:.25f}", "0", "-0.0",
        f"+{abs(x):.2f}e-7", str(rng.integers(2**62)), f"{x:.12E}", f"000{abs(x):.3f}", ".5", "7.",
        f"{rng.integers(10**18)}e-{rng.integers(30)}", f"{x:.30e}", "255", "256", "65536.25",
    )
    return forms[rng.integers(len(forms))]

def line(query):
    columns = [c for c in range(1, 12) if rng.random() < 0.8]
    pairs = "  ".join(f"{c}:{written(rng.normal())}" for c in columns)
    comment = rng.choice(["", " # doc 7:1", "#x\\t", "\\t\\r"])
    return f"{rng.choice(['0', '1', '2', '1.5', '2e0'])} qid:{query} {pairs}{comment}"

def told(read):
    for array in (read.features, read.relevance, read.starts):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr((read.query_ids, read.n_dropped, str(read.features.dtype))).encode())

with tempfile.TemporaryDirectory() as folder:
    paths = [Path(folder) / name for name in ("one.txt", "two.txt")]
    for path in paths:
        names = ["7", "007", "-3", "-03", "a", "b", "3000000000", "x1"]
        lines = [line(name) for name in names for _ in range(rng.integers(1, 7))]
        path.write_text("# by hand\\n\\n" + "\\n".join(lines) + "\\n0 qid:z 1:1\\n")
    for dtype in (np.float64, np.float32):
        for normalise in (None, "minmax"):
            for missing in ("drop", "keep"):
                options = dict(dtype=dtype, normalise=normalise, missing_relevant=missing)
                told(read_letor(paths, **options))
            for part in iterate_letor(paths, **options, block_bytes=500):
                told(part)
    wide = Path(folder) / "wide.txt"
    wide.write_text("1 qid:1 1:1.7e308 2:5\\n0 qid:1 1:-1.7e308 2:5\\n0 qid:1 1:0 2:5\\n")
    told(read_letor(wide, normalise="minmax"))
    for bad in ("1 qid:1 2:1 1:1", "x qid:1 1:1", "1 qid:1 1:", "1 qid:1 1:1e39", "1 q:1 1:1\\r2"):
        wide.write_text("1 qid:1 1:1\\n" + bad + "\\n")
        try:
            told(read_letor(wide, dtype=np.float32))
        except ValueError as error:
            digest.update(str(error).partition(", line")[2].encode())
for mantissa in rng.integers(2**62, size=300).tolist():
    digest.update(np.float64(nearest(mantissa, int(rng.integers(-100, 101)))).tobytes())
print(digest.hexdigest())
"""

REST = """
import hashlib, warnings
import numpy as np
warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning)
from keyhole.batch.averaging import average_weights
from keyhole.batch.risk import Risk
from keyhole.checks.non_learners import non_learners
from keyhole.game.play import play
from keyhole.game.comparators import best_fixed
from keyhole.game.log import replay
from keyhole.game.batched import learn_many, rank_many
from keyhole.kernels.checking import all_finite, first_bad_list, first_bad_value, is_ranking
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.rankers.fixed.rtopk import RTopK
from keyhole.rankers.lists.gradient import Descent
from bench.theory.leader import Leader
from bench.theory.phases import Phases
from bench.theory.sabotage import Sabotaged
from keyhole.worlds.flips import Flips
from tests.contract.few_lists import EQUAL, SINGLE
from tests.contract.test_contracts import MEASURE_EXAMPLES, REVEAL_EXAMPLES, WORLD_EXAMPLES

digest, rng = hashlib.sha256(), np.random.default_rng(0)

def told(*arrays):
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())

for measure in MEASURE_EXAMPLES:
    top = 4 if measure.max_grade >= 4 else int(measure.max_grade)
    relevance = rng.integers(0, top + 1, size=(30, 6)).astype(float)
    told(measure.many(relevance, rng.permuted(np.tile(np.arange(6), (30, 1)), axis=1)))
for reveal in [reveal for row in REVEAL_EXAMPLES.values() for reveal in row]:
    for round in range(20):
        shown = reveal(rng.integers(0, 3, 6).astype(float), rng.permutation(6), round=round)
        told(shown.values)
for world in [world for row in WORLD_EXAMPLES.values() for world in row]:
    for round in range(20):
        told(world.relevance(round, seed=3))
        if world.query(round, seed=3).features is not None:
            told(world.query(round, seed=3).features)
crowd = Flips(5, n_relevant=1)
for measure in ("DCG", "AP", "AUC"):
    told(best_fixed(crowd, measure=measure, rounds=30))
for world in (EQUAL, SINGLE):
    told(average_weights(Descent(4, 6), world, rounds=30))
    lists = (world.features, world.params.relevance, world.params.starts)
    told(*Risk("squared", *lists)(np.array([0.1, -0.3, 0.0, 2.0])))
phases = Phases([[0.2, 0.9, 0.5, 0.1, 0.3], [0.9, 0.2, 0.5, 0.3, 0.1]], lengths=[3, 2])
learner = RTopK(5, horizon=120, k=2)
others = non_learners(learner)
for ranker in (Leader(5), Sabotaged(Keystone(5)), *others.values()):
    for round in range(30):
        impression = ranker.rank()
        told(impression.ranking, impression.propensity)
        ranker.update(impression, phases.relevance(round)[impression.ranking])
    told(*ranker.pieces)
learner = Keystone(5, k=2)
trace = play(learner, crowd, rounds=60, record=True)
told(*replay(learner, trace.logs[0]).pieces)
shown = rank_many(learner, 0, 9)
table = np.array([one.ranking for one in shown])
told(
    table,
    learn_many(
        learner, range(9), table, [one.explored for one in shown],
        [one.propensity for one in shown], (table < 2).astype(float),
        np.array([one.note for one in shown]),
    ),
    *learner.pieces,
)
taken = np.empty(5, np.bool_)
numbers = np.array([1.0, np.nan, 3.0])
told(all_finite(numbers), all_finite(numbers[:1]), first_bad_value(numbers, 2.0))
told(is_ranking(np.array([0, 2, 1, 4, 3]), taken), is_ranking(np.array([0, 2, 2, 4, 3]), taken))
told(first_bad_list(np.array([0, 3, 5]), np.array([2, 1, 0, 1, 1]), taken))
print(digest.hexdigest())
"""


def test_interpreted_and_compiled_letor_files_are_the_same(digest_of):
    assert digest_of(LETOR, NUMBA_DISABLE_JIT="1") == digest_of(LETOR)


def test_interpreted_and_compiled_loops_are_the_same(digest_of):
    assert digest_of(REST, NUMBA_DISABLE_JIT="1") == digest_of(REST)
