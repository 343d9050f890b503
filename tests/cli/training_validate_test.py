"""Does `flyover validate --training` predict what it is given, and say what is wrong with it?"""
import json
import unittest

from harness import SOURCE, CliTest

RECORD = {
    "id": "one", "group": "own", "kind": "pretrain",
    "model": {"name": "own", "arch_complete": True, "seq": 4096, "arch": {
        "layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocab": 128256,
        "ffn_matrices": 3}},
    "hardware": {"gpu": "H100-80GB-SXM", "gpus": 16, "gpus_per_node": 8, "nodes": 2, "nic": None},
    "precision": "bf16", "layout": {"tp": 2, "pp": 1, "mbs": 1, "gbs": 64, "zero": 1, "recompute": "none"},
    "framework": {"name": "Megatron-Bridge/Megatron-Core", "version": "NeMo container 25.09"},
    "measured": {"step_time_s": 1.5}, "quality": "A"}


class TrainingValidate(CliTest):
    def records(self, *changes):
        (self.folder / "data").mkdir(exist_ok=True)
        self.write("data/results.json", json.dumps({"results": [{**RECORD, **change} for change in changes]}))

    def test_json_has_every_record_once_in_the_promised_form(self):
        self.records({}, {"id": "two", "precision": "int8"}, {"id": "three", "measured": {}, "quality": "B"})
        out = json.loads(self.succeeds("validate", "--training", "data", "--json", "-"))
        one, two, three = out["results"]
        self.assertEqual([r["id"] for r in out["results"]], ["one", "two", "three"])
        self.assertEqual((one["group"], one["measured_step_s"], one["quality"], one["skipped"]), ("own", 1.5, "A", None))
        self.assertAlmostEqual(sum(one["breakdown"].values()), one["predicted_step_s"], places=9)
        self.assertAlmostEqual(one["error"], one["predicted_step_s"] / 1.5 - 1)
        self.assertTrue(0.5 < one["predicted_step_s"] < 3, one["predicted_step_s"])
        self.assertEqual((two["predicted_step_s"], two["breakdown"]), (None, None))
        self.assertEqual(two["skipped"], 'the precision "int8" is not known')
        self.assertEqual((three["measured_step_s"], three["error"]), (None, None))
        self.assertGreater(three["predicted_step_s"], 0)
        summary = out["summary"]
        self.assertEqual((summary["records"], summary["predicted"]), (3, 2))
        self.assertEqual(summary["by_quality"]["A"]["error"]["records"], 1)

    def test_text_ends_with_the_count(self):
        self.records({}, {"id": "two", "precision": "int8"})
        text = self.succeeds("validate", "--training", "data")
        self.assertTrue(text.endswith("\n2 results: 1 predicted, 1 skipped\n"), text)
        self.assertIn('the precision "int8" is not known', text)
        self.assertEqual(self.succeeds("validate", "--training", "data", "--quiet"), "")

    def test_shipped_results_are_nearly_all_predicted(self):
        out = json.loads(self.succeeds("validate", "--training", "--json", "-"))
        self.assertEqual(len(out["results"]), 971)
        best = out["summary"]["by_quality"]["A"]
        self.assertEqual(best["records"], 794)
        self.assertGreaterEqual(best["predicted"], 0.95 * 794)
        shared = SOURCE.parent / "shared" / "training"
        if (shared / "results.json").exists():
            same = json.loads(self.succeeds("validate", "--training", str(shared), "--only", "llama3-8b", "--json", "-",
                                            "--quiet"))
            shipped = {r["id"]: r["predicted_step_s"] for r in out["results"]}
            for result in same["results"]:
                self.assertEqual(result["predicted_step_s"], shipped[result["id"]], result["id"])

    def test_wrong_folders_files_and_options(self):
        self.fails(2, "nowhere: expected a folder with training results (*.json)", "validate", "--training", "nowhere")
        (self.folder / "data").mkdir()
        self.fails(2, "data: has no *.json files with training results", "validate", "--training", "data")
        self.records({"layout": {"tp": "two"}})
        self.fails(2, 'data/results.json:1:394: /results/0/layout/tp: expected a whole number, got "two"', "validate", "--training", "data")
        self.fails(2, '--only: no training result\'s id contains "cat"', "validate", "--training", "--only", "cat")
        self.fails(2, "flyover validate: --data excludes --training (see flyover validate --help)",
                   "validate", "--training", "--data", "data")


if __name__ == "__main__":
    unittest.main()
