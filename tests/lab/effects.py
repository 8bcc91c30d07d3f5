"""For every option of every command two values, or one and none, whose results must differ.

Commands run in a folder of the files of :mod:`tests.lab.effects_files`. A result is what a command
found out: what it was asked is left out of it, or an option that nobody reads would differ by its
name alone.
"""

from typing import NamedTuple


class Effect(NamedTuple):
    """Two ends of a command line, after those that both have in common.

    ``base`` takes the place of the arguments of the command; ``codes`` are the exit codes, 0 or 1
    unless one of the two must be refused. ``then`` is run after each, and told as well.
    """

    one: str
    other: str
    base: str | None = None
    codes: tuple[int, int] | None = None
    then: str = ""


CHOICES = "play --items 5 --rounds 40 --ranker onlinerank --world choices --json"
PEOPLE = "play --world people.csv --rounds 20 --ranker epsilon-greedy --json"
LISTS = "compare train.txt --rankers contextual-rtopk --rounds 40 --runs 2 --json"
CSV = "compare --world people.csv --rankers random,epsilon-greedy --rounds 20 --runs 2 --json"
GROUPED = "--rankers contextual-rtopk --rounds 20 --runs 2 --json"
LEARN = "learn train.txt --ranker contextual-rtopk --rounds 30 --json"
TRAIN = "train-policy log.csv --out p.npz --model classifiers --folds 2"
BOUND = "bound --surrogate smooth_dcg --queries 1000 --items 10 --json"
GAME = "bound --rounds 100000 --items 6 --json"
SERVED = "simulate-users http://here --items 4 --rounds 12 --json"
RATED = "simulate-users http://here --world people.csv --rounds 12 --json"
RANKS = "evaluate rankers.npz --policy good.npz --json"

BASES = {
    "keyhole": "",
    "play": "play --items 5 --rounds 40 --ranker epsilon-greedy --json",
    "compare": "compare --items 4 --rounds 20 --runs 2 --rankers random,epsilon-greedy --json",
    "advise": "advise DCG --items 5 --json",
    "list": "list",
    "check": "check --json",
    "reproduce": "reproduce tiny --json",
    "learn": LEARN,
    "rank": "rank good.npz test.txt",
    "train-policy": f"{TRAIN} --penalty 0.1 --json",
    "evaluate": "evaluate log.csv --policy uniform --baseline best-fixed --json",
    "classify": "classify NDCG --items 3 --top 1 --json",
    "atlas": "atlas --out out --items 2 --grades 2 --measures NDCG --json",
    "bound": BOUND,
    "warm": "warm random --jobs 1",
    "doctor": "doctor",
    "simulate-users": SERVED,
    "serve": "serve --db service.db",
    "keys create": "keys create --scope rank --ranker shop",
    "keys list": "keys list",
    "keys remove": "keys remove PREFIX",
    "db check": "db check service.db",
    "db export": "db export service.db news",
}
KEYS = "keys list --json --db"

EFFECTS = {
    "keyhole --version": Effect("--version", "--help"),
    "play --ranker": Effect(
        "--ranker random", "--ranker pege", "play --items 5 --rounds 40 --json"
    ),
    "play --subroutine": Effect(
        "--subroutine ftpl", "--subroutine plackett-luce", "play --items 5 --rounds 90 --json"
    ),
    "play --items": Effect("--items 4", "--items 6", "play --rounds 40 --ranker random --json"),
    "play --rounds": Effect("--rounds 30", "--rounds 40"),
    "play --top": Effect("--top 1", "--top 3"),
    "play --measure": Effect("--measure DCG", "--measure SumLoss"),
    "play --world": Effect("--world flips", "--world independent"),
    "play --reveal": Effect(
        "--reveal choice:set", "--reveal choice:single",
        f"{CHOICES} --set world.n_chosen=2",
    ),
    "play --runs": Effect("--runs 1", "--runs 3"),
    "play --seed": Effect("--seed 0", "--seed 1"),
    "play --same-users": Effect("", "--same-users", "play --items 5 --rounds 9 --runs 3 --json"),
    "play --comparator": Effect("--comparator prefix", "--comparator final"),
    "play --threshold": Effect("--threshold 2", "--threshold 5", PEOPLE),
    "play --grades": Effect("--grades 2", "--grades 4", PEOPLE),
    "play --missing": Effect(
        "--missing error", "--missing drop", PEOPLE.replace("people", "gaps"), (2, 0)
    ),
    "play --ids": Effect("", "--ids user", PEOPLE.replace("people", "users"), (2, 0)),
    "play --set": Effect("--set world.flip=0.1", "--set world.flip=0.5"),
    "play --against": Effect("--against random", "--against pege"),
    "play --out": Effect("", "--out out"),
    "play --log-log": Effect("--out out", "--out out --log-log"),
    "play --settings": Effect("--settings one.toml", "--settings other.toml", "play"),
    "play --json": Effect("", "--json", "play --items 5 --rounds 9 --ranker random"),
    "compare --world": Effect("--world flips", "--world independent"),
    "compare --rankers": Effect(
        "--rankers random", "--rankers random,pege", "compare --items 4 --rounds 20 --json"
    ),
    "compare --against": Effect("--against ftpl", "--against onlinerank"),
    "compare --items": Effect(
        "--items 4", "--items 6", "compare --rankers random --rounds 9 --runs 2 --json"
    ),
    "compare --top": Effect("--top 1", "--top 3"),
    "compare --measure": Effect("--measure DCG", "--measure SumLoss"),
    "compare --rounds": Effect("--rounds 20", "--rounds 30"),
    "compare --runs": Effect("--runs 2", "--runs 3"),
    "compare --seed": Effect("--seed 0", "--seed 1"),
    "compare --threshold": Effect("--threshold 2", "--threshold 5", CSV),
    "compare --grades": Effect("--grades 2", "--grades 4", CSV),
    "compare --missing": Effect(
        "--missing error", "--missing drop", CSV.replace("people", "gaps"), (2, 0)
    ),
    "compare --ids": Effect("", "--ids user", CSV.replace("people", "users"), (2, 0)),
    "compare --groups": Effect(
        "--groups fives.txt", "--groups tens.txt", f"compare ungrouped.txt {GROUPED}"
    ),
    "compare --raw": Effect("", "--raw", LISTS),
    "compare --keep-empty": Effect("", "--keep-empty", LISTS.replace("train", "empty")),
    "compare --shuffle": Effect("", "--shuffle", LISTS.replace("train", "tied")),
    "compare --label-noise": Effect("--label-noise 0", "--label-noise 1", LISTS),
    "compare --permute-at": Effect("--permute-at 0.2", "--permute-at 0.8", LISTS),
    "compare --set": Effect(
        "--set epsilon-greedy.scale=0.1", "--set epsilon-greedy.scale=9"
    ),
    "compare --out": Effect("", "--out out"),
    "compare --settings": Effect(
        "--settings one.toml", "--settings other.toml",
        "compare --items 4 --runs 2 --rankers random",
    ),
    "compare --price": Effect("", "--price", "compare --items 4 --rankers random --rounds 9"),
    "compare --json": Effect("", "--json", "compare --items 4 --rankers random --rounds 9"),
    "advise --items": Effect("--items 4", "--items 5", "advise SumLoss --json"),
    "advise --top": Effect("--top 1", "--top 5"),
    "advise --grades": Effect("--grades 2", "--grades 3", "advise DCG --items 3 --json"),
    "advise --rounds": Effect("--rounds 1000", "--rounds 2000"),
    "advise --features": Effect("--features 0", "--features 2"),
    "advise --json": Effect("", "--json", "advise DCG --items 20"),
    "list --json": Effect("", "--json"),
    "check --ranker": Effect("--ranker random", "--ranker random-lists"),
    "check --measure": Effect("--measure DCG", "--measure wrong.py:Measure"),
    "check --world": Effect("--world flips", "--world wrong.py:World"),
    "check --reveal": Effect("--reveal top", "--reveal wrong.py:Reveal"),
    "check --surrogate": Effect("--surrogate kl", "--surrogate wrong.py:Surrogate"),
    "check --items": Effect(
        "--items 2", "--items 5", "check --reveal top --set reveal.k=3 --json", (2, 0)
    ),
    "check --set": Effect(
        "--set reveal.k=1", "--set reveal.k=9", "check --reveal top --json", (0, 2)
    ),
    "check --json": Effect("", "--json", "check --reveal top"),
    "reproduce --out": Effect("", "--out elsewhere"),
    "reproduce --data": Effect("--data train.txt", "--data test.txt", "reproduce lists --json"),
    "reproduce --quick": Effect("", "--quick"),
    "reproduce --json": Effect("", "--json", "reproduce tiny"),
    "learn --ranker": Effect(
        "--ranker random-lists", "--ranker contextual-rtopk", "learn train.txt --rounds 30 --json"
    ),
    "learn --surrogate": Effect("--surrogate kl", "--surrogate squared"),
    "learn --top": Effect("--top 1", "--top 3"),
    "learn --measure": Effect("--measure NDCG@10", "--measure DCG@2"),
    "learn --rounds": Effect(
        "--rounds 20", "--rounds 30", "learn train.txt --ranker random-lists --json"
    ),
    "learn --passes": Effect(
        "--passes 1", "--passes 2", "learn train.txt --ranker random-lists --json"
    ),
    "learn --runs": Effect("--runs 1", "--runs 3"),
    "learn --seed": Effect("--seed 0", "--seed 1"),
    "learn --test": Effect("--test test.txt", "--test tied.txt"),
    "learn --groups": Effect(
        "--groups fives.txt", "--groups tens.txt", LEARN.replace("train", "ungrouped")
    ),
    "learn --test-groups": Effect(
        "--test-groups fives.txt", "--test-groups tens.txt", f"{LEARN} --test ungrouped.txt"
    ),
    "learn --raw": Effect("", "--raw"),
    "learn --keep-empty": Effect("", "--keep-empty", LEARN.replace("train", "empty")),
    "learn --shuffle": Effect("", "--shuffle", LEARN.replace("train", "tied")),
    "learn --label-noise": Effect("--label-noise 0", "--label-noise 1"),
    "learn --permute-at": Effect("--permute-at 0.2", "--permute-at 0.8"),
    "learn --stream": Effect("", "--stream"),
    "learn --set": Effect("--set ranker.mix=0.1", "--set ranker.mix=0.9"),
    "learn --model": Effect("", "--model m.npz"),
    "learn --out": Effect("", "--out out"),
    "learn --settings": Effect("--settings one.toml", "--settings other.toml",
                               "learn train.txt --json"),
    "learn --json": Effect("", "--json", "learn train.txt --ranker random-lists --rounds 9"),
    "rank --model": Effect("--model good.npz", "--model blind.npz", "rank test.txt"),
    "rank --groups": Effect(
        "--groups fives.txt", "--groups tens.txt", "rank good.npz ungrouped.txt"
    ),
    "rank --format": Effect("--format tsv", "--format trec"),
    "rank --tag": Effect("--tag one", "--tag other", "rank good.npz test.txt --format trec"),
    "rank --json": Effect("", "--json"),
    "train-policy --out": Effect(
        "--out p.npz", "--out other.npz", BASES["train-policy"].replace("--out p.npz ", "")
    ),
    "train-policy --model": Effect(
        "--model classifiers", "--model forests", "train-policy log.csv --out p.npz --json",
    ),
    "train-policy --policy": Effect("--policy greedy", "--policy softmax"),
    "train-policy --penalty": Effect("--penalty 0.1", "--penalty 9", f"{TRAIN} --json"),
    "train-policy --folds": Effect(
        "--folds 2", "--folds 3", f"{TRAIN} --penalty 0.1 --penalty 9 --json"
    ),
    "train-policy --steps": Effect(
        "--steps 20", "--steps 90",
        BASES["train-policy"].replace("classifiers", "rankers"),
    ),
    "train-policy --hold-out": Effect("--hold-out 0.2", "--hold-out 0.5"),
    "train-policy --split": Effect("--split rows", "--split random"),
    "train-policy --held-out": Effect("", "--held-out rest.csv"),
    "train-policy --baseline": Effect("--baseline logged", "--baseline uniform"),
    "train-policy --confidence": Effect("--confidence 0.8", "--confidence 0.9"),
    "train-policy --actions": Effect("--actions 3", "--actions 4"),
    "train-policy --set": Effect("--set policy.epsilon=0.1", "--set policy.epsilon=0.5"),
    "train-policy --seed": Effect("--seed 0", "--seed 1"),
    "train-policy --json": Effect("", "--json", f"{TRAIN} --penalty 0.1"),
    "evaluate --policy": Effect(
        "--policy uniform", "--policy best-fixed", "evaluate log.csv --json"
    ),
    "evaluate --baseline": Effect(
        "--baseline logged", "--baseline best-fixed", "evaluate log.csv --policy uniform --json"
    ),
    "evaluate --confidence": Effect("--confidence 0.8", "--confidence 0.9"),
    "evaluate --bound": Effect("--bound student-t", "--bound empirical-bernstein"),
    "evaluate --rewards": Effect("--rewards 0 1", "--rewards 0 3"),
    "evaluate --floor": Effect("--floor 0.05", "--floor 0.2"),
    "evaluate --clip": Effect("--clip 1", "--clip 1.5"),
    "evaluate --actions": Effect("--actions 3", "--actions 5"),
    "evaluate --allow-training-rows": Effect(
        "", "--allow-training-rows", "evaluate log.csv --policy trained.npz --json", (2, 0)
    ),
    "evaluate --measure": Effect("--measure DCG@1", "--measure Precision@2", RANKS),
    "evaluate --top": Effect("--top 1", "--top 2", RANKS),
    "evaluate --seed": Effect("--seed 0", "--seed 1"),
    "evaluate --out": Effect("", "--out out"),
    "evaluate --json": Effect("", "--json", "evaluate log.csv --policy uniform"),
    "classify --items": Effect("--items 3", "--items 4", "classify NDCG --top 1 --json"),
    "classify --top": Effect("--top 1", "--top 3", "classify NDCG --items 3 --json"),
    "classify --grades": Effect(
        "--grades 2", "--grades 3", "classify PairwiseLoss --items 3 --top 1 --json"
    ),
    "classify --method": Effect("--method enumeration", "--method rule"),
    "classify --certificate": Effect("", "--certificate proof.json"),
    "classify --check": Effect("--check sound.json", "--check forged.json", "classify --json"),
    "classify --loss": Effect(
        "--loss loss.csv", "--loss same.csv", "classify --feedback seen.csv --json"
    ),
    "classify --feedback": Effect(
        "--feedback seen.csv", "--feedback hidden.csv", "classify --loss loss.csv --json"
    ),
    "classify --json": Effect("", "--json", "classify NDCG --items 3 --top 1"),
    "atlas --out": Effect(
        "--out out", "--out elsewhere", "atlas --items 2 --grades 2 --measures NDCG --json"
    ),
    "atlas --items": Effect(
        "--items 2", "--items 3", "atlas --out out --grades 2 --measures NDCG --json"
    ),
    "atlas --grades": Effect(
        "--grades 2", "--grades 3", "atlas --out out --items 2 --measures NDCG --json"
    ),
    "atlas --measures": Effect(
        "--measures NDCG", "--measures DCG", "atlas --out out --items 2 --grades 2 --json"
    ),
    "atlas --json": Effect("", "--json", BASES["atlas"].removesuffix(" --json")),
    "bound --surrogate": Effect(
        "--surrogate listnet", "--surrogate squared", "bound --queries 1000 --items 10 --json"
    ),
    "bound --queries": Effect("--queries 1000", "--queries 2000"),
    "bound --items": Effect("--items 10", "--items 20"),
    "bound --radius": Effect("--radius 1", "--radius 2"),
    "bound --norm": Effect("--norm 1", "--norm 2"),
    "bound --confidence": Effect("--confidence 0.9", "--confidence 0.99"),
    "bound --ball": Effect("--ball l2", "--ball l1", f"{BOUND} --features 30"),
    "bound --features": Effect("--features 30", "--features 90", f"{BOUND} --ball l1"),
    "bound --max-grade": Effect("--max-grade 1", "--max-grade 3", BOUND.replace(
        "smooth_dcg", "squared")),
    "bound --epsilon": Effect("--epsilon 0.1", "--epsilon 0.5"),
    "bound --loss-bound": Effect("--loss-bound 1", "--loss-bound 2"),
    "bound --optimal-loss": Effect(
        "--optimal-loss 0.1", "--optimal-loss 0.5", BOUND.replace("smooth_dcg", "squared")
    ),
    "bound --safe": Effect("", "--safe", "bound --queries 100000000 --items 10 --json"),
    "bound --rounds": Effect("--rounds 1000", "--rounds 2000", "bound --items 6 --json"),
    "bound --top": Effect("--top 1", "--top 2", GAME),
    "bound --measure": Effect("--measure DCG", "--measure SumLoss", GAME),
    "bound --json": Effect("", "--json", "bound --queries 1000 --items 10"),
    "warm --json": Effect("", "--json"),
    "doctor --json": Effect("", "--json"),
    "simulate-users --ranker": Effect("--ranker one", "--ranker other"),
    "simulate-users --items": Effect(
        "--items 4", "--items tea,milk,rum,gin", "simulate-users http://here --rounds 9 --json"
    ),
    "simulate-users --world": Effect("--world flips", "--world independent"),
    "simulate-users --threshold": Effect("--threshold 2", "--threshold 5", RATED),
    "simulate-users --grades": Effect("--grades 2", "--grades 4", RATED),
    "simulate-users --missing": Effect(
        "--missing error", "--missing drop", RATED.replace("people", "gaps"), (2, 0)
    ),
    "simulate-users --ids": Effect("", "--ids user", RATED.replace("people", "users"), (2, 0)),
    "simulate-users --set": Effect("--set world.flip=0.1", "--set world.flip=0.5"),
    "simulate-users --measure": Effect("--measure DCG", "--measure SumLoss"),
    "simulate-users --top": Effect("--top 1", "--top 2"),
    "simulate-users --rounds": Effect("--rounds 9", "--rounds 12"),
    "simulate-users --rate": Effect("--rate 10", "--rate 1000"),
    "simulate-users --concurrency": Effect("--concurrency 1", "--concurrency 3"),
    "simulate-users --delay": Effect("--delay 0.5", "--delay 9"),
    "simulate-users --delay-rounds": Effect("--delay-rounds 1", "--delay-rounds 5"),
    "simulate-users --lose": Effect("--lose 0.1", "--lose 0.9"),
    "simulate-users --drift": Effect("--drift 0.1", "--drift 0.9", SERVED + " --world independent"),
    "simulate-users --wait": Effect("--wait 7", "--wait 9"),
    "simulate-users --seed": Effect("--seed 0", "--seed 1"),
    "simulate-users --key": Effect("--key one", "--key other"),
    "simulate-users --json": Effect("", "--json", SERVED.removesuffix(" --json")),
    "serve --db": Effect("--db service.db", "--db new.db", "serve"),
    "serve --host": Effect("--host 127.0.0.1", "--host 127.0.0.2"),
    "serve --port": Effect("--port 8360", "--port 8361"),
    "serve --config": Effect("", "--config service.toml"),
    "serve --insecure": Effect("", "--insecure"),
    "serve --log-requests": Effect("", "--log-requests"),
    "serve --create": Effect("", "--create", "serve --db gone.db", (2, 0)),
    "serve --demo": Effect("", "--demo", "serve --db new.db"),
    "keys create --scope": Effect(
        "--scope rank", "--scope read", "keys create --ranker shop --db k.db", then=f"{KEYS} k.db"
    ),
    "keys create --ranker": Effect(
        "--ranker shop", "--ranker news", "keys create --scope rank --db k.db", then=f"{KEYS} k.db"
    ),
    "keys create --db": Effect("--db k.db", "--db l.db", then=f"{KEYS} k.db", codes=(0, 0)),
    "keys create --expires-days": Effect(
        "--expires-days 2", "--expires-days 9", f"{BASES['keys create']} --db k.db",
        then=f"{KEYS} k.db",
    ),
    "keys list --db": Effect("--db one.db", "--db other.db", "keys list --json"),
    "keys list --json": Effect("", "--json", "keys list --db one.db"),
    "keys remove --db": Effect("--db one.db", "--db other.db", codes=(0, 2)),
    "db check --json": Effect("", "--json"),
    "db export --out": Effect("--out e.ndjson", "--out e.parquet"),
    "db export --after": Effect(
        "--after 0", "--after 9", "db export service.db news --out e.ndjson"
    ),
}  # fmt: skip

WITHOUT = {
    "keys create --name": "what a key is called, and nothing else (test_key_uses has its list)",
    "db migrate --grant": "rights in PostgreSQL, which test_postgres tries",
    "db outbox --every": "when it copies again, for ever (test_outbox counts the waits)",
    "warm --jobs": "how many compile at once; the code is the same (test_warm has 1 and 2)",
    "warm --baseline": "which processor is compiled for, which processes of its own do",
    "warm --quiet": "a progress bar, which only a terminal has",
}
"""Options whose effect is no result of the command, and why."""

KEPT = {
    "play": ("average_score", "average_score_error", "average_regret", "average_regret_error",
             "best_fixed_score", "slope", "curve", "learnt_ranking", "against"),
    "compare": ("best", "worse", "verdict", "rankers"),
    "advise": ("take", "candidates", "left_out", "most_to_lose", "forced_regret"),
    "reproduce": ("holds", "verdicts"),
    "learn": ("average_score", "average_score_error", "average_greedy_score", "curve",
              "average_score_after", "test", "test_errors", "test_queries", "queries", "documents",
              "against"),
    "train-policy": ("penalty", "penalties", "training_rows", "held_out_rows", "never_clicked",
                     "evaluation"),
    "evaluate": ("verdict", "lower_bound", "interval", "policy", "baseline", "difference"),
    "classify": ("class", "source", "reason", "advice", "proves"),
    "bound": ("bounds", "smallest", "loss_range", "lipschitz", "smoothness", "largest_regret"),
    "simulate-users": ("average_score", "average_regret", "best_fixed_score", "full_information",
                       "mean_relevance", "feedback", "calls"),
}  # fmt: skip
"""What commands have found out, where their JSON also says what was asked."""

ECHOES = {"seconds", "rounds_per_second", "version", "spec", "settings", "seed", "name", "sees",
          "options", "is_judged", "prefix", "created_at", "log", "confidence"}  # fmt: skip
"""What is told within that of times, and of what was asked."""
