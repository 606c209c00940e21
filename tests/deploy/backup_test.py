"""The restore drill: tune, back up while the server works, destroy the store, restore, look up the same best."""

import fcntl
import os

import pytest

from conftest import MATMUL, REPOSITORY, wait_until

BACKUP = REPOSITORY / "deploy/backup/hone-backup"


def best(site):
    """What identifies the best kernel; not, for example, how long ago it was measured."""
    found = site.hone("best", *MATMUL)["best"]
    return {key: found[key] for key in ("record", "latency_ns", "trace", "artifact_digest", "measured_unix_ms")}


def begin_job(site):
    """Starts a job that does not end before the test, and waits for its first results."""
    job = site.hone("tune", "matmul", "m=64", "n=64", "k=64", "--trials", "2000", "--detach")["jobs"][0]["job"]
    wait_until(lambda: site.hone("jobs", "show", job)["trials"] > 0, "the job has results")
    return job


def test_the_restore_drill(site):
    site.start_server()
    site.start_worker()
    site.hone("tune", *MATMUL, "--trials", "8")
    before = best(site)
    assert before["latency_ns"] > 0
    job = begin_job(site)

    folder = site.folder / "backups"
    folder.mkdir()
    backup = [BACKUP, "--server", site.address, "--to", folder]
    site.run(*backup)
    assert site.hone("jobs", "show", job)["state"] == "running", "the backup was made while a job ran"
    made, = folder.glob("hone-*.db")
    assert made.stat().st_mode & 0o077 == 0, "only the owner may read a backup"

    site.stop("worker")
    site.stop("server", how=9)
    store = site.folder / "hone.db"
    for log in site.folder.glob("hone.db-*"):
        log.unlink()
    store.write_bytes(b"\x55" * 65536)
    refused = site.run("hone-server", "--listen", site.address, "--store", store, code=1)
    assert "restore a backup" in refused

    restored = site.run("hone-server", "restore", "--store", store, "--from", made)
    assert "the old store is kept as" in restored
    site.start_server()
    assert best(site) == before
    site.start_worker()
    wait_until(lambda: site.hone("jobs", "show", job)["trials"] > 0, "the job of the backup continues")
    site.hone("jobs", "cancel", job)


def test_old_backups_are_removed_and_other_files_stay(site):
    site.start_server()
    folder = site.folder / "backups"
    folder.mkdir()
    for name in ("hone-20200101T000000Z.db", "hone-20210101T000000Z.db", "hone-20220101T000000Z.db"):
        (folder / name).write_text("old")
    for name in ("hone-20200101T000000Z.dump", "hone-notes.db", "mine.db", "hone-2020.db.gz"):
        (folder / name).write_text("not a backup of this kind")
    backup = [BACKUP, "--server", site.address, "--to", folder]

    # A run that fails removes nothing.
    site.run(*backup[:2], "unix:/nowhere", *backup[3:], "--keep", 1, code=4)
    assert len(list(folder.glob("hone-*Z.db"))) == 3
    (folder / ".hone-20200101T000000Z.part").write_text("of a run that was killed")
    out = site.run(*backup, "--keep", 2)
    # Nothing stays that belongs to the user of this run and could keep another user out.
    assert not list(folder.glob(".*"))
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert "another hone-backup" in site.run(*backup, code=1)
    os.close(held)
    assert out.count("hone-backup: removed") == 2
    left = sorted(path.name for path in folder.glob("hone-*Z.db"))
    assert left[0] == "hone-20220101T000000Z.db" and len(left) == 2
    assert (folder / "hone-20200101T000000Z.dump").exists() and (folder / "hone-notes.db").exists()
    assert (folder / "mine.db").exists() and (folder / "hone-2020.db.gz").exists()


@pytest.mark.parametrize("words, code, text", [
    ([], 2, "--to is missing"),
    (["--to", "backups"], 2, "not an absolute path"),
    (["--to", "/tmp", "--keep", "0"], 2, "not a number of backups"),
    (["--to", "/tmp", "--keep"], 2, "needs a value"),
    (["--to", "/tmp", "--age", "3"], 2, "unknown option --age"),
    (["--to", "/tmp", "--store", "/var/lib/hone/hone.db"], 2, "copied by its server"),
    (["--to", "/no/such/folder"], 1, "there is no folder"),
])
def test_wrong_usage_says_what_is_wrong(site, words, code, text):
    assert text in site.run(BACKUP, *words, code=code)


def test_the_restore_drill_with_postgresql(site, database):
    administer = lambda sql: site.run("psql", database("postgres"), "-c", sql)
    administer("CREATE DATABASE store")
    store = database("store")
    site.start_server(store=store)
    site.start_worker()
    site.hone("tune", *MATMUL, "--trials", "8")
    before = best(site)
    job = begin_job(site)
    folder = site.folder / "backups"
    folder.mkdir()
    site.run(BACKUP, "--store", store, "--to", folder)
    made, = folder.glob("hone-*.dump")
    site.hone("jobs", "cancel", job)
    site.stop("worker")
    site.stop("server")

    administer("DROP DATABASE store")
    administer("CREATE DATABASE store")
    site.run("pg_restore", "--exit-on-error", "--dbname", store, made)
    site.start_server(store=store)
    assert best(site) == before


