"""Does `flyover validate` compare what it is given, and say what is wrong with it?"""
import json
import unittest

from harness import CliTest

RECORD = """\
{"id": "%s", "system": {"gpu": "%s", "gpus_per_node": 8, "nodes": 1}, "n_gpus": 8, "collective": "all_reduce",
 "health": "%s", "rows": [{"bytes": 1024, "time_us": 20}, {"bytes": 1073741824, "busbw_GBps": 400}]}
"""


class Validate(CliTest):
    def record(self, name, gpu="H100", health="healthy"):
        (self.folder / "data").mkdir(exist_ok=True)
        self.write(f"data/{name}.json", RECORD % (name, gpu, health))

    def test_json_has_every_set_once_in_the_promised_form(self):
        self.record("good")
        self.record("slow", health="degraded")
        self.record("strange", gpu="Abacus 9")
        out = json.loads(self.succeeds("validate", "--data", "data", "--json", "-"))
        self.assertEqual([s["id"] for s in out["sets"]], ["good", "slow", "strange"])
        good, slow, strange = out["sets"]
        for key in ("id", "health", "collective", "rows", "skipped"):
            self.assertIn(key, good)
        self.assertEqual(list(good["rows"][0])[:8], [
            "bytes", "measured_us", "predicted_us", "low_us", "high_us", "algorithm", "protocol", "channels"])
        self.assertEqual(good["rows"][0]["measured_us"], 20)
        self.assertAlmostEqual(good["rows"][1]["measured_us"], 1073741824 / 400e3 * 1.75)
        for row in good["rows"]:
            self.assertLessEqual(row["low_us"], row["predicted_us"])
            self.assertLessEqual(row["predicted_us"], row["high_us"])
            self.assertLess(row["low_us"], row["high_us"])
        self.assertIsNone(good["skipped"])
        self.assertEqual((slow["apart"], slow["skipped"]), ("degraded", None))
        self.assertEqual(strange["skipped"], 'there are no hardware facts of the GPU "Abacus 9"')
        self.assertEqual(strange["rows"], [])
        summary = out["summary"]
        self.assertEqual([summary[k] for k in ("sets", "counted", "apart", "skipped", "rows")], [3, 1, 1, 1, 2])
        self.assertEqual(list(summary["by_size"]), ["up to 32 KiB", "up to 1 MiB", "up to 32 MiB", "larger"])

    def test_text_lists_sets_by_what_becomes_of_them(self):
        self.record("good")
        self.record("slow", health="degraded")
        self.record("strange", gpu="Abacus 9")
        text = self.succeeds("validate", "--data", "data")
        self.assertIn("median error of time", text)
        self.assertRegex(text, r"(?m)^slow .* degraded$")
        self.assertRegex(text, r'(?m)^strange +there are no hardware facts of the GPU "Abacus 9"$')
        self.assertTrue(text.endswith("\n3 sets: 1 counted, 1 not counted, 1 skipped\n"), text)
        self.assertEqual(self.succeeds("validate", "--data", "data", "--quiet"), "")

    def test_lines_fit_the_terminal(self):
        for line in self.succeeds("validate", "--only", "h100-", COLUMNS="80").splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_only_picks_by_id(self):
        out = json.loads(self.succeeds("validate", "--only", "h200-allreduce-5gpu", "--json", "-"))
        self.assertEqual([s["id"] for s in out["sets"]],
                         ["h200-allreduce-5gpu-stas8g-nvls", "h200-allreduce-5gpu-stas8g-ring"])
        nvls, ring = (s["rows"][0]["algorithm"] for s in out["sets"])
        self.assertEqual((nvls, ring), ("nvls", "ring"))
        self.fails(2, '--only: no measurement\'s id contains "h900"', "validate", "--only", "h900")

    def test_same_input_same_output(self):
        self.assertEqual(self.succeeds("validate", "--json", "-"), self.succeeds("validate", "--json", "-"))

    def test_wrong_folders_and_files(self):
        self.fails(2, "nowhere: expected a folder with measurements (*.json)", "validate", "--data", "nowhere")
        (self.folder / "data").mkdir()
        self.fails(2, "data: has no *.json files with measurements", "validate", "--data", "data")
        self.write("data/broken.json", '{"id": "x", "system": {},\n "n_gpus": "eight"}')
        self.fails(2, 'data/broken.json:2:12: /n_gpus: expected a whole number, got "eight"',
                   "validate", "--data", "data")


if __name__ == "__main__":
    unittest.main()
