"""Runs the built program as users do: in an empty folder, looking at stdout, stderr and exit status."""
import os
import pathlib
import subprocess
import tempfile
import textwrap
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["FLYOVER"]


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        """A file in the folder that the program runs in; returns its name."""
        (self.folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    def flyover(self, *arguments, stdin="", **environment):
        # COLUMNS and NO_COLOR of the developer's shell must not matter.
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        return subprocess.run(
            [PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin, env=kept | environment,
            capture_output=True, text=True, timeout=120, check=False)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def succeeds(self, *arguments, stdin="", **environment):
        result = self.flyover(*arguments, stdin=stdin, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def fails(self, status, message, *arguments, stdin=""):
        """The whole of stderr is `message`, stdout is empty, and no file appeared."""
        before = self.files()
        result = self.flyover(*arguments, stdin=stdin)
        self.assertEqual(result.stderr, message + "\n")
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertEqual(self.files(), before)
