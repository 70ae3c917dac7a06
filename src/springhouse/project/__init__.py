"""What was declared: a project's folder in, one frozen and checked `Project` out."""

from springhouse.project.graph import Graph
from springhouse.project.load import load
from springhouse.project.sources import source

__all__ = ["Graph", "load", "source"]
