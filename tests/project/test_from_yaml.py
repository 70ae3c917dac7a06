from pathlib import Path

import pytest

from springhouse.errors import DeclarationError
from springhouse.project.from_yaml import read_pipeline_file

GOOD = """\
name: shop
storage: file:///tmp/shop
catalog: main
schema: shop
configuration:
  springhouse.tracks: "2"
  spark.sql.shuffle.partitions: "4"
libraries:
  - glob:
      include: sql/**
  - glob: {include: one.py}
"""


def written(folder: Path, text: str, *files: str) -> Path:
    (folder / "spark-pipeline.yml").write_text(text)
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    return folder


def test_everything_that_spark_pipelines_reads_is_read(tmp_path: Path) -> None:
    files = ("sql/b.sql", "sql/a.sql", "sql/deep/er/c.py", "sql/__pycache__/c.pyc", "one.py", "two")
    said = read_pipeline_file(written(tmp_path, GOOD, *files))
    assert said.errors == []
    assert (said.name, said.storage) == ("shop", "file:///tmp/shop")
    assert (said.catalog, said.database) == ("main", "shop")
    assert {key: value.value for key, value in said.configuration.items()} == {
        "springhouse.tracks": "2",
        "spark.sql.shuffle.partitions": "4",
    }
    shown = [path.relative_to(tmp_path).as_posix() for path in said.files]
    assert shown == ["one.py", "sql/a.sql", "sql/b.sql", "sql/deep/er/c.py"]


def test_a_file_that_two_globs_name_is_read_once(tmp_path: Path) -> None:
    text = "name: a\nstorage: b\nlibraries: [{glob: {include: x/**}}, {glob: {include: x/a.sql}}]\n"
    assert len(read_pipeline_file(written(tmp_path, text, "x/a.sql")).files) == 1


def test_without_a_pipeline_file_there_is_a_hint_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as caught:
        read_pipeline_file(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: there is no spark-pipeline.yml here\n"
        "  hint: `springhouse init NAME` makes a new project."
    )


def test_two_pipeline_files_are_one_too_many(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "spark-pipeline.yaml")
    with pytest.raises(DeclarationError) as caught:
        read_pipeline_file(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: both spark-pipeline.yml and spark-pipeline.yaml are here\n"
        "  hint: Delete one of them."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: [",
            (
                "spark-pipeline.yml:1: this is not YAML: expected the node content, but found "
                "'<stream end>'"
            ),
        ),
        (
            "",
            (
                "spark-pipeline.yml:1: a pipeline file has a name and a storage\n"
                "  hint: Write:\n    name: shop\n    storage: storage"
            ),
        ),
    ],
)
def test_what_is_no_pipeline_file_at_all(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        read_pipeline_file(written(tmp_path, text))
    assert str(caught.value) == message


LIBRARIES = (
    "\n  hint: Write them as:\n    libraries:\n      - glob:\n          include: transformations/**"
)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("libaries: []", '3: unknown key "libaries"\n  hint: Did you mean "libraries"?'),
        (
            "zebra: 1",
            (
                '3: unknown key "zebra"\n  hint: The keys are name, storage, catalog, database'
                ", schema, configuration, libraries; everything else goes under configuration."
            ),
        ),
        ("name: again", '3: "name" is given twice\n  hint: The first is at spark-pipeline.yml:1.'),
        (
            "catalog: 7",
            ('3: "catalog" takes a text, and 7 is a number\n  hint: Quote it: catalog: "7"'),
        ),
        (
            "configuration:\n  springhouse.tracks: 2",
            (
                '4: "springhouse.tracks" takes a text, and 2 is '
                'a number\n  hint: Quote it: springhouse.tracks: "2"'
            ),
        ),
        (
            "configuration:\n  a: true",
            ('4: "a" takes a text, and true is true or false\n  hint: Quote it: a: "true"'),
        ),
        ("configuration:\n  a:\n    b: c", '5: "a" takes a text'),
        (
            "configuration: x",
            ('3: "configuration" takes keys and values\n  hint: Write a.key: "value"'),
        ),
        (
            'configuration:\n  springhouse.track: "2"',
            (
                "4: unknown configuration key "
                '"springhouse.track"\n  hint: Did you mean "springhouse.tracks"?'
            ),
        ),
        ("libraries: sql", f'3: "libraries" takes a list of globs{LIBRARIES}'),
        ("libraries: [sql/**]", f"3: a library is a glob with an include{LIBRARIES}"),
        ("libraries: [{file: x}]", f"3: a library is a glob with an include{LIBRARIES}"),
        (
            "libraries: [{glob: {include: sql/**/*.sql}}]",
            (
                '3: "sql/**/*.sql" is not a glob that '
                "pipelines know\n  hint: Write a file (sql/orders.sql) or a folder "
                "(transformations/**), "
                "from this folder."
            ),
        ),
        (
            "libraries: [{glob: {include: sql}}]",
            ('3: there is no file "sql"\n  hint: For a whole folder write sql/**'),
        ),
        ("libraries: [{glob: {include: gone.sql}}]", '3: there is no file "gone.sql"'),
        (
            "libraries: [{glob: {include: notes/**}}]",
            ('3: "notes/n.txt" is neither SQL nor Python\n  hint: Move it elsewhere.'),
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, more: str, message: str) -> None:
    text = f"name: shop\nstorage: storage\n{more}\n"
    said = read_pipeline_file(written(tmp_path, text, "sql/a.sql", "notes/n.txt"))
    assert [str(error) for error in said.errors] == [f"spark-pipeline.yml:{message}"]


def test_everything_that_is_missing_is_reported_at_once(tmp_path: Path) -> None:
    said = read_pipeline_file(written(tmp_path, "database: shop\n"))
    assert [str(error) for error in said.errors] == [
        'spark-pipeline.yml:1: the key "name" is missing\n  hint: Write name: shop',
        'spark-pipeline.yml:1: the key "storage" is missing\n  hint: Write storage: storage',
    ]
