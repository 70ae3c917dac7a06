"""All errors at once, each with its file, line and hint."""


def test_a_good_project_is_one_line(springhouse, shop):
    answer = springhouse("check", "--project", shop)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "shop: 1 table, 1 view, 1 flow, no errors\n"


def test_every_error_is_printed_and_counted(springhouse, shop):
    (shop / "transformations" / "wrong.sql").write_text(
        "CREATE MATERIALIZED VIEW one AS SELECT * FROM order;\n"
        "CREATE MATERIALIZED VIEW two TBLPROPERTIES ('springhouse.staleness' = 'soon')\n"
        "  AS SELECT * FROM orders;\n"
    )
    answer = springhouse("check", "-p", shop)
    assert (answer.code, answer.out) == (1, "")
    assert "transformations/wrong.sql:1: " in answer.err
    assert '  hint: Did you mean the table "orders"?\n' in answer.err
    assert "transformations/wrong.sql:2: " in answer.err
    assert answer.err.endswith("error: 2 errors in this project\n")


def test_what_a_user_wrote_is_not_taken_for_markup(springhouse, shop):
    (shop / "transformations" / "wrong.sql").write_text("CREATE FLOW [red] AS 1")
    answer = springhouse("check", "-p", shop)
    assert answer.code == 1
    assert answer.err.endswith("in this project\n")


def test_the_project_may_be_a_folder_above(springhouse, shop, monkeypatch):
    monkeypatch.chdir(shop / "data" / "orders")
    assert springhouse("check").out.startswith("shop: ")


def test_no_project_far_and_wide(springhouse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = springhouse("check")
    assert answer.code == 1
    assert "there is no spark-pipeline.yml in this folder or above it" in answer.err
    assert "springhouse init NAME" in answer.err
