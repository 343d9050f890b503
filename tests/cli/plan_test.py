"""Does `flyover plan` find layouts, say why, and refuse what makes no sense?"""
import csv
import io
import json

from harness import CliTest


class Plan(CliTest):
    def plan(self, *arguments):
        return self.succeeds("plan", "-m", "llama3-8b", "-t", "dgx-h100:2", "--replay", "0", *arguments)

    def test_the_best_layouts(self):
        text = self.plan()
        self.assertRegex(text, r"(?m)^llama3-8b|^llama3.1-8b")
        self.assertRegex(text, r"layouts considered: .* impossible, .* do not fit in 74.5 GiB, .* fit")
        self.assertRegex(text, r"(?m)^#1  tp ")
        self.assertRegex(text, r"(?m)^    against #1: [+-][0-9.e-]+ s ")
        self.assertIn("price: 2.95 $ per GPU-hour of H100-SXM, the typical price of 2026-05 (", text)

    def test_json_adds_up(self):
        out = json.loads(self.plan("--json", "-", "--gpu-hour-price", "2.5"))
        self.assertEqual(out["format"], "flyover-plan-1")
        plan = out["plans"][0]
        self.assertEqual((plan["gpus"], out["best_gpus"]), (16, 16))
        counts = plan["layouts"]
        self.assertEqual(counts["considered"], counts["impossible"] + counts["too_large"] +
                         counts["excluded_by_bound"] + counts["estimated"])
        self.assertEqual(len(plan["best"]), 5)
        for best in plan["best"]:
            self.assertAlmostEqual(sum(best["breakdown_s"].values()), best["step_s"], places=6)
            self.assertLessEqual(best["memory"]["bytes"], out["memory_capacity_bytes"])
            tokens = plan["global_batch"] * out["sequence"] / best["step_s"] / 16
            self.assertAlmostEqual(tokens / best["tokens_per_s_per_gpu"], 1, places=6)
            self.assertAlmostEqual(2.5 / 3600 / tokens * 1e6 / best["dollars_per_M_tokens"], 1, places=6)
        steps = [best["step_s"] for best in plan["best"]]
        self.assertEqual(steps, sorted(steps))

    def test_the_result_does_not_depend_on_threads(self):
        self.assertEqual(self.plan("--json", "-", "--threads", "1"), self.plan("--json", "-", "--threads", "3"))

    def test_csv_has_every_layout_that_fits(self):
        self.plan("--csv", "all.csv", "--json", "plan.json", "--tp", "2,4", "--micro-batch", "1", "--quiet")
        rows = list(csv.DictReader(io.StringIO((self.folder / "all.csv").read_text())))
        out = json.loads((self.folder / "plan.json").read_text())["plans"][0]
        self.assertEqual(len(rows), out["layouts"]["estimated"])
        self.assertEqual({row["tp"] for row in rows}, {"2", "4"})
        self.assertAlmostEqual(float(rows[0]["step_s"]), out["best"][0]["step_s"])

    def test_restrictions(self):
        out = json.loads(self.plan("--tp", "4", "--pp", "1-2", "--zero", "1", "--recompute", "full", "--schedule",
                                   "1f1b", "--micro-batch", "2", "--seq", "4096", "--global-batch", "64",
                                   "--json", "-"))
        for best in out["plans"][0]["best"]:
            training = best["training"]
            layout = training["layout"]
            self.assertEqual((layout["tp"], layout["zero"], training["micro_batch"]), (4, 1, 2))
            self.assertIn(layout["pp"], (1, 2))
            self.assertEqual((training["recompute"], training["seq"], training["global_batch"]), ("full", 4096, 64))

    def test_several_numbers_of_gpus(self):
        text = self.plan("--gpus", "4-16x2", "--top", "1", "--objective", "tokens-per-s-per-gpu")
        self.assertRegex(text, r"(?m)^best by tokens-per-s-per-gpu: \d+ GPUs$")
        self.assertEqual(text.count("layouts considered"), 3)

    def test_fewer_gpus_than_the_cluster_has(self):
        text = self.succeeds("plan", "-m", "llama3-8b", "-t", "dgx-h100:2", "--gpus", "8", "--replay", "1",
                             "--top", "1", "--global-batch", "16")
        self.assertRegex(text, r"(?m)^1 .* s +[+-][0-9.]+ %$")
        self.assertNotIn("not replayed", text)

    def test_impossible_layouts_are_listed_on_request(self):
        text = self.plan("--show-invalid", "--tp", "3,8")
        self.assertRegex(text, r"\d+ impossible: tensor 3 x context 1 x pipeline 1 = 3 does not divide 16 GPUs")
        invalid = json.loads(self.plan("--show-invalid", "--json", "-"))["plans"][0]["invalid"]
        self.assertEqual(sum(kind["layouts"] for kind in invalid["kinds"]),
                         sum(each["layouts"] for each in invalid["all"]))

    def test_nothing_fits(self):
        text = self.succeeds("plan", "-m", "llama3-405b", "-t", "dgx-h100", "--replay", "0")
        self.assertIn("no layout fits", text)
        self.assertIn("nearest to 74.5 GiB:", text)

    def test_a_plan_can_be_run(self):
        out = json.loads(self.plan("--json", "-", "--top", "1", "--global-batch", "32", "--seq", "2048"))
        self.write("best.json", json.dumps({"training": out["plans"][0]["best"][0]["training"]}))
        self.assertIn("compute", self.succeeds("run", "-t", "dgx-h100:2", "-w", "best.json"))

    def test_wrong_inputs(self):
        def fails(message, *arguments):
            self.fails(2, message, "plan", "-m", "llama3-8b", "-t", "dgx-h100:2", *arguments)

        fails("--gpus: the topology has 16 GPUs, fewer than 32", "--gpus", "32")
        fails('--gpus: a range needs the factor between its numbers, such as 512-4096x2; got "8-16"',
              "--gpus", "8-16")
        fails('--zero: no such choice as "4". There are 0, 1, 2, 3', "--zero", "4")
        fails('--schedule: no such choice as "1f1", did you mean "1f1b"? There are gpipe, 1f1b, interleaved-1f1b, '
              "zb-h1, zb-v, dualpipe, dualpipe-v, interleaved", "--schedule", "1f1")
        self.fails(2, "--objective cost: no typical price of a GPU-hour of H800-SXM; state one by --gpu-hour-price",
                   "plan", "-m", "llama3-8b", "-t", "hgx-h800:2", "--objective", "cost")
        fails('--set prices.gpu_hours.H10: there is no GPU "H10", did you mean "H100-SXM"?', "--set", "prices.gpu_hours.H10=2")
        fails('--lora: expected a rank, or a rank and "attention", "ffn" or "all" such as 16,all; got "many"',
              "--lora", "many")
        fails("tensor: sizes are 1 or more, got 0", "--tp", "0")
