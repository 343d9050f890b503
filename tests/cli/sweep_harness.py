"""Runs tests/support/sweep_driver.cpp: a sweep of made-up points into a database."""
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

DRIVER = os.environ["SWEEP_DRIVER"]


class SweepTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_driver(self, *arguments, before=(), **options):
        return subprocess.run([*before, DRIVER, *map(str, arguments)], cwd=self.folder, capture_output=True,
                              text=True, timeout=120, check=False, **options)

    def sweep(self, *arguments, before=(), **options):
        result = self.run_driver(*arguments, before=before, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def refuses(self, status, message, *arguments, **options):
        result = self.run_driver(*arguments, **options)
        self.assertEqual(result.stderr, message + "\n")
        self.assertEqual((result.returncode, result.stdout), (status, ""))

    def start(self, *arguments, before=(), **options):
        process = subprocess.Popen([*before, DRIVER, *map(str, arguments)], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)

        def end():
            if process.poll() is None:
                process.terminate()
                process.wait()

        self.addCleanup(end)
        return process

    def rows(self, name="a.db"):
        """What does not differ from run to run: view `results`, in order."""
        connection = sqlite3.connect(self.folder / name)
        try:
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return connection.execute("SELECT * FROM results").fetchall()
        finally:
            connection.close()

    def count(self, name="a.db"):
        """Rows so far, of a database that may be being written, or not yet there."""
        try:
            connection = sqlite3.connect(f"file:{self.folder / name}?mode=ro", uri=True)
            try:
                return connection.execute("SELECT count(*) FROM points").fetchone()[0]
            finally:
                connection.close()
        except sqlite3.OperationalError:
            return 0

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())
