"""What can be wrong with a database: one clear error each, and what is there stays as it was."""
import os
import resource
import shutil
import signal
import sqlite3
import time
import unittest

from sweep_harness import SweepTest

NOBODY = 65534


def as_nobody():
    """Root may write anywhere."""
    if os.geteuid() == 0:
        os.setuid(NOBODY)


class Database(SweepTest):
    def stays(self, status, message, *arguments, name="a.db", **options):
        before = (self.folder / name).read_bytes()
        self.refuses(status, message, name, *arguments, **options)
        self.assertEqual((self.folder / name).read_bytes(), before)
        self.assertEqual(self.files(), [name])

    def change(self, statement):
        connection = sqlite3.connect(self.folder / "a.db")
        connection.execute(statement)
        connection.commit()
        connection.close()

    def test_finished_sweep_is_one_file_and_stays(self):
        self.sweep("a.db", "--points", 40)
        self.stays(2, "a.db: exists already; --resume goes on with it, or choose another file")
        before = self.rows()
        self.sweep("a.db", "--points", 40, "--resume")
        self.assertEqual((self.rows(), self.files()), (before, ["a.db"]))

    def test_resume_without_a_file_begins(self):
        self.sweep("a.db", "--points", 40, "--resume")
        self.assertEqual(len(self.rows()), 40)

    def test_rows_have_values_as_they_are(self):
        self.sweep("a.db", "--points", 40)
        connection = sqlite3.connect(self.folder / "a.db")
        row = connection.execute(
            "SELECT status, reason, large, small, word, fits, version, seed, typeof(cost), typeof(cpu_s)"
            " FROM points WHERE number = 27").fetchone()
        self.assertEqual(row, ("done", "", 1, 0.1, 'c, "d"', 0, "0.1.0", 1, "real", "real"))
        self.assertEqual(connection.execute("SELECT cost, reason FROM points WHERE number = 3").fetchone(),
                         (None, '3 does not divide\n"17", or so'))
        finished = connection.execute("SELECT max(finished) FROM points").fetchone()[0]
        self.assertRegex(finished, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        connection.close()

    def test_other_configuration(self):
        self.sweep("a.db", "--points", 40)
        self.stays(2, 'a.db: belongs to another configuration ("made up", digest sha256:0) than this one ("made up", '
                      'digest sha256:1), or a file that it reads has changed since; choose another file, or restore '
                      'what was changed', "--resume", "--digest", "sha256:1")

    def test_other_version(self):
        self.sweep("a.db", "--points", 40)
        self.change("UPDATE sweep SET version = '0.0.9'")
        self.stays(2, "a.db: was begun by Flyover 0.0.9, whose results need not agree with those of this one, 0.1.0; "
                      "go on with that, or begin anew in another file", "--resume")

    def test_newer_format(self):
        self.sweep("a.db", "--points", 40)
        self.change("PRAGMA user_version = 9")
        for arguments in [("--resume",), ("--print", "csv")]:
            self.stays(2, "a.db: was written by a newer Flyover, in format 9; this one, 0.1.0, knows format 1",
                       *arguments)

    def test_no_database(self):
        (self.folder / "a.db").write_text("number,status\n" * 100)
        for arguments in [("--resume",), ("--print", "csv")]:
            self.stays(2, "a.db: is no SQLite database; choose another file", *arguments)

    def test_database_of_something_else(self):
        self.change("CREATE TABLE points (number INTEGER)")
        for arguments in [("--resume",), ("--print", "csv")]:
            self.stays(2, "a.db: is an SQLite database, but not of a sweep; choose another file", *arguments)

    def test_corrupt(self):
        self.sweep("a.db", "--points", 2000)
        path = self.folder / "a.db"
        whole = path.read_bytes()
        for damaged in [whole[:len(whole) // 2], whole[:8192] + b"\xa5" * 8192 + whole[16384:]]:
            path.write_bytes(damaged)
            result = self.run_driver("a.db", "--resume", "--points", 2000)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertRegex(result.stderr, r"^a\.db: is corrupt \(.*\); 'sqlite3 a\.db \.recover' prints what can be "
                                            r"saved, a new sweep needs another file\n$")
            self.assertEqual((path.read_bytes(), self.files()), (damaged, ["a.db"]))

    def test_missing_folder_and_folder_as_file(self):
        self.refuses(2, "no/a.db: cannot be written, its folder does not take no/a.db.lock: No such file or directory",
                     "no/a.db")
        self.refuses(2, "no.db: no such file", "no.db", "--print", "csv")
        (self.folder / "d.db").mkdir()
        self.refuses(2, "d.db: is a folder; name a file", "d.db", "--resume")
        self.assertEqual(self.files(), ["d.db"])

    def test_read_only_folder(self):
        self.sweep("a.db", "--points", 40)
        self.folder.chmod(0o555)
        try:
            self.stays(2, "a.db: cannot be written, its folder does not take a.db.lock: Permission denied", "--resume",
                       preexec_fn=as_nobody)
            self.refuses(2, "b.db: cannot be written, its folder does not take b.db.lock: Permission denied", "b.db",
                         preexec_fn=as_nobody)
            # What is finished can be read from there.
            self.assertEqual(self.sweep("a.db", "--print", "csv", preexec_fn=as_nobody).count("done"), 35)
        finally:
            self.folder.chmod(0o755)

    def test_read_only_file(self):
        self.sweep("a.db", "--points", 40)
        self.folder.chmod(0o777)
        (self.folder / "a.db").chmod(0o444)
        self.stays(2, "a.db: cannot be written: the file is read-only", "--resume", preexec_fn=as_nobody)

    def test_two_processes(self):
        first = self.start("a.db", "--points", 400, "--delay-us", 2000)
        while self.count() < 20:
            time.sleep(0.02)
        self.refuses(2, "a.db: another process is writing it; wait for it or choose another file", "a.db", "--resume")
        # Reading is free.
        self.assertGreater(self.sweep("a.db", "--print", "csv").count("done"), 10)
        self.assertEqual(first.wait(), 0)
        self.assertEqual((len(self.rows()), self.files()), (400, ["a.db"]))

    def test_two_processes_at_once(self):
        both = [self.start("a.db", "--points", 400, "--delay-us", 500, "--resume") for _ in range(2)]
        self.assertEqual(sorted(process.wait() for process in both), [0, 2])
        self.assertEqual(len(self.rows()), 400)

    def test_full_disk(self):
        """By a limit on the size of files, which everybody may set."""
        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        self.sweep("whole.db", "--points", 2000)
        result = self.run_driver("a.db", "--points", 2000, "--delay-us", 100, preexec_fn=limited)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"^a\.db: (cannot be written \(.*\)|the disk is full)\. \d+ points "
                                        r"are safe in it; .*--resume goes on with the others\n$")
        there = self.rows()
        self.assertEqual(there, self.rows("whole.db")[:len(there)])
        self.assertEqual(len(there), int(result.stderr.split("points are safe")[0].split()[-1]))
        self.sweep("a.db", "--points", 2000, "--resume")
        self.assertEqual(self.rows(), self.rows("whole.db"))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "needs to mount a small file system")
    def test_full_file_system(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if os.system(f"mount -t tmpfs -o size=256k tmpfs {disk} 2>/dev/null") != 0:
            self.skipTest("may not mount a small file system here")
        try:
            self.sweep("whole.db", "--points", 4000)
            result = self.run_driver("disk/a.db", "--points", 4000, "--delay-us", 200, "--threads", 2)
            self.assertRegex(result.stderr, r"^disk/a\.db: the disk is full\. \d+ points are safe in it; make room, and "
                                            r"--resume goes on with the others\n$")
            self.assertEqual(result.returncode, 1)
            self.assertLess(set(self.rows("disk/a.db")), set(self.rows("whole.db")))
            os.system(f"mount -o remount,size=8m {disk}")
            self.sweep("disk/a.db", "--points", 4000, "--resume")
            self.assertEqual(self.rows("disk/a.db"), self.rows("whole.db"))
        finally:
            os.system(f"umount {disk}")


if __name__ == "__main__":
    unittest.main()
