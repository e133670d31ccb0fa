"""Checks of arguments."""

import math

import pytest

from archive.argument_checks import require_at_least
from archive.errors import UsageError


def test_the_bound_itself_and_arguments_left_out_pass():
    require_at_least(1, members=1, epochs=7, threads=None)


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (0.5, "0.5"), (math.nan, "nan")])
def test_a_smaller_argument_is_named_with_its_value(value, shown):
    with pytest.raises(UsageError, match=rf"^epochs must be >= 1, got {shown}$"):
        require_at_least(1, members=2, epochs=value)
