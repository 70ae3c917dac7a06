"""status, plan, explain, history and vacuum before the first run: no Spark needed."""

import json

import pytest


def asked(springhouse, *arguments):
    answer = springhouse(*arguments, "--json")
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out)


@pytest.fixture
def no_spark(shop):
    yield
    assert not (shop / "storage" / "logs" / "spark.log").exists()


@pytest.mark.usefixtures("no_spark")
class TestBeforeTheFirstRun:
    def test_status(self, springhouse, shop):
        orders, revenue = asked(springhouse, "status", "-p", shop)
        assert (orders["name"], orders["kind"], orders["state"]) == ("orders", "table", "waiting")
        assert (revenue["state"], revenue["promise_seconds"]) == ("needs orders", 10)
        assert revenue["version"] is None

    def test_status_for_people(self, springhouse, shop):
        header, orders, revenue = springhouse("status", "-p", shop).out.splitlines()
        words = "table rows state lag staleness kept cost tracks next refreshed"
        assert header.split() == words.split()
        assert orders.startswith("orders ")
        assert "needs orders" in revenue
        assert "of 10 s" in revenue

    def test_plan(self, springhouse, shop):
        (planned,) = asked(springhouse, "plan", "-p", shop)
        assert planned["table"] == "orders"
        assert planned["reason"] == "new records"

    def test_plan_for_people(self, springhouse, shop):
        answer = springhouse("plan", "-p", shop)
        assert answer.out.splitlines()[1].split()[:3] == ["1", "orders", "now"]

    def test_nothing_to_do(self, springhouse, idle_shop):
        assert springhouse("plan", "-p", idle_shop).out == "everything is up to date\n"
        assert asked(springhouse, "plan", "-p", idle_shop) == []

    def test_explain(self, springhouse, shop):
        told = asked(springhouse, "explain", "revenue_by_country", "-p", shop)
        assert told["inputs"] == ["orders"]
        assert told["promise"]["staleness_seconds"] == 10
        assert told["declared_at"] == "transformations/revenue_by_country.sql:2"

    def test_explain_for_people(self, springhouse, shop):
        told = springhouse("explain", "Revenue_By_Country", "-p", shop).out
        assert told.startswith("revenue_by_country, a view of transformations/")
        assert "promise   staleness 10 s, strictly consistent, priority 10\n" in told
        assert "stored    nothing yet\n" in told
        assert "GROUP BY country" in told
        assert "read_files" in springhouse("explain", "orders", "-p", shop).out

    def test_history(self, springhouse, shop):
        assert asked(springhouse, "history", "orders", "-p", shop) == []
        answer = springhouse("history", "orders", "-p", shop)
        assert (answer.code, answer.out) == (0, "")
        assert answer.err == 'nothing was committed to "orders" yet\n'

    def test_vacuum(self, springhouse, shop):
        assert springhouse("vacuum", "-p", shop).out == "nothing to delete\n"
