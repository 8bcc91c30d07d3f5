"""Command lines: good ones, bad ones, and good ones of which some words have become others."""

import os
import random
import shlex
import tempfile
from pathlib import Path

from bench.fuzz import material
from bench.fuzz.processes import run_command
from bench.fuzz.scene import ANY, BAD, GOOD, Attack, Scene

_FAST = ("play --items 4 --rounds 30", "play --ranker ftpl --items 4 --rounds 30 --json")

GOOD_LINES = (
    *_FAST,
    "play --items 4 --rounds 30 --measure NDCG --json",
    "play --ranker random --items 3 --rounds 20 --runs 2 --seed 7 --json",
    "play --ranker rtopk --items 4 --top 2 --rounds 30 --set ranker.n_blocks=5 --json",
    "play --world ratings.csv --threshold 3 --rounds 20 --json",
    "play --items 4 --rounds 30 --against random --comparator final",
    "learn train.txt --rounds 20 --json",
    "learn train.txt --rounds 20 --model saved.npz --json",
    "learn train.txt.gz --passes 2 --top 1 --keep-empty --raw",
    "learn train.txt --stream --rounds 20 --json",
    "rank train.txt --model model.npz",
    "rank train.txt --model kernel.npz --json",
    "rank bare.txt --groups groups.txt --model model.npz",
    "rank model.npz train.txt --format trec --tag one",
    "train-policy log.csv --model classifiers --out trained.npz --penalty 1 --json",
    "evaluate log.csv --policy uniform --json",
    "evaluate log.csv --policy policy.npz --baseline logged --confidence 0.9",
    "evaluate log.parquet --policy best-fixed --bound student-t --json",
    "evaluate open.csv --policy uniform --baseline logged --json",
    "classify NDCG --items 3 --top 1 --json",
    "classify DCG --items 20 --top 1 --grades 3",
    "classify NDCG --items 3 --top 1 --certificate new.json",
    "classify --check proof.json --json",
    "classify --loss loss.csv --feedback feedback.csv --json",
    "bound --surrogate listnet --queries 1000 --items 10 --json",
    "bound --ball l1 --features 100 --radius 3 --norm 1",
    "bound --surrogate squared --items 10 --optimal-loss 0.01 --json",
    "check --measure DCG --json",
    "check --reveal top --items 4 --json",
    "completion bash",
    "list --json",
    "list",
    "--version",
    "--help",
    "play --help",
    "evaluate --help",
)

BAD_LINES = (
    *"""
play --nonsense 3
play --items
nothing
play extra words
play --rounds 0
play --rounds -5 --items 4
play --rounds x
play --items 0
play --items -1
play --items 4 --rounds 30 --seed -1
play --items 4 --rounds 30 --seed 9223372036854775808
play --items 4 --rounds 30 --runs 0
play --items 4 --rounds 30 --runs -1
play --items 4 --rounds 30 --runs 10000000000
play --items 4 --rounds 99999999999999999999
play --items 4 --rounds 30 --reveal full:3
play --items 4 --rounds 30 --reveal top:9
play --items 4 --rounds 30 --top 9
play --items 4 --rounds 30 --reveal full --top 1
play --items 4 --rounds 30 --reveal choice:some
play --items 4 --rounds 30 --reveal ''
play --items 4 --rounds 30 --ranker nothing
play --items 4 --rounds 30 --ranker no.py:X
play --items 4 --rounds 30 --measure NDCG@0
play --items 4 --rounds 30 --measure ''
play --items 4 --rounds 30 --measure NDCG@x
play --items 4 --rounds 30 --world nowhere.csv
play --items 4 --rounds 30 --comparator sometimes
play --items 4 --rounds 30 --against x
play --items 4 --rounds 30 --set ranker.tight=maybe
play --items 4 --rounds 30 --set x
play --items 4 --rounds 30 --set ranker.n_blocks=[1]
play --items 4 --rounds 30 --set ranker.rate=[]
play --items 4 --rounds 30 --set ranker.k={}
play --items 4 --rounds 30 --set ranker.rate=NaN
play --items 4 --rounds 30 --set ranker.rate=Infinity
play --items 4 --rounds 30 --measure NDCG --set measure.empty=Infinity
play --items 4 --rounds 30 --measure NDCG --set measure.empty=NaN
play --items 4 --rounds 30 --set world.flip=2
play --items 4 --rounds 30 --set world.flip=NaN
play --items 4 --rounds 30 --set world.truth=[[1]]
play --items 4 --rounds 30 --set .=1
play --items 4 --rounds 30 --set ranker.horizon=1e400
play --items 4 --rounds 30 --threshold 3
play --world ratings.csv --threshold nan --rounds 20
play --world ratings.csv --grades 0 --rounds 20
play --world ratings.csv --missing sometimes --rounds 20
learn
learn nothing.txt
learn train.txt --rounds 20 --passes 2
learn train.txt --rounds 0
learn train.txt --passes 0
learn train.txt --top 0
learn train.txt --rounds 20 --model ''
learn train.txt --rounds 20 --model folder
learn train.txt --rounds 20 --model train.txt/model.npz
learn train.txt --rounds 20 --ranker random-lists --model m.npz
learn train.txt --rounds 20 --surrogate nothing
learn train.txt --rounds 20 --seed -1
learn train.txt --rounds 20 --ranker rtopk
learn train.txt --groups groups.txt
learn train.txt --rounds 20 --set ranker.rate=NaN
learn train.txt --rounds 20 --set ranker.mix=[1]
learn train.txt --rounds 20 --set surrogate.max_grade=x
learn train.txt --rounds 20 --measure RBP
learn log.csv --rounds 20
rank train.txt
rank train.txt --model nothing.npz
rank train.txt --model policy.npz
rank train.txt --model folder
rank train.txt --model train.txt
rank log.csv --model model.npz
rank model.npz
rank model.npz train.txt --format xml
rank model.npz train.txt --format trec --tag 'two words'
learn train.txt --rounds 20 --test train.txt
learn train.txt --rounds 20 --test nothing.txt
learn train.txt --rounds 20 --test-groups groups.txt
learn train.txt --rounds 20 --settings nothing.toml
play --items 4 --rounds 30 --settings train.txt
play --items 4 --rounds 30 --log-log
play --world ratings.csv --ids nobody --rounds 20
train-policy
train-policy log.csv
train-policy nothing.csv --out p.npz
train-policy log.csv --out folder
train-policy log.csv --out p.npz --model nothing
train-policy log.csv --out p.npz --penalty -1
train-policy log.csv --out p.npz --hold-out 2
completion tcsh
doctor now
evaluate log.csv
evaluate nothing.csv --policy uniform
evaluate log.csv --policy nobody
evaluate log.csv --policy uniform --seed -1
evaluate log.csv --policy uniform --confidence 1
evaluate log.csv --policy uniform --confidence nan
evaluate log.csv --policy uniform --bound nothing
evaluate log.csv --policy uniform --rewards 1 0
evaluate log.csv --policy uniform --rewards nan inf
evaluate log.csv --policy uniform --floor 0
evaluate log.csv --policy uniform --clip -1
evaluate log.csv --policy uniform --clip nan
evaluate log.csv --policy uniform --actions 0
evaluate log.csv --policy uniform --actions 1
evaluate folder --policy uniform
evaluate log.csv --policy model.npz
evaluate train.txt --policy uniform
evaluate log.csv --policy uniform --actions 99999999999
classify
classify NDCG
classify NDCG --items 3
classify NDCG --items 0 --top 1
classify NDCG --items 3 --top 4
classify NDCG --items 3 --top 0
classify X --items 3 --top 1
classify NDCG --items 3 --top 1 --grades 1
classify NDCG --items 3 --top 1 --method guess
classify NDCG --check proof.json
classify --check nothing.json
classify --check train.txt
classify --loss loss.csv
classify --feedback feedback.csv
classify --check folder
classify NDCG --items 3 --top 1 --certificate folder
classify NDCG --items 3 --top 1 --certificate ''
classify --loss ratings.csv --feedback feedback.csv
classify --items 3 --loss loss.csv --feedback feedback.csv
bound --surrogate nothing
bound --queries 0
bound --items 0
bound --radius -1
bound --radius nan
bound --norm inf
bound --confidence 1.5
bound --ball l3
bound --ball l1
bound --grade 0
bound --grade nan
bound --epsilon 1
bound --surrogate smooth_dcg --epsilon 0
bound --loss-bound -1
bound --optimal-loss nan
check
check --ranker nothing
check --measure X
check --reveal top --items 0
check --measure DCG --set measure.x=1
check --world flips --set world.flip=3
atlas
atlas --items 2 --grades 2 --measures DCG --out ''
atlas --items 5-2 --out new
atlas --items x --out new
atlas --grades 1 --out new
atlas --measures X --out new
atlas --out train.txt
atlas --items 0 --out new
atlas --items 2 --grades 2 --measures DCG@0 --out new
reproduce
reproduce nothing
reproduce ''
reproduce ../papers
reproduce thesis-fig3.1 --data train.txt
list extra
--nonsense
rank train.txt --model forest.npz
""".strip().splitlines(),
    f"learn train.txt --rounds 20 --model {'x' * 300}.npz",
)
"""Lines that must be refused, each for one reason."""

_COMMANDS = (
    "play", "learn", "rank", "train-policy", "evaluate", "classify", "bound", "check", "list",
    "atlas", "reproduce", "completion",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "2", "3", "-1", "1.5", "nan", "inf", "-inf", "1e308", "1e999999999", "x", "", " ",
    "½", "99999999999999999999", "2147483648", "1_0", "0x3", "1e-320", "true", "[1]",
)  # fmt: skip
_TEXTS = (
    "", "x", "é", "\udcff", "[red]x[/red]", "{}", "%d", "a\nb", "-", "--", "x" * 5000, "DCG", "l1",
)  # fmt: skip
_FILES = (
    "train.txt", "log.csv", "model.npz", "ratings.csv", "proof.json", "nothing", "folder", ".",
    "..", "", "x" * 300, "y" * 40_000, os.devnull, "policy.npz", "kernel.npz", "loss.csv", "~",
    "a\nb",
)  # fmt: skip
_SETS = (
    "ranker.n_blocks=3", "ranker.eps_scale=0.5", "ranker.rate=0.5", "ranker.rate=1e308",
    "ranker.k=2", "ranker.rate=5e-324", "ranker.horizon=10", "ranker.max_grade=4",
    "ranker.items=[1]", "ranker.x=1", "world.flip=0.5", "world.n_relevant=9",
    "world.n_relevant=2", "measure.empty=0.5", "x.y=1", "=", "", "ranker.rate=null",
    "ranker.k=true", "ranker.seed=3", "ranker.n_items=3", 'ranker.measure="AP"',
    "ranker.tight=true", "ranker.eps_scale=1e400", "surrogate.max_grade=3",
    "ranker.row_norm=1e-300", "ranker.mix=1", "ranker.power=1e300", "world.truth=[1,0,0,1]",
    "ranker.radius=1e-9",
)  # fmt: skip
_LIKELY = ("1", "2", "3", "4", "5", "0.5", "0.9", "0.99") * 2
"""Numbers that many options take: not all that is strange is refused at once."""
_LONG_WORK = ("--rounds", "--passes", "--runs")
_NUMERIC = (
    "--items", "--top", "--seed", "--threshold", "--grades", "--confidence", "--floor", "--clip",
    "--actions", "--queries", "--radius", "--norm", "--features", "--grade", "--epsilon",
    "--rewards", "--loss-bound", "--optimal-loss",
)  # fmt: skip
_WORDS = ("--bound", "--ball", "--comparator", "--missing", "--method", "--reveal", "--policy")
_PATHS = ("--model", "--certificate", "--check", "--loss", "--feedback", "--groups")


def warm() -> None:
    """Compile what the good lines use, by running all of them in this process."""
    with tempfile.TemporaryDirectory() as name:
        before = Path.cwd()
        os.chdir(name)
        try:
            scene = Scene(Path(name))
            for line in GOOD_LINES:
                _with_files(scene, shlex.split(line))
                scene.command(shlex.split(line))
        finally:
            os.chdir(before)


def _with_files(scene: Scene, words: list[str]) -> None:
    """Write the good files that a line names."""
    for word in words:
        if word in material.NAMES:
            scene.write(word, material.good(word))
        elif word == "folder" and not (scene.folder / word).exists():
            (scene.folder / word).mkdir()


def _value_for(option: str, chance: random.Random) -> str:
    if option in _LONG_WORK:  # a large number of these is much work, not an attack
        return chance.choice(("0", "-1", "1", "3", "x", "", "1.5", "nan", "99999999999999999999"))
    if option in _NUMERIC:
        return chance.choice((*_NUMBERS, *_LIKELY))
    if option in _PATHS:
        return chance.choice(_FILES)
    if option == "--set":
        return chance.choice(_SETS)
    return chance.choice((*_TEXTS, *_NUMBERS))


def mutated(chance: random.Random, words: list[str]) -> list[str]:
    """Return a line of which some words have become others."""
    words = list(words)
    for _ in range(chance.choice((1, 1, 1, 1, 2, 3))):
        place = chance.randrange(len(words)) if words else 0
        options = [n for n, word in enumerate(words[:-1]) if word.startswith("--")]
        match chance.randrange(8):
            case 0 | 1 | 2 if options:
                at = chance.choice(options)
                words[at + 1] = _value_for(words[at], chance)
            case 3:
                words += ["--set", chance.choice(_SETS)]
            case 4:
                option = chance.choice((*_NUMERIC, *_WORDS))
                words += [option, _value_for(option, chance)]
            case 5 if words:
                del words[place]
            case 6:
                words.insert(place, chance.choice((*_TEXTS, *_COMMANDS, "--json", "--help", "-h")))
            case _:
                files = [n for n, word in enumerate(words) if word in material.NAMES]
                if files:
                    words[chance.choice(files)] = chance.choice(_FILES)
    return words


def draw(chance: random.Random) -> Attack:
    """Return one command line, one of a hundred run in a process of its own."""
    attack = chance.random()
    if attack < 0.2:
        label, words = GOOD, shlex.split(chance.choice(GOOD_LINES))
    elif attack < 0.4:
        label, words = BAD, shlex.split(chance.choice(BAD_LINES))
    else:
        label, words = ANY, mutated(chance, shlex.split(chance.choice(GOOD_LINES)))
    alone = chance.random() < 0.01
    kind = shlex.join(words)[:100] if label == BAD else ""

    def act(scene: Scene) -> None:
        _with_files(scene, words)
        if alone:
            run_command(scene, words, label, kind)
        else:
            scene.command(words, label, kind)

    return Attack(shlex.join(words)[:500], act)
