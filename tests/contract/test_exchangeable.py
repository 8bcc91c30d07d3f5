"""The contract suite: relabelling the items relabels the rankings, for every row.

The draws are relabelled with the items, which no game does: all kernels would be compiled again for
this alone. That compiled kernels give the bits of these is in ``test_digests.py``.
"""

import pytest

from keyhole.checks.rankers import check_items_are_exchangeable
from keyhole.worlds.flips import Flips
from tests.contract.few_lists import EQUAL, SINGLE
from tests.contract.test_contextual import PARAMETERS, _make
from tests.contract.test_contracts import EXAMPLES, check_or_exempt

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(("row", "label", "make", "world"), EXAMPLES)
def test_items(row, label, make, world):
    ranker = make()
    crowd = world or Flips(ranker.n_items, n_relevant=max(1, ranker.n_items // 3))
    check_or_exempt(row, label, check_items_are_exchangeable, ranker, crowd)


@pytest.mark.parametrize(("row", "options"), PARAMETERS)
def test_documents(row, options):
    for world in (EQUAL, SINGLE):
        check_items_are_exchangeable(_make(row, options), world, 60)
