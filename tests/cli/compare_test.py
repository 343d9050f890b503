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
