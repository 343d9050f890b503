"""Is a sweep over several processes the same, whoever of them dies?"""
import os
import random
import signal
import sqlite3
import time
import unittest

from sweep_harness import DRIVER, SweepTest

MPIRUN = os.environ.get("MPIRUN", "")
POINTS = 1000


@unittest.skipUnless(MPIRUN, "this build has no MPI")
class Mpi(SweepTest):
    def ranks(self, count):
        words = [MPIRUN, "-n", str(count), "--oversubscribe"]
        return words + (["--allow-run-as-root"] if os.geteuid() == 0 else [])

    # Containers seldom let one process read another's memory, which Open MPI complains about.
    environment = os.environ | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_odls_base_sigkill_timeout": "0",
                                "ASAN_OPTIONS": "detect_leaks=0"}

    def over(self, count, *arguments):
        return self.sweep(*arguments, before=self.ranks(count), env=self.environment)

    def test_number_of_ranks_changes_no_row(self):
        for mode in [(), ("--adaptive",)]:
            expected = self.sweep("whole.db", "--points", POINTS, *mode)
            for ranks, threads in [(2, 1), (4, 2)]:
                printed = self.over(ranks, "a.db", "--points", POINTS, "--threads", threads, "--delay-us", 200, *mode)
                self.assertEqual(printed, expected)
                self.assertEqual(self.rows("a.db"), self.rows("whole.db"))
                (self.folder / "a.db").unlink()
            (self.folder / "whole.db").unlink()

    def processes(self, name, ranks):
        """Of the run into this database, by rank."""
        found = {}
        deadline = time.monotonic() + 30
        while len(found) < ranks and time.monotonic() < deadline:
            for entry in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.readlink(f"/proc/{entry}/cwd") != str(self.folder.resolve()):
                        continue
                    with open(f"/proc/{entry}/cmdline", "rb") as file:
                        if file.read().split(b"\0")[:2] != [DRIVER.encode(), name.encode()]:
                            continue
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        words = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
                    found[int(words[b"OMPI_COMM_WORLD_RANK"])] = int(entry)
                except (OSError, KeyError, ValueError):
                    continue
        self.assertEqual(sorted(found), list(range(ranks)))
        return found

    def test_whoever_dies_resume_makes_the_same_database(self):
        self.sweep("whole.db", "--points", POINTS)
        expected = self.rows("whole.db")
        dice = random.Random(3)
        ranks = 4
        names = [f"{victim}.db" for victim in range(ranks)]
        # All at once, as most of the time is mpirun's.
        runs = [self.start(name, "--points", POINTS, "--delay-us", 8000, before=self.ranks(ranks), env=self.environment)
                for name in names]
        processes = [self.processes(name, ranks) for name in names]
        for victim, name in enumerate(names):
            while self.count(name) < 20:
                time.sleep(0.01)
            time.sleep(dice.uniform(0, 0.2))
            os.kill(processes[victim][victim], signal.SIGKILL)
        for victim, name in enumerate(names):
            self.assertNotEqual(runs[victim].wait(timeout=60), 0)
            # mpirun does not wait for those that it kills.
            for process in processes[victim].values():
                deadline = time.monotonic() + 30
                while os.path.exists(f"/proc/{process}") and time.monotonic() < deadline:
                    time.sleep(0.01)
            there = self.rows(name)
            self.assertLess(len(there), POINTS)
            self.assertLessEqual(set(there), set(expected))
            if victim == 0:
                self.over(2, name, "--points", POINTS, "--resume")
            else:
                self.sweep(name, "--points", POINTS, "--resume", "--threads", 2)
            self.assertEqual(self.rows(name), expected)

    def fails(self, status, message, *arguments):
        """With this message once; mpirun says in its own words that a process failed."""
        result = self.run_driver(*arguments, before=self.ranks(3), env=self.environment)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stderr.count(message), 1, result.stderr)
        self.assertTrue(result.stderr.startswith(message + "\n---"), result.stderr)

    def test_errors_of_any_rank_are_reported_once(self):
        self.fails(2, "rank 2 reads other files than rank 0, or another program: start all of them with the same ones, on a "
                      "file system that they share", "a.db", "--points", POINTS, "--other-rank", 2)
        self.fails(2, "no/a.db: cannot be written, its folder does not take no/a.db.lock: No such file or directory",
                   "no/a.db")
        result = self.run_driver("b.db", "--points", POINTS, "--bad-rank", before=self.ranks(2), env=self.environment)
        self.assertTrue(result.stderr.startswith("rank 1: sweep.json: cannot be read\n---"), result.stderr)
        self.assertEqual(result.returncode, 2)

    def test_broken_evaluation_ends_all(self):
        result = self.run_driver("a.db", "--points", POINTS, "--delay-us", 500, "--throw-at", 300, before=self.ranks(3),
                                 env=self.environment)
        self.assertRegex(result.stderr, r"^(rank [12]: )?point 300 is broken\n---")
        self.assertEqual(result.stderr.count("is broken"), 1)
        self.assertEqual(result.returncode, 70)
        self.sweep("a.db", "--points", POINTS, "--resume")
        self.assertEqual(len(self.rows()), POINTS)


if __name__ == "__main__":
    unittest.main()
