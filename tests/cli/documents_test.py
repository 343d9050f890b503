"""Every command that the README and docs/ show runs, as shown."""
import re
import shlex
import shutil
import unittest

from harness import SOURCE, CliTest

BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(document):
    """Lines of shell blocks that call flyover, `$ ` prompts and continuations resolved."""
    for block in BLOCK.findall(document.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ").strip()
            if re.match(r"(build/release/bin/)?flyover ", line):
                yield line


class DocumentsTest(CliTest):
    def test_every_command_runs(self):
        for folder in ("topologies", "workloads", "schemas", "configs", "bench"):
            shutil.copytree(SOURCE / folder, self.folder / folder)
        shown = 0
        for document in [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]:
            for line in commands(document):
                with self.subTest(document=str(document.relative_to(SOURCE)), command=line):
                    words = shlex.split(line, comments=True)
                    result = self.flyover(*words[1:])
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    shown += 1
        self.assertGreater(shown, 5)


if __name__ == "__main__":
    unittest.main()
