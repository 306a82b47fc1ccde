"""The store: migrations, leases, damage, a full disk."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from npusmith.errors import NpusmithError
from npusmith.store import database
from npusmith.store.database import FILE, Store, myself, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "run", create=True)


def fill(store: Store, items: int = 1, samples: int = 2) -> None:
    for n in range(items):
        store.add_item(f"t{n}", "digest", "{}", "", samples, 1)


def do(store: Store, owner: str = "someone", most: int = 1) -> None:
    for unit in store.claim(owner, most):
        store.propose(unit.item, unit.sample, f"c{unit.sample}", "{}", "body")
        assert store.finish(unit.id, f"k{unit.id}", f"c{unit.sample}", "data", "detail")


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NpusmithError) as caught:
        open_store(tmp_path)
    assert caught.value.code == "run-missing"


def test_items_and_units_are_added_once_and_grow(store: Store) -> None:
    fill(store, items=3)
    fill(store, items=3)
    assert store.counts() == (6, 6)
    fill(store, items=3, samples=5)
    assert store.counts() == (15, 15)
    assert store.add_item("t0", "other", "{}", "", 9, 1) == "digest"
    assert store.counts() == (15, 15)


def test_a_skipped_item_has_no_units(store: Store) -> None:
    store.add_item("t", "d", "{}", "needs an NPU", 5, 1)
    assert store.counts() == (0, 0)
    assert list(store.items()) == ["{}"]


def test_a_unit_is_leased_to_one_owner(store: Store) -> None:
    fill(store, items=2)
    first = store.claim("machine-a 1 1", 3)
    second = store.claim("machine-b 1 1", 3)
    assert {unit.id for unit in first} & {unit.id for unit in second} == set()
    assert (len(first), len(second)) == (3, 1)


def test_a_lease_ends_with_its_time_or_its_process(store: Store) -> None:
    fill(store)
    (unit,) = store.claim("machine-a 1 1", 1, lease=-1)  # over already
    assert store.claim("machine-b 1 1", 1)[0].id == unit.id
    gone = subprocess.run(
        [sys.executable, "-c", "from npusmith.store.database import myself; print(myself())"],
        env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    (other,) = store.claim(gone, 1)
    assert other.id != unit.id
    assert store.claim(myself(), 5)[0].id == other.id


def test_a_living_process_keeps_its_lease(store: Store) -> None:
    fill(store)
    assert len(store.claim(myself(), 5)) == 2
    assert store.claim("machine-b 1 1", 5) == []
    store.beat(myself())
    store.release(myself())
    assert len(store.claim("machine-b 1 1", 5)) == 2


def test_a_unit_is_finished_once_and_by_the_candidate_that_is_stored(store: Store) -> None:
    fill(store)
    (unit,) = store.claim("a", 1)
    assert store.propose("t0", 0, "c0", "{}", "body")
    assert not store.propose("t0", 0, "c1", "{}", "another")
    assert not store.finish(unit.id, "k", "c1", "data", "detail")
    assert store.finish(unit.id, "k", "c0", "data", "detail")
    assert not store.finish(unit.id, "k2", "c0", "data", "detail")
    assert store.counts() == (2, 1)
    assert [(kept.key, kept.data) for kept in store.records()] == [("k", "data")]
    assert (store.candidate("c0"), store.detail("k")) == ("body", "detail")
    assert store.verify() == []


def test_an_attempt_that_failed_opens_the_unit_again(store: Store) -> None:
    fill(store)
    (unit,) = store.claim("a", 1)
    store.fail(unit.id, "b")  # not its owner
    assert store.claim("b", 1)[0].id != unit.id
    store.fail(unit.id, "a")
    again = store.claim("a", 1)[0]
    assert (again.id, again.attempts) == (unit.id, 1)


def test_a_second_trial_waits_for_the_candidate_of_the_first(store: Store) -> None:
    store.add_item("t", "d", "{}", "", 1, 3)
    assert [unit.trial for unit in store.claim("a", 9)] == [0]
    store.propose("t", 0, "c", "{}", "body")
    assert [unit.trial for unit in store.claim("a", 9)] == [1, 2]


def test_an_older_layout_is_migrated_with_its_rows(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    link = sqlite3.connect(folder / FILE)
    link.executescript(database._migrations("migrations")[0])
    link.execute("PRAGMA user_version = 1")
    link.execute(f"PRAGMA application_id = {database._MARK}")
    link.execute("INSERT INTO items VALUES ('t', 1, 'd', '', '{}')")
    link.execute("INSERT INTO units (item, sample, trial) VALUES ('t', 0, 0)")
    link.commit()
    link.close()
    with open_store(folder) as store:
        assert store.counts() == (1, 1)
        do(store)
        assert store.verify() == []
    check = sqlite3.connect(folder / FILE)
    newest = len(database._migrations("migrations"))
    assert check.execute("PRAGMA user_version").fetchone() == (newest,)


def test_a_newer_layout_is_refused_and_left_alone(tmp_path: Path, store: Store) -> None:
    link = sqlite3.connect(store.path)
    link.execute("PRAGMA user_version = 99")
    link.commit()
    with pytest.raises(NpusmithError, match="layout 99") as caught:
        open_store(store.path.parent)
    assert caught.value.code == "store-newer"
    assert link.execute("PRAGMA user_version").fetchone() == (99,)


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    link = sqlite3.connect(tmp_path / FILE)
    link.execute("CREATE TABLE other (x)")
    link.commit()
    with pytest.raises(NpusmithError) as caught:
        open_store(tmp_path)
    assert caught.value.code == "run-missing"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 1000)
    with pytest.raises(NpusmithError) as caught:
        open_store(tmp_path)
    assert caught.value.code == "store-damaged"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE records SET data = 'better'", "its text is not what was written"),
        ("UPDATE records SET detail = x'00'", "its text is not what was written"),
        ("UPDATE units SET done = 1", "done without a record"),
        ("UPDATE units SET done = 0", "not done"),
        ("DELETE FROM proposals", "without a candidate"),
        ("DELETE FROM candidates", "refers to nothing"),
    ],
)
def test_verify_finds_what_was_changed(store: Store, change: str, words: str) -> None:
    fill(store)
    do(store)
    assert store.verify() == []
    link = sqlite3.connect(store.path)
    link.execute(change)
    link.commit()
    link.close()
    assert words in " ".join(store.verify())


def test_verify_finds_a_page_that_was_overwritten(store: Store) -> None:
    store.add_item("t0", "digest", "x" * 50_000, "", 1, 1)
    store.replace("blob", "y" * 200_000)
    store._link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray(store.path.read_bytes())
    for at in range(4096 * 2, len(whole), 4096):
        whole[at : at + 8] = b"\xff" * 8
    store.path.write_bytes(whole)
    store._link.close()
    with open_store(store.path.parent) as again:
        (wrong,) = again.verify()
    assert "malformed" in wrong


FULL = """
import resource, sys
from pathlib import Path
from npusmith.errors import NpusmithError
from npusmith.store.database import open_store
with open_store(Path(sys.argv[1])) as store:
    size = max(path.stat().st_size for path in Path(sys.argv[1]).iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000,) * 2)
    import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    done = 0
    try:
        for unit in store.claim("a", 400):
            store.propose(unit.item, unit.sample, f"c{unit.id}", "{}", "body")
            if store.finish(unit.id, f"k{unit.id}", f"c{unit.id}", "x" * 5000, "{}"):
                done += 1
                print(done, flush=True)
    except NpusmithError as error:
        print(error.code, flush=True)
"""


def test_a_full_disk_is_named_and_loses_no_record(store: Store) -> None:
    fill(store, samples=400)
    store._link.close()
    assert resource.RLIMIT_FSIZE  # the limit of one file stands for the disk
    told = subprocess.run(
        [sys.executable, "-c", FULL, str(store.path.parent)],
        env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert told[-1] == "disk-full"
    with open_store(store.path.parent) as again:
        total, left = again.counts()
        assert total - left == int(told[-2])
        assert again.verify() == []
        do(again, most=1)
