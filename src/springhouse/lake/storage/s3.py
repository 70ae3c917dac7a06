"""How do Arrow, delta-rs and Spark reach S3 and compatible stores?

Arrow (files), delta-rs (commits) and Spark (s3a) each have their own settings. All of them come
from the variables that every tool for S3 knows, so the user sets nothing three times:

    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN   or the machine's own role
    AWS_REGION or AWS_DEFAULT_REGION
    AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL                       a server that is not Amazon's

A commit is safe because delta-rs writes the log entry with `If-None-Match: *` (conditional put): if
two writers write the same version, the store itself refuses the second. A store that ignores the
header is not safe for a warehouse.
"""

import os
from collections.abc import Mapping
from functools import lru_cache

from pyarrow import fs

SCHEME = "s3://"
_ANY_REGION = "us-east-1"
"""The region for a server that is not Amazon's: such a server has no regions."""


def filesystem(environment: Mapping[str, str] = os.environ) -> fs.FileSystem:
    """Arrow's file system for S3."""
    return _client(_region(environment), _endpoint(environment))


@lru_cache(maxsize=4)
def _client(region: str | None, endpoint: str | None) -> fs.FileSystem:
    """One client for all folders, so that they share its connections."""
    options: dict[str, str] = {"region": region} if region else {}
    if endpoint is not None:
        scheme, _, address = endpoint.rpartition("://")
        options |= {"scheme": scheme or "https", "endpoint_override": address.rstrip("/")}
    return fs.S3FileSystem(**options)


def delta_options(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The S3 options for delta-rs.

    >>> delta_options({"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"})["aws_allow_http"]
    'true'
    """
    options = {"aws_conditional_put": "etag"}
    if region := _region(environment):
        options["aws_region"] = region
    if endpoint := _endpoint(environment):
        options |= {"aws_endpoint": endpoint}
        options |= {"aws_allow_http": "true"} if endpoint.startswith("http://") else {}
    return options


def spark_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The S3 settings for Spark, so that it accepts the same addresses as Arrow and delta-rs."""
    settings = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        # Hadoop 3.5's default reads ahead with a library that needs a dozen others.
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
    }
    if region := _region(environment):
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region
    if endpoint := _endpoint(environment):
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(
                not endpoint.startswith("http://")
            ).lower(),
        }
    return settings


def spark_credentials(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The credentials for a Spark that already runs; one that we start inherits the variables."""
    names = {
        "AWS_ACCESS_KEY_ID": "spark.hadoop.fs.s3a.access.key",
        "AWS_SECRET_ACCESS_KEY": "spark.hadoop.fs.s3a.secret.key",
        "AWS_SESSION_TOKEN": "spark.hadoop.fs.s3a.session.token",
    }
    return {key: environment[name] for name, key in names.items() if environment.get(name)}


def _endpoint(environment: Mapping[str, str]) -> str | None:
    return environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")


def _region(environment: Mapping[str, str]) -> str | None:
    given = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return given or (_ANY_REGION if _endpoint(environment) else None)
