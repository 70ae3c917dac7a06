import pytest

from springhouse.project.declarations.names import Names, did_you_mean, did_you_mean_the

SHOP = Names("main", "shop")


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("Orders", "orders"),
        ("`Orders`", "orders"),
        ("shop.orders", "orders"),
        ("MAIN.Shop.orders", "orders"),
        ("other.orders", "other.orders"),
        ("main.other.orders", "other.orders"),
        ("lake.shop.orders", "lake.shop.orders"),
        ("`my table`", "my table"),
        ("shop.`a``b`", "a`b"),
    ],
)
def test_one_table_has_one_name(written: str, normal: str) -> None:
    assert SHOP.parse(written) == normal


def test_a_hint_names_the_nearest_candidate_and_its_kind() -> None:
    assert did_you_mean_the("order", {"orders": "table"}) == 'Did you mean the table "orders"?'
    assert did_you_mean("springhouse.trakcs", ["springhouse.tracks"]) == (
        'Did you mean "springhouse.tracks"?'
    )
    assert did_you_mean_the("zebra", {"orders": "table"}) is None
