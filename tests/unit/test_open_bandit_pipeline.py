"""Dictionaries of the Open Bandit Pipeline; tests/ecosystem has the pipeline itself."""

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.formats import from_open_bandit_pipeline, to_open_bandit_pipeline
from keyhole.data.bandit.log import BanditLog
from keyhole.ecosystem.open_bandit import in_own_position

LOG = BanditLog.of([[0.5], [0.1]], [1, 0], [0, 1], [0.5, 0.25], n_actions=4, positions=[0, 2])


def test_a_log_goes_round():
    again = from_open_bandit_pipeline(to_open_bandit_pipeline(LOG), feature_names=["age"])
    assert (again.n_actions, again.feature_names) == (4, ("age",))
    for name in ("contexts", "actions", "rewards", "propensities", "positions"):
        assert np.array_equal(getattr(again, name), getattr(LOG, name)), name


def test_what_is_missing_is_told():
    feedback = to_open_bandit_pipeline(LOG)
    for name in ("context", "action", "reward", "pscore"):
        with pytest.raises(InvalidInput, match=f"bandit_feedback must have '{name}', got none"):
            from_open_bandit_pipeline({**feedback, name: None})
    with pytest.raises(InvalidInput, match="a row for each of the 4 actions, got 3"):
        to_open_bandit_pipeline(LOG, action_context=np.eye(3))


def test_tables_must_have_the_positions_of_the_log():
    table = np.arange(24.0).reshape(2, 4, 3)
    assert in_own_position(LOG, table).tolist() == [[0, 3, 6, 9], [14, 17, 20, 23]]
    with pytest.raises(InvalidInput, match="must have the 3 positions of the log, got 2"):
        in_own_position(LOG, table[:, :, :2])
    with pytest.raises(InvalidInput, match="rows by actions by positions"):
        in_own_position(LOG, table[:, :3])
