import pytest

from springhouse.project.declarations.declaration import Place
from springhouse.project.settings import SETTINGS, check_setting

HERE = Place("spark-pipeline.yml", 4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("springhouse.tracks", "2"),
        ("springhouse.retention", "7 days"),
        ("springhouse.retry.seconds", "0.5"),
        ("springhouse.spark.remote", "sc://localhost"),
        ("spark.sql.shuffle.partitions", "anything is Spark's business"),
    ],
)
def test_a_known_key_with_a_fitting_value_is_fine(key: str, value: str) -> None:
    assert check_setting(key, value, HERE) is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "springhouse.track",
            "2",
            (
                'spark-pipeline.yml:4: unknown configuration key "springhouse.track"\n'
                '  hint: Did you mean "springhouse.tracks"?'
            ),
        ),
        (
            "springhouse.tracks",
            "many",
            (
                'spark-pipeline.yml:4: "springhouse.tracks" is "many", which is not a '
                "whole number\n"
                "  hint: It means: how many refreshes may run at once."
            ),
        ),
        (
            "springhouse.retention",
            "long",
            (
                'spark-pipeline.yml:4: "springhouse.retention" is "long", which is not a duration\n'
                "  hint: It means: how long vacuum keeps old files."
            ),
        ),
    ],
)
def test_what_is_wrong_is_said(key: str, value: str, message: str) -> None:
    assert str(check_setting(key, value, HERE)) == message


def test_every_setting_says_what_it_means() -> None:
    assert all(each.key.startswith("springhouse.") and each.meaning for each in SETTINGS)
