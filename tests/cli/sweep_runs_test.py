"""Is a sweep the same on any number of threads, and after any number of kills?"""
import random
import time
import unittest

from sweep_harness import SweepTest

POINTS = 1200


class Threads(SweepTest):
    def test_number_of_threads_changes_no_row(self):
        for mode in [(), ("--adaptive",)]:
            printed = []
            for threads in (1, 2, 4):
                name = f"{threads}.db"
                printed.append(self.sweep(name, "--threads", threads, "--points", POINTS, *mode))
            self.assertEqual(printed, [printed[0]] * 3)
            self.assertEqual(len(self.rows("1.db")), POINTS)
            self.assertEqual(self.rows("2.db"), self.rows("1.db"))
            self.assertEqual(self.rows("4.db"), self.rows("1.db"))
            for threads in (1, 2, 4):
                (self.folder / f"{threads}.db").unlink()
        self.assertEqual(self.files(), [])

    def test_broken_evaluation_ends_the_run_and_keeps_what_was_done(self):
        self.refuses(70, "point 600 is broken", "a.db", "--threads", 4, "--points", POINTS, "--throw-at", 600)
        self.assertGreater(len(self.rows()), 400)
        self.assertLess(len(self.rows()), POINTS)
        self.sweep("a.db", "--threads", 4, "--points", POINTS, "--resume")
        self.assertEqual(len(self.rows()), POINTS)


class Kills(SweepTest):
    """kill -9 at moments of which some are before the first row and some near the end."""

    def kill_and_resume(self, moments, *mode):
        self.sweep("whole.db", "--points", POINTS, *mode)
        expected = self.rows("whole.db")
        slowly = ("--points", POINTS, "--threads", 2, "--delay-us", 400, "--resume", *mode)
        dice = random.Random(7)
        partial = 0
        for moment in range(moments):
            name = f"{moment}.db"
            process = self.start(name, *slowly)
            if moment % 2 == 1:  # After the first batch; else perhaps before there is a file.
                while process.poll() is None and not self.count(name):
                    time.sleep(0.005)
            time.sleep(dice.uniform(0, 0.25))
            process.kill()
            process.wait()
            if (self.folder / name).exists():
                there = self.rows(name) if self.count(name) else []
                self.assertLessEqual(set(there), set(expected))
                partial += 0 < len(there) < POINTS
            self.sweep(name, "--points", POINTS, "--threads", 2, "--resume", *mode)
            self.assertEqual(self.rows(name), expected)
        return partial

    def test_after_20_kills_resume_makes_the_same_database(self):
        self.assertGreater(self.kill_and_resume(20), 0)

    def test_adaptive_sweep_goes_on_after_kills_too(self):
        self.kill_and_resume(5, "--adaptive")

    def test_one_sweep_bears_many_kills(self):
        self.sweep("whole.db", "--points", POINTS)
        dice = random.Random(11)
        for _ in range(8):
            process = self.start("a.db", "--points", POINTS, "--threads", 2, "--delay-us", 100, "--resume")
            time.sleep(dice.uniform(0, 0.1))
            process.kill()
            process.wait()
        self.sweep("a.db", "--points", POINTS, "--resume")
        self.assertEqual(self.rows("a.db"), self.rows("whole.db"))

    def test_what_was_committed_is_not_run_again(self):
        process = self.start("a.db", "--points", 400, "--delay-us", 5000)
        while self.count() < 20:
            time.sleep(0.02)
        process.kill()
        process.wait()
        done = self.count()
        # Before the first point that is not there nothing may be evaluated: this one would throw.
        self.sweep("a.db", "--points", 400, "--resume", "--throw-at", done - 1)
        self.assertEqual(len(self.rows()), 400)

    def test_slow_points_do_not_wait_for_a_batch(self):
        process = self.start("a.db", "--points", 20, "--delay-us", 1000000)
        deadline = time.monotonic() + 20
        while self.count() < 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertGreaterEqual(self.count(), 1)
        process.kill()
        process.wait()


if __name__ == "__main__":
    unittest.main()
