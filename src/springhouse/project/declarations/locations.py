"""When do two texts name one folder?"""

from pathlib import Path


def location(text: str, relative_to: Path) -> str:
    """The normal form of a path or URI: absolute, without links, dots and a slash at its end.

    >>> location("s3a://bucket/out/", Path("/shop")), location("/data/../out/", Path("/shop"))
    ('s3://bucket/out', '/out')
    """
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if text.startswith("s3a://"):
        text = "s3://" + text.removeprefix("s3a://")
    if "://" in text:
        return text.rstrip("/")
    return str((relative_to / text).resolve())
