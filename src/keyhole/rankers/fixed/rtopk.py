"""A4: RTop-kF, ranking a fixed list from the relevance of its top k items."""

import warnings
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_flag,
    check_integer,
    check_number,
)
from keyhole.bounds import blocks, choices, ftpl
from keyhole.contracts.arrays import Array, ItemFlags, ItemIndices, PerItem, ranker_kernel
from keyhole.contracts.lists import Impression
from keyhole.contracts.rows import ANY_CROWD, DASHED, Guarantee, Look, Question
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.draw import scalar, uniforms_of
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import (
    Epochs,
    FixedListRanker,
    GameFacts,
    Tuning,
    epoch_of,
    epochs,
    gain_of,
)
from keyhole.rankers.fixed.subroutines import (
    SUBROUTINES,
    Proposal,
    TunedFor,
)

_TIMES, _CELLS, _ITEMS, _REST = 0, 1, 2, 3


class RTopKParams(NamedTuple):
    """Settings of RTop-kF."""

    k: int
    n_cells: int
    epochs: Epochs
    exponential: bool
    random_partition: bool
    random_rest: bool


class RTopKState(NamedTuple):
    """What has been seen, block by block.

    ``scores`` sums the blocks before the one that ``clock`` names (its epoch and first round),
    ``pending`` what has come since.
    """

    clock: Annotated[Any, Array((2,), np.int64)]
    scores: PerItem
    pending: PerItem


_PerCell = Annotated[Any, Array(("n_cells",), np.int64)]


class RTopKWork(NamedTuple):
    """Scratch memory, and the plan of the last block asked for.

    A plan is a pure function of the draw's seed and stream and the block; ``header``
    says which plan is here: seed, stream, first round, end, epoch, number of exploration
    rounds. In the block's round ``times[j]`` the cell ``cells[j]`` of ``items`` is shown.
    """

    header: Annotated[Any, Array((6,), np.int64, -1)]
    times: _PerCell
    cells: _PerCell
    items: ItemIndices
    scores: PerItem
    keys: PerItem
    in_cell: ItemFlags
    order: ItemIndices
    proposal: Proposal


@kernel
def _make_plan(params: Any, draw: Any, work: RTopKWork) -> None:
    header = work.header
    epoch = epoch_of(params.epochs, draw.round)
    begin = params.epochs.starts[epoch]
    length = params.epochs.starts[epoch + 1] - begin
    # Blocks differ in length by at most one round, the longer ones first (R7). An epoch shorter
    # than the number of cells is one block without exploration (R8).
    n_blocks = max(params.epochs.n_blocks[epoch], 1)
    short, n_long = length // n_blocks, length % n_blocks
    place = draw.round - begin
    if place < n_long * (short + 1):
        first = begin + place // (short + 1) * (short + 1)
        end = first + short + 1
    else:
        begin += n_long * (short + 1)
        first = begin + (draw.round - begin) // short * short
        end = first + short
    n_cells = params.n_cells if params.epochs.n_blocks[epoch] > 0 else 0
    header[0], header[1], header[2] = draw.seed, draw.stream, first
    header[3], header[4], header[5] = end, epoch, n_cells

    # A uniform set of distinct times, in order: each round is taken with probability
    # (times still wanted) / (rounds still left).
    n_chosen = 0
    for time in range(end - first):
        wanted = n_cells - n_chosen
        if wanted == 0:
            break
        if scalar(draw, first, _TIMES, time) * (end - first - time) < wanted:
            work.times[n_chosen] = time
            n_chosen += 1
    for cell in range(n_cells):  # which cell is shown when: a uniform shuffle
        work.cells[cell] = cell
    for last in range(n_cells - 1, 0, -1):
        other = int(scalar(draw, first, _CELLS, last) * (last + 1))
        work.cells[last], work.cells[other] = work.cells[other], work.cells[last]
    if params.random_partition:
        uniforms_of(draw, first, _ITEMS, work.keys)
        sort_descending(work.keys, work.items, work.proposal.sort)
    else:
        for item in range(work.items.shape[0]):
            work.items[item] = item


@kernel
def _cell_now(params: Any, draw: Any, work: RTopKWork) -> int:
    """Return the cell to explore in this round, or -1."""
    header = work.header
    same = header[0] == draw.seed and header[1] == draw.stream
    if not (same and header[2] <= draw.round < header[3]):
        _make_plan(params, draw, work)
    time = draw.round - header[2]
    low, high = 0, header[5]
    while low < high:
        middle = (low + high) // 2
        if work.times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return work.cells[low] if low < header[5] and work.times[low] == time else -1


@kernel
def _explore(params: Any, draw: Any, cell: int, out: Any, work: RTopKWork) -> None:
    """Put a cell on top of the learner's ranking; both parts keep their order (R10)."""
    n_items = out.shape[0]
    if params.random_rest:
        uniforms_of(draw, draw.round, _REST, work.keys)
        sort_descending(work.keys, out, work.proposal.sort)
    first, end = cell * params.k, min((cell + 1) * params.k, n_items)
    for place in range(first, end):
        work.in_cell[work.items[place]] = True
    n_shown = end - first
    # What lies below the last item of the cell stays where it is.
    top = position = 0
    while top < n_shown:
        item = out[position]
        if work.in_cell[item]:
            work.order[top] = item
            top += 1
        else:
            work.order[n_shown + position - top] = item
        position += 1
    for place in range(position):
        out[place] = work.order[place]
    for place in range(first, end):
        work.in_cell[work.items[place]] = False


@kernel
def _scores_in_force(state: Any, epoch: int, out: Any) -> None:
    """Fill ``out`` with the scores of a block after the one that is pending."""
    for item in range(out.shape[0]):
        total = state.scores[item] + state.pending[item]
        out[item] = total if epoch == state.clock[0] else 0.0


def _rank_by(propose: Any) -> Callable[..., tuple[bool, float]]:
    def rank(
        params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
    ) -> tuple[bool, float]:
        cell = _cell_now(params, draw, work)
        first, epoch = work.header[2], work.header[4]
        scores = state.scores
        if first > state.clock[1]:
            _scores_in_force(state, epoch, work.scores)
            scores = work.scores
        propose(params.epochs.rates[epoch], scores, draw, out, work.proposal)
        if cell < 0:
            return False, np.nan
        _explore(params, draw, cell, out, work)
        return True, 1.0 / (work.header[3] - first)

    return rank


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort by all that has been seen in this epoch, the pending block included."""
    for item in range(out.shape[0]):
        work.keys[item] = state.scores[item] + state.pending[item]
    sort_descending(work.keys, out, work.proposal.sort)


@kernel
def _learn(params: Any, state: Any, draw: Any, ranking: Any, values: Any, work: RTopKWork) -> None:
    cell = _cell_now(params, draw, work)
    first, epoch = work.header[2], work.header[4]
    if cell < 0 or epoch < state.clock[0]:  # an epoch that ended has been forgotten
        return
    if first > state.clock[1]:
        _scores_in_force(state, epoch, state.scores)
        state.clock[0], state.clock[1] = epoch, first
        for item in range(ranking.shape[0]):
            state.pending[item] = 0.0
    # Late feedback of an earlier block joins the pending one: it counts from the next on.
    for position in range(min(params.k, ranking.shape[0] - cell * params.k)):
        state.pending[ranking[position]] += gain_of(values[position], params.exponential)


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    if seen.explored:
        _learn(params, state, seen.draw, seen.ranking, seen.values, work)


def _bound(question: Question, rounds: float) -> float:
    constants = ftpl.constants(question.measure, question.n_items, question.max_grade)
    return ftpl.top_k_bound(constants, blocks.n_cells(question.n_items, question.k), rounds)


class RTopK(FixedListRanker):
    """RTop-kF: explore a few rounds per block, exploit a full-information learner in between.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`. The measure must have gains
        per item: SumLoss, PairwiseLoss (two grades), InversionLoss, DCG or Precision.
    subroutine
        The full-information learner: a name of SUBROUTINES.
    n_blocks
        Number of blocks K in the horizon; each must have a round for each of the ceil(m/k)
        cells. Default: the theory's best, capped at that.
    rate
        The learner's epsilon (FTPL) or eta (OnlineRank). Default: the theory's best.
    eps_scale
        Multiplies FTPL's perturbation, or divides OnlineRank's eta: below 1, the learner
        trusts its estimates more than the worst case allows.
    n_chosen
        For OnlineRank: the number of relevant items per round, if it is known.
    partition
        Cells are drawn anew in each block (``random``) or consecutive (``fixed``).
    rest
        Below an explored cell: the learner's own order (``exploit``) or a ``random`` one.
    tight
        Tune with the tight constants of :func:`keyhole.bounds.ftpl.constants`.

    Notes
    -----
    Algorithm 4 of [T16] (Algorithm 1 of [CT15] at k=1): regret O(T^(2/3)), bound B6. Block
    estimates are averages, unbiased by Lemma 18 (B7), also where k does not divide m: the
    last cell is then smaller and what is seen below it is not used. Deviations: K is the
    number of blocks (R6), which differ in length by at most one (R7) and never are too short
    (R8); exploration keeps the learner's order below the cell (R10); which cell comes when
    is shuffled, so that the small cell is at no particular time.

    References
    ----------
    [CT15] Chaudhuri & Tewari 2015. [T16] Chaudhuri 2016.

    Examples
    --------
    >>> ranker = RTopK(20, horizon=10_000, k=1)
    >>> ranker.n_blocks, round(ranker.rate, 4)
    (171, 0.0171)
    >>> impression = ranker.rank()
    >>> sorted(impression.ranking.tolist()) == list(range(20))
    True
    """

    label = "RTop-kF"
    look = Look("#0072B2", DASHED, "s")
    guarantee = Guarantee(
        2 / 3,
        f"{ANY_CROWD}, with the horizon known (2.7 times as much without)",
        "Corollaries 20 to 22 of Chaudhuri's thesis",
        _bound,
    )
    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = ("scores", "pending")

    def __init__(
        self,
        n_items: int,
        *,
        subroutine: str = "ftpl",
        n_blocks: int | None = None,
        rate: float | None = None,
        eps_scale: float = 1.0,
        n_chosen: int | None = None,
        partition: str = "random",
        rest: str = "exploit",
        tight: bool = False,
        **game: Unpack[GameFacts],
    ) -> None:
        super().__init__(n_items, **game)
        self.subroutine = SUBROUTINES[
            check_choice(subroutine, "`subroutine` of RTopK", SUBROUTINES)
        ]
        check_choice(partition, "`partition` of RTopK", ("random", "fixed"))
        check_choice(rest, "`rest` of RTopK", ("exploit", "random"))
        tight = check_flag(tight, "`tight` of RTopK")
        self.eps_scale = check_number(eps_scale, "`eps_scale` of RTopK", above=0.0)
        self.problem = TunedFor(
            self.n_items,
            self.k,
            blocks.n_cells(self.n_items, self.k),
            ftpl.constants(
                self.measure,
                self.n_items,
                self.max_grade,
                tight=tight,
            ),
            ftpl.largest_gain(self.measure, self.max_grade),
            choices.spread(self.n_items, n_chosen),
        )
        self._n_blocks = None if n_blocks is None else self._check_n_blocks(n_blocks)
        self._rate = None if rate is None else check_number(rate, "`rate` of RTopK", above=0.0)
        if self.horizon < self.problem.n_cells:
            warnings.warn(
                f"`horizon`={self.horizon} of RTopK is shorter than one exploration of all "
                f"{self.problem.n_cells} cells, so it will not explore before its end.",
                stacklevel=2,
            )
        table = epochs(self.horizon, self._tune)
        self.n_blocks, self.rate = int(table.n_blocks[0]), float(table.rates[0])
        rank = assemble(_rank_by, self.subroutine.propose, inline=True)
        self.kernel = ranker_kernel(RTopKState, RTopKWork, rank, _update, _greedy)
        self.params = RTopKParams(
            self.k,
            self.problem.n_cells,
            table,
            self.measure.exponential_gain,
            partition == "random",
            rest == "random",
        )

    def _check_n_blocks(self, n_blocks: int) -> int:
        most = self.horizon // self.problem.n_cells
        n_blocks = check_integer(n_blocks, "`n_blocks` of RTopK", at_least=1)
        if n_blocks > most:
            raise InvalidInput(
                f"`n_blocks` of RTopK must be at most {most}, so that each block of the "
                f"{self.horizon} rounds has one for each of the ceil({self.n_items}/{self.k})="
                f"{self.problem.n_cells} cells, got {n_blocks}."
            )
        return n_blocks

    def _tune(self, length: int) -> Tuning:
        most = length // self.problem.n_cells
        wanted = (
            self.subroutine.n_blocks(self.problem, length)
            if self._n_blocks is None
            # Later epochs keep the length of the blocks that was asked for.
            else self._n_blocks * length / self.horizon
        )
        n_blocks = min(max(round(wanted), 1), most)
        rate = self.subroutine.rate(self.problem, max(n_blocks, 1))
        return Tuning(n_blocks, (rate if self._rate is None else self._rate) / self.eps_scale)

    @property
    def depth(self) -> int:
        return self.k

    def chances(self, impression: Impression) -> FloatArray | None:
        """Return one over the length of the block for each item of the explored cell.

        What is seen of the learner's own lists depends on all that was seen before: no estimate
        divides by it.
        """
        if not impression.explored:
            return None
        with self.lock:
            cell = _cell_now(self.params, self.draw(impression.round), self.scratch(self.n_items))
        n_shown = min(self.k, self.n_items - cell * self.k)
        return np.full(n_shown, impression.propensity)

    def least_chance(self, impression: Impression) -> float | None:
        return impression.propensity if impression.explored else None

    def chance_given_the_past(self, impression: Impression) -> float | None:
        """Return one over the rounds that the block still has: a cell not yet shown is due."""
        if not impression.explored:
            return None
        with self.lock:
            work = self.scratch(self.n_items)
            _cell_now(self.params, self.draw(impression.round), work)
            return 1.0 / float(work.header[3] - impression.round)

    def settings_for(self, where: IntArray) -> dict[str, Any]:
        changed = super().settings_for(where)
        if self.settings["n_chosen"] is not None:
            changed["n_chosen"] = min(self.settings["n_chosen"], len(where))
        if self._n_blocks is not None:  # no more than leave a round for each cell
            most = self.horizon // blocks.n_cells(len(where), changed["k"])
            changed["n_blocks"] = min(self._n_blocks, most) or None
        return changed
