"""Springhouse: a streaming warehouse on Spark, whose tables and views stay as fresh as promised."""

from springhouse.errors import SpringhouseError
from springhouse.house import House, open
from springhouse.lake.sources.contract import Range, SourceContext
from springhouse.project.sources import source

__version__ = "0.1.0"

__all__ = ["House", "Range", "SourceContext", "SpringhouseError", "open", "source"]
