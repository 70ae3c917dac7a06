"""Do the new rows of an incremental refresh meet the view's expectations?

Rows that an expectation drops never get here: the compiled query leaves them out. Only new rows are
checked, because earlier refreshes checked the old rows.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from springhouse.lake.delta.tables import frame_of
from springhouse.lake.spark.quality import check_rows, with_verdicts
from springhouse.project.declarations.declaration import OnViolation, View

if TYPE_CHECKING:
    from springhouse.lake.lake import Lake


def count_violations(lake: "Lake", view: View, come: pa.Table | None) -> dict[str, int]:
    """How many new rows break each expectation; an error if one of these fails the refresh."""
    asked = [e for e in view.expectations if e.on_violation is not OnViolation.DROP_ROW]
    if not asked or come is None or not come.num_rows:
        return {}
    rows = frame_of(lake.spark.session(), come)
    return check_rows(with_verdicts(rows, asked).toArrow(), asked, view.name).violations
