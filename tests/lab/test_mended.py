"""What a command refuses it accepts when that one thing is mended: the refusal was about it."""

import shlex

import pytest

from tests.lab.effects_files import write_texts
from tests.lab.running import run, said

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_texts(folder)
    return folder


@pytest.fixture(autouse=True)
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)


PLAY = "play --rounds 9 --ranker random --json"
PEOPLE = f"{PLAY} --world people.csv"
COMPARE = "compare --rankers random --rounds 9 --runs 2 --json"
LEARN = "learn train.txt --ranker random-lists --rounds 9 --json"


@pytest.mark.parametrize(
    ("wrong", "sentence", "mended"),
    [
        # people by items
        (f"{PLAY} --world gaps.csv", "a rating is missing; --missing drop leaves such",
         f"{PLAY} --world gaps.csv --missing drop"),
        (f"{PEOPLE} --missing skip", "--missing must be one of", f"{PEOPLE} --missing drop"),
        (f"{PEOPLE} --grades 1", "--grades must be an integer between 2", f"{PEOPLE} --grades 2"),
        (f"{PEOPLE} --grades 52", "between 2 and 51, got 52", f"{PEOPLE} --grades 51"),
        (f"{PEOPLE} --grades 3 --threshold 2", "At most one of", f"{PEOPLE} --grades 3"),
        (f"{PEOPLE} --threshold nan", "--threshold must be", f"{PEOPLE} --threshold 4"),
        (f"{PLAY} --world users.csv", "may be a list of people",
         f"{PLAY} --world users.csv --ids user"),
        (f"{PLAY} --world users.csv --ids usr", "Did you mean 'user'",
         f"{PLAY} --world users.csv --ids user"),
        (f"{PLAY} --threshold 3", "threshold", f"{PEOPLE} --threshold 3"),
        (f"{PEOPLE} --items 5", "items must be 4, the columns of people.csv, got 5",
         f"{PEOPLE} --items 4"),
        (f"{PEOPLE} --top 5", "top must be an integer between 1 and", f"{PEOPLE} --top 4"),
        (f"{COMPARE} --world gaps.csv", "--missing drop leaves such",
         f"{COMPARE} --world gaps.csv --missing drop"),
        (f"{COMPARE} --world people.csv --set world.threshold=x", "threshold",
         f"{COMPARE} --world people.csv --set world.threshold=3"),
        # options of a game
        (f"{PLAY} --set world.flp=0.2", "Did you mean 'flip'", f"{PLAY} --set world.flip=0.2"),
        (f"{PLAY} --set flip=0.2", "--set must look like", f"{PLAY} --set world.flip=0.2"),
        (f"{PLAY} --set world.flip=0.2 --set world.flip=0.3", "once, got it twice",
         f"{PLAY} --set world.flip=0.2"),
        (f"{PLAY} --reveal top:x", "reveal must be top or such as", f"{PLAY} --reveal top:2"),
        (f"{PLAY} --reveal full --top 2", "top must be left out", f"{PLAY} --reveal full"),
        (f"{PLAY} --log-log", "needs the --out", PLAY),
        (f"{PLAY} --comparator first", "comparator", f"{PLAY} --comparator final"),
        (f"{PLAY} --runs 0", "must be an integer of at least 1", f"{PLAY} --runs 1"),
        (f"{PLAY} --seed -1", "seed", f"{PLAY} --seed 1"),
        # lists
        (f"{LEARN} --passes 1", "At most one of --rounds and --passes",
         LEARN.replace("--rounds 9", "--passes 1")),
        (f"{LEARN} --test train.txt", "must be held out", f"{LEARN} --test test.txt"),
        (f"{LEARN} --measure AP --measure DCG", "for lists held out",
         f"{LEARN} --measure AP --measure DCG --test test.txt"),
        (f"{LEARN} --test test.txt --measure AP --measure AP", "different measures",
         f"{LEARN} --test test.txt --measure AP --measure DCG"),
        (f"{LEARN} --top 1", "top must not be given",
         f"{LEARN} --top 1".replace("random-lists", "contextual-rtopk")),
        (f"{LEARN} --label-noise 1.1", "--label-noise must be", f"{LEARN} --label-noise 1"),
        (f"{LEARN} --permute-at 0", "--permute-at must be", f"{LEARN} --permute-at 1"),
        (f"{LEARN} --test-groups fives.txt", "--test-groups needs the --test",
         f"{LEARN} --test ungrouped.txt --test-groups fives.txt"),
        ("learn ungrouped.txt --rounds 9 --json", "qid",
         "learn ungrouped.txt --groups fives.txt --rounds 9 --json"),
        (f"{LEARN} --stream --shuffle", "need lists in memory", f"{LEARN} --shuffle"),
        (f"{LEARN} --runs 2 --model m.npz".replace("random-lists", "contextual-rtopk"),
         "--runs must be 1", f"{LEARN} --runs 1 --model m.npz".replace("random-lists",
                                                                       "contextual-rtopk")),
        # bounds and games to classify
        ("bound --ball l1", "features", "bound --ball l1 --features 9"),
        ("bound --epsilon 0.2", "only smooth_dcg takes it",
         "bound --epsilon 0.2 --surrogate smooth_dcg"),
        ("bound --confidence 1", "--confidence must be", "bound --confidence 0.99"),
        ("bound --rounds 9 --top 200", "--top must be", "bound --rounds 9 --top 100"),
        ("classify NDCG --items 3", "--items and --top must be given", "classify NDCG --items 3 "
         "--top 1"),
        ("classify NDCG --items 3 --top 4", "must be an integer between 1",
         "classify NDCG --items 3 --top 3"),
        ("classify --loss loss.csv", "must be given together",
         "classify --loss loss.csv --feedback seen.csv"),
        ("classify --items 3 --loss loss.csv --feedback seen.csv", "need a measure",
         "classify --loss loss.csv --feedback seen.csv"),
    ],
)  # fmt: skip
def test_a_command_that_is_refused_is_done_when_it_is_mended(wrong, sentence, mended):
    refused = run(*shlex.split(wrong), code=2)
    assert sentence in said(refused)
    assert refused.stdout == ""
    assert run(*shlex.split(mended)).stdout


@pytest.mark.parametrize(
    ("wrong", "sentence", "mended"),
    [
        ("itemz = 4\n", "Did you mean 'items'?", "items = 4\n"),
        ("same_users = true\n", "Did you mean 'same-users'?", "same-users = true\n"),
        ("rounds = 1.5\n", "rounds of game.toml cannot be 1.5", "rounds = 1\n"),
        ('rounds = "many"\n', "rounds of game.toml cannot be 'many'", 'rounds = "8"\n'),
        ("rounds = [1, 2]\n", "a text or a number, got [1, 2]", "rounds = 2\n"),
        ("json = 1\n", "true or false, got 1", "json = true\n"),
        ("against = [true]\n", "a text or a number, got True", 'against = ["random"]\n'),
        ("[set]\nflip = 0.2\n", "a table for each owner", "[set.world]\nflip = 0.2\n"),
        ("rounds = \n", "must be a TOML file of settings", "rounds = 3\n"),
        ("rounds = 0\n", "rounds must be an integer of at least 1", "rounds = 1\n"),
        ('settings = "a.toml"\n', "got 'settings'", "seed = 1\n"),
    ],
)
def test_settings_that_are_refused_are_taken_when_they_are_mended(wrong, sentence, mended, folder):
    path = folder / "game.toml"
    given = ["play", "--ranker", "random", "--settings", "game.toml"]
    path.write_text(wrong)
    assert sentence in said(run(*given, code=2))
    path.write_text(mended)
    own = [] if "rounds" in mended else ["--rounds", 9]
    assert run(*given, *own).stdout
