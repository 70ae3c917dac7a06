"""Which scheduling policy does a project's configuration choose?

The settings under `springhouse.scheduler.` in `project.settings` choose it. Their declarations have
the defaults.
"""

from collections.abc import Mapping

from springhouse.project.settings import (
    SCHEDULER_BASIC,
    SCHEDULER_CHOPPING,
    SCHEDULER_INHERITANCE,
    SCHEDULER_LAST_TRACK,
    SCHEDULER_PROMISES,
    SCHEDULER_TRACKS,
)
from springhouse.refresh.policy import (
    Policy,
    read_basic,
    read_chopping,
    read_inheritance,
    read_tracks,
)


def configured_policy(configuration: Mapping[str, str]) -> Policy:
    """The policy of a project.

    >>> configured_policy({"springhouse.scheduler.basic": "lookahead"}).basic.value
    'lookahead'
    """
    return Policy(
        read_basic(SCHEDULER_BASIC.read(configuration)),
        read_tracks(SCHEDULER_TRACKS.read(configuration)),
        read_inheritance(SCHEDULER_INHERITANCE.read(configuration)),
        read_chopping(SCHEDULER_CHOPPING.read(configuration)),
        heed_promises=SCHEDULER_PROMISES.read(configuration) == "heed",
        weigh_last_track=SCHEDULER_LAST_TRACK.read(configuration) == "weigh",
    )
