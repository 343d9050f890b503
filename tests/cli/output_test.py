"""Do results go where they were asked to go, whole or not at all?"""
import json
import os
import stat

from harness import CliTest

BENCH = ("bench", "all_reduce", "-t", "dgx-h100", "-b", "1M", "-e", "1M")


class Output(CliTest):
    def test_a_file_appears_beside_the_table(self):
        table = self.succeeds(*BENCH)
        self.assertEqual(self.succeeds(*BENCH, "--json", "out.json"), table)
        self.assertEqual(self.files(), ["out.json"])
        self.assertEqual(len(json.loads((self.folder / "out.json").read_text())["rows"]), 1)

    def test_a_dash_is_stdout_instead_of_the_table(self):
        self.assertEqual(json.loads(self.succeeds(*BENCH, "--json", "-"))["collective"], "all_reduce")
        self.assertEqual(self.files(), [])

    def test_quiet_prints_nothing(self):
        self.assertEqual(self.succeeds(*BENCH, "--quiet"), "")
        self.assertEqual(self.succeeds("--quiet", *BENCH), "")
        self.assertNotEqual(self.succeeds(*BENCH, "--quiet", "--json", "-"), "")

    def test_verbose_tells_on_stderr(self):
        result = self.flyover(*BENCH, "--verbose", "--json", "out.json")
        self.assertEqual(result.returncode, 0)
        self.assertIn("flyover: info: wrote out.json\n", result.stderr)
        self.assertEqual(result.stdout, self.succeeds(*BENCH))

    def test_an_output_that_cannot_be_written_is_found_before_the_simulation(self):
        # The topology does not exist either: the output is looked at first.
        bench = ("bench", "all_reduce", "-t", "no-such-cluster")
        (self.folder / "folder").mkdir()
        self.fails(2, "--json folder: cannot be written: is a directory", *bench, "--json", "folder")
        self.fails(2, "--json no/out.json: cannot be written: No such file or directory",
                   *bench, "--json", "no/out.json")
        self.fails(2, "--json and --csv both name ./out",
                   "run", "-t", "dgx-h100", "-w", "w.json", "--json", "out", "--csv", "./out")

    def test_nothing_is_written_on_error(self):
        self.write("w.json", '{"collectives": []}')
        self.write("old.json", "old")
        result = self.flyover("run", "-t", "dgx-h100", "-w", "w.json", "--json", "old.json", "--csv", "new.csv")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(self.files(), ["old.json", "w.json"])
        self.assertEqual((self.folder / "old.json").read_text(), "old")

    def test_a_link_stays_a_link_and_a_device_stays_a_device(self):
        self.write("real.json", "")
        (self.folder / "link.json").symlink_to("real.json")
        self.succeeds(*BENCH, "--json", "link.json")
        self.assertTrue((self.folder / "link.json").is_symlink())
        self.assertIn("rows", json.loads((self.folder / "real.json").read_text()))
        self.succeeds(*BENCH, "--json", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_full_disk_is_an_error(self):
        self.fails(2, "--json /dev/full: cannot be written: No space left on device",
                   *BENCH, "--quiet", "--json", "/dev/full")

    def test_tables_fit_the_terminal(self):
        for width in (40, 80, 120):
            for arguments in (BENCH, ("topo", "dgx-h100:2"), ("list", "algorithms")):
                text = self.succeeds(*arguments, COLUMNS=str(width))
                for line in text.splitlines():
                    is_row = "  " in line.strip() and "left out" not in line
                    if is_row:
                        self.assertLessEqual(len(line), width, line)

    def test_the_same_command_gives_the_same_bytes(self):
        self.assertEqual(self.succeeds(*BENCH, "--json", "-"), self.succeeds(*BENCH, "--json", "-"))
