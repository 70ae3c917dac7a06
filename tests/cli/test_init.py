"""A new project works at once, and `init` overwrites no file."""

from springhouse.project.load import load


def test_the_new_project_is_well_declared(shop):
    project = load(shop)
    assert project.name == "shop"
    assert set(project.tables) == {"orders"}
    assert project.views["revenue_by_country"].promise.staleness_seconds == 10


def test_it_tells_the_next_commands(springhouse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = springhouse("init", "shop")
    assert "cd shop\n" in answer.out
    assert "springhouse run --once" in answer.out
    assert all(len(line) <= 80 for line in answer.out.splitlines())


def test_an_existing_folder_is_left_alone(springhouse, shop):
    pipeline = shop / "spark-pipeline.yml"
    pipeline.write_text("mine")
    answer = springhouse("init", shop)
    assert answer.code == 1
    assert "exists already" in answer.err
    assert pipeline.read_text() == "mine"


def test_a_name_that_no_project_can_have(springhouse, tmp_path):
    answer = springhouse("init", tmp_path / "my shop")
    assert answer.code == 1
    assert '"my shop" can\'t be the name of a project' in answer.err
    assert not (tmp_path / "my shop").exists()
