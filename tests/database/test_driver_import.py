"""The import of the driver for the command line: lazy tables are those of the driver."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest
from neo4j import time
from neo4j._codec.packstream import v1

from archive.database import driver

# Prints parts of the tables, which `tables` computes from the driver as it is.
LAZY = """
import sys
from archive.database import driver
driver.hide_optional_packages()
driver.hide_arrays()
import neo4j
from neo4j import time
from neo4j._codec.packstream import v1
for table in (time._DAYS_IN_MONTH, time._DAYS_IN_YEAR, time._IS_LEAP_YEAR, v1.PACKED_UINT_16, v1.UNPACKED_UINT_16):
    assert isinstance(table, driver._Computed) and len(table) < 50, table
for table, key in ((time._DAYS_IN_MONTH, (10_000, 1)), (time._DAYS_IN_YEAR, 0), (v1.PACKED_UINT_16, 65_536)):
    try: table[key]
    except KeyError: continue
    raise AssertionError(key)
import numpy, pandas
assert "range" not in vars(time) and numpy.arange(3).sum() == 3 and len(pandas.DataFrame({"a": [1]})) == 1
"""

TABLES = """
days = [time._DAYS_IN_MONTH[year, month] for year in (1, 1900, 2000, 2024, 9999) for month in range(1, 13)]
years = [(time._DAYS_IN_YEAR[year], time._IS_LEAP_YEAR[year]) for year in (1, 1900, 2000, 2024, 9999)]
packed = [v1.PACKED_UINT_16[number] for number in (0, 255, 256, 65_535)]
tables = days, years, packed, [v1.UNPACKED_UINT_16[each] for each in packed]
dates = [str(time.Date(2024, 2, 29) + time.Duration(years=1)), str(time.DateTime(1999, 12, 31, 23, 59)), time.Date.max]
shown = repr((tables, dates))
"""


def test_lazy_tables_have_the_values_of_the_driver():
    names = {"time": time, "v1": v1}
    exec(TABLES, names)
    code = f"{LAZY}{TABLES}print(shown)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == names["shown"], done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "_IS_LEAP_YEAR = {year: year % 4 == 0 for year in range(1, 10_000)}",
        "_DAYS_IN_YEAR = {year: 365 for year in range(1, 10_000)}\nfirst = _DAYS_IN_YEAR[1]",
        "first = [2 * year for year in range(1, 10_000)][0]",
    ],
)
def test_a_driver_of_another_make_is_imported_as_it_is(text):
    class Loader:
        def get_code(self, name):
            return compile(text, name, "exec")

    module = ModuleType("neo4j.time")
    plain = {}
    driver._LazyTables(Loader()).exec_module(module)
    exec(text, plain)
    assert {name: value for name, value in vars(module).items() if not name.startswith("__")} == {
        name: value for name, value in plain.items() if not name.startswith("__")
    }
