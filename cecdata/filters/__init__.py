"""The filters: parallel modules and the one table that names them.

A new filter needs one new module with `FILTER`, and one entry here.
"""

from __future__ import annotations

from collections.abc import Mapping

from cecdata.common.plugins import import_object
from cecdata.common.settings import require, require_known
from cecdata.config import Config
from cecdata.filters import cosine
from cecdata.filters.base import DISTANCE, Filter

# A pair that several rules reject gets the reason of the first.
FILTERS: Mapping[str, Filter] = {"levenshtein": DISTANCE, "cosine": cosine.FILTER}


def open_filters(config: Config) -> dict[str, Filter]:
    """Return the filters of a configuration, in the order of the table.

    Those of a module of the user, "module:FILTER", come last. Raises UsageError for a name that is
    not in the table, and for a module without a filter of that name.
    """
    modules = {name: import_object(name, "filter") for name in config.filters if ":" in name}
    for name in config.filters:
        require_known("filter", name, (*FILTERS, *modules))
    for name, filter_of in modules.items():
        rule = "a Filter (see cecdata.filters.base)"
        require(isinstance(filter_of, Filter), "filters", name, rule)
    return {
        name: filter_of
        for name, filter_of in {**FILTERS, **modules}.items()
        if name in config.filters
    }
