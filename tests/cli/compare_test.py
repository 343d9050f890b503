"""Does `flyover compare` lay results side by side?"""
import json

from harness import SOURCE, CliTest


class Compare(CliTest):
    def setUp(self):
        super().setUp()
        for name, topology in (("h100", "dgx-h100"), ("a100", "dgx-a100")):
            self.succeeds("run", "-t", topology, "-w", SOURCE / "workloads/all-reduce-1g.json",
                          "--json", f"{name}.json", "--quiet")

    def test_two_results(self):
        lines = self.succeeds("compare", "h100.json", "a100.json").splitlines()
        self.assertEqual(lines[0].split(), ["h100", "a100"])
        self.assertEqual(lines[1].split()[0], "time")
        self.assertIn("+0.00 %", lines[2])

    def test_a_result_against_itself_does_not_differ(self):
        self.assertEqual(self.succeeds("compare", "h100.json", "h100.json").count("+0.00 %"), 2)

    def test_differences_are_held_against_the_error(self):
        lines = self.succeeds("compare", "h100.json", "a100.json", "h100.json").splitlines()
        self.assertRegex(lines[4], r"^difference +- +clear +within error$")
        out = json.loads(self.succeeds("compare", "h100.json", "a100.json", "--json", "-"))
        self.assertEqual(out["format"], "flyover-comparison-1")
        self.assertEqual([r["name"] for r in out["results"]], ["h100", "a100"])
        pair = out["pairs"][0]
        self.assertEqual((pair["first"], pair["second"], pair["within_error"]), (0, 1, False))
        self.assertGreater(pair["difference_us"], pair["margin_us"])
        same = json.loads(self.succeeds("compare", "h100.json", "h100.json", "--json", "-"))["pairs"][0]
        self.assertEqual((same["difference_us"], same["within_error"]), (0, True))

    def test_wrong_inputs(self):
        self.fails(2, "flyover compare: expected two or more results, got one", "compare", "h100.json")
        self.fails(2, "no.json: there is no such file", "compare", "h100.json", "no.json")
        self.write("other.json", "{}")
        self.fails(2, 'other.json:1:1: expected a result of `flyover run --json` ("format": "flyover-result-1")',
                   "compare", "h100.json", "other.json")


class CompareSteps(CliTest):
    JOB = {"model": "llama3-8b", "seq": 4096, "global_batch": 64, "micro_batch": 1, "layout": {"dp": "auto"}}

    def job(self, name, **layout):
        return self.write(name, json.dumps({"training": self.JOB | {"layout": self.JOB["layout"] | layout}}))

    def test_layouts_on_one_cluster(self):
        self.job("tp8.json", tp=8)
        self.job("tp2.json", tp=2)
        text = self.succeeds("compare", "tp8.json", "tp2.json", "-t", "dgx-h100:2")
        self.assertEqual(text.splitlines()[0].split(), ["tp8", "tp2"])
        self.assertRegex(text, r"tp2 beats tp8 by [0-9.]+ % \(\+- [0-9.]+ %\), in tokens/s/GPU")
        out = json.loads(self.succeeds("compare", "tp8.json", "tp2.json", "-t", "dgx-h100:2", "--json", "-"))
        self.assertEqual(out["format"], "flyover-step-comparison-1")
        for side in out["sides"]:
            self.assertGreater(side["error"]["own"], 0)
            self.assertGreaterEqual(side["error"]["common"], 0)
        self.assertTrue(out["pairs"][0]["same_system"])
        for side in out["sides"]:
            self.assertAlmostEqual(sum(side["breakdown_s"].values()), side["step_s"], places=6)

    def test_a_layout_against_itself(self):
        self.job("a.json", tp=4)
        text = self.succeeds("compare", "a.json", "a.json", "-t", "dgx-h100")
        self.assertIn("a and a take the same time, in tokens/s/GPU", text)

    def test_clusters(self):
        self.job("a.json", tp=4)
        text = self.succeeds("compare", "-w", "a.json", "-t", "dgx-h100:2", "-t", "dgx-a100:2")
        self.assertEqual(text.splitlines()[0].split(), ["dgx-h100:2", "dgx-a100:2"])
        self.assertRegex(text, r"dgx-h100:2 beats dgx-a100:2 by")
        best = self.succeeds("compare", "-m", "llama3-8b", "-t", "dgx-h100:2", "-t", "dgx-a100:2",
                             "--gpu-hour-price", "2")
        self.assertRegex(best, r"dgx-h100:2 beats dgx-a100:2 by")
        self.assertIn("$/M tokens", best)

    def test_plans(self):
        for name, nodes in (("one", 1), ("two", 2)):
            self.succeeds("plan", "-m", "llama3-8b", "-t", f"dgx-h100:{nodes}", "--replay", "0", "--json",
                          f"{name}.json", "--quiet")
        text = self.succeeds("compare", "one.json", "two.json")
        self.assertEqual(text.splitlines()[0].split(), ["one", "two"])
        self.assertIn("8 H100-SXM", text)

    def test_wrong_inputs(self):
        self.job("a.json", tp=4)
        self.fails(2, "a.json: a training workload needs a cluster to run on: -t TOPOLOGY", "compare", "a.json",
                   "a.json")
        self.fails(2, "flyover compare: expected two or more workloads or clusters, got one", "compare", "a.json",
                   "-t", "dgx-h100")
        self.fails(2, "flyover compare -t: expected either training workloads or a --model to plan for", "compare",
                   "-t", "dgx-h100", "-t", "dgx-a100")
