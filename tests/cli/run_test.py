"""Does `flyover run` tell the same story in all its outputs?"""
import collections
import csv
import gzip
import io
import json

from harness import SOURCE, CliTest

LAYER = ("run", "-t", "dgx-h100", "-w", SOURCE / "workloads/llama3-70b-tp8-layer.json")


class Run(CliTest):
    def result(self, *arguments):
        return json.loads(self.succeeds(*arguments, "--json", "-"))

    def test_the_breakdown_adds_up(self):
        result = self.result(*LAYER)
        parts = result["breakdown"]
        total = sum(v for k, v in parts.items() if k != "exposed_us") + sum(parts["exposed_us"].values())
        self.assertAlmostEqual(total / result["time_us"], 1, places=9)
        self.assertEqual([i["role"] for i in result["inputs"]], ["topology", "library", "workload"])

    def test_the_range_comes_from_what_is_exposed(self):
        result = self.result(*LAYER)
        self.assertLess(result["low_us"], result["time_us"])
        self.assertGreater(result["high_us"], result["time_us"])
        self.assertGreaterEqual(result["low_us"], result["breakdown"]["compute_us"])
        parts = result["breakdown"]
        exposed = sum(parts["exposed_us"].values()) + parts["startup_us"]
        waiting = parts["bubble_us"] + parts["idle_us"]
        self.assertAlmostEqual(sum(p["exposed_us"] for p in result["range"])
                               / (exposed * result["time_us"] / (result["time_us"] - waiting)), 1, places=6)
        for c in result["collectives"]:
            self.assertTrue(c["low_us"] <= c["time_us"] <= c["high_us"])

    def test_classes_are_verified_against_the_full_run(self):
        out = self.succeeds(*LAYER, "--verify-reduction")
        self.assertTrue(out.startswith("verified: 8 ranks in 1 classes, "), out)
        full, reduced = self.result(*LAYER, "--full"), self.result(*LAYER)
        self.assertEqual((full["classes"], reduced["classes"]), (8, 1))
        for result in full, reduced:
            del result["classes"], result["events"]
        self.assertEqual(full["time_us"], reduced["time_us"])
        self.assertEqual(full["collectives"], reduced["collectives"])

    def test_csv_has_the_collectives(self):
        rows = list(csv.DictReader(io.StringIO(self.succeeds(*LAYER, "--csv", "-"))))
        for row, stats in zip(rows, self.result(*LAYER)["collectives"], strict=True):
            self.assertEqual((row["op"], int(row["bytes"]), float(row["time_us"])),
                             (stats["op"], stats["bytes"], stats["time_us"]))

    def exchange(self, *more):
        self.write("x.json", '''{
          "exchanges": {"x": {"tokens": 128, "routing": {"model": "deepseek-v3"}}},
          "collectives": [{"op": "moe_dispatch", "exchange": "x"}, {"op": "moe_combine", "exchange": "x"}]}''')
        return ("run", "-t", "hgx-h800:2", "-w", "x.json", *more)

    def test_exchanges_of_experts_are_told_in_all_outputs(self):
        result = self.result(*self.exchange())
        combine, dispatch = result["collectives"]
        self.assertEqual((combine["op"], dispatch["op"]), ("moe_combine", "moe_dispatch"))
        for stats in combine, dispatch:
            experts = stats["experts"]
            self.assertEqual((experts["exchange"], experts["mode"], experts["balanced"], experts["sms"]), ("x", "normal", True, 20))
            self.assertEqual({other["mode"] for other in experts["other_modes"]}, {"nccl", "low-latency"})
            self.assertGreater(experts["logical_network_bytes"]["mean"], experts["network_bytes"]["mean"])
        rows = list(csv.DictReader(io.StringIO(self.succeeds(*self.exchange("--csv", "-")))))
        self.assertEqual([row["mode"] for row in rows], ["normal", "normal"])
        self.assertEqual(float(rows[1]["network_bytes"]), dispatch["experts"]["network_bytes"]["mean"])
        self.assertEqual(float(rows[1]["bottleneck_GBps"]), dispatch["experts"]["bottleneck_GBps"])
        text = self.succeeds(*self.exchange("--json", "r.json"))
        self.assertRegex(text, r"moe_dispatch +x +normal +128 ")
        self.assertIn("within error", self.succeeds("compare", "r.json", "r.json"))

    def test_settings_reach_exchanges(self):
        result = self.result(*self.exchange("--set", "exchanges.x.routing.sampled=true", "--set", "exchanges.x.tokens=32"))
        self.assertEqual(result["classes"], 16)
        self.assertIn('exchange "x" treats ranks differently (sampled, seed 1): every rank is simulated', result["warnings"])
        self.assertEqual(result["collectives"][0]["experts"]["tokens"], 32)
        self.fails(2, '--set exchanges.x.mode: expected "nccl", "normal", "direct", "low-latency" or '
                      '"fused", got "nromal", did you mean "normal"?',
                   *self.exchange("--set", "exchanges.x.mode=nromal"))

    def test_no_two_slices_of_a_track_overlap(self):
        result = self.result(*LAYER, "--full", "--timeline", "t.json")
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        tracks = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                # Picoseconds, so that touching slices touch exactly.
                begin, duration = (round(event[key] * 1e6) for key in ("ts", "dur"))
                tracks[event["pid"], event["tid"]].append((begin, begin + duration))
        self.assertGreater(len(tracks), 8)
        for slices in tracks.values():
            slices.sort()
            for (_, end), (begin, _) in zip(slices, slices[1:]):
                self.assertLessEqual(end, begin)
        last = max(end for slices in tracks.values() for _, end in slices)
        self.assertAlmostEqual(last / 1e6, result["time_us"], places=5)

    def test_a_compressed_timeline_is_the_same_timeline(self):
        for name in "t.json", "t.json.gz", "u.json.gz":
            self.succeeds(*LAYER, "--timeline", name)
        compressed = (self.folder / "t.json.gz").read_bytes()
        self.assertEqual(gzip.decompress(compressed), (self.folder / "t.json").read_bytes())
        self.assertEqual(compressed, (self.folder / "u.json.gz").read_bytes())
        self.assertEqual(compressed[4:8], bytes(4), "no time of writing")

    def test_the_order_in_the_file_does_not_matter(self):
        layer = json.loads((SOURCE / "workloads/all-reduce-1g.json").read_text())
        turned = dict(reversed(layer.items()))
        self.write("a.json", json.dumps(layer))
        self.write("b.json", json.dumps(turned))
        a, b = (self.result("run", "-t", "dgx-h100", "-w", name) for name in ("a.json", "b.json"))
        del a["inputs"], b["inputs"]
        self.assertEqual(a, b)

    def test_settings_reach_the_input_they_name(self):
        for setting in ("workload.collectives.0.repeat=2", "collectives.0.repeat=2"):
            result = self.result("run", "-t", "dgx-h100", "-w", SOURCE / "workloads/all-reduce-1g.json",
                                 "--set", setting)
            self.assertEqual(result["collectives"][0]["count"], 2)
            self.assertEqual(result["inputs"][2]["overrides"], ["collectives.0.repeat=2"])

    def test_a_training_layout_is_expanded(self):
        workload = SOURCE / "workloads/llama3-8b-fsdp.json"
        result = self.result("run", "-t", "dgx-h100:2", "-w", workload)
        self.assertEqual(result["ranks"], 16)
        self.assertTrue(result["memory"]["fits"])
        self.assertEqual(len(result["memory"]["stages"]), 1)
        stage = result["memory"]["stages"][0]
        self.assertEqual(sum(stage["parts_bytes"].values()), stage["bytes"])
        parts = result["breakdown"]
        total = sum(v for k, v in parts.items() if k != "exposed_us") + sum(parts["exposed_us"].values())
        self.assertAlmostEqual(total / result["time_us"], 1, places=9)
        self.assertIn("not stated, so the defaults of torchtitan: recompute of norm, activation, second_matrices, "
                      "gradients in 32 bits, no CUDA graphs", result["warnings"])
        text = self.succeeds("run", "-t", "dgx-h100:2", "-w", workload)
        self.assertRegex(text, r"\nmemory of stage +needs +share +most of it +micro-batches\n0 +[0-9.]+ GiB +[0-9.]+ %")
        self.assertIn("\nfits\n", text)

    def test_settings_change_a_training_layout(self):
        workload = SOURCE / "workloads/llama3-8b-fsdp.json"
        for prefix in ("workload.", ""):
            result = self.result("run", "-t", "dgx-h100:2", "-w", workload,
                                 "--set", prefix + "training.layout.tp=4", "--set", prefix + "training.layout.shard_group=4")
            self.assertEqual(result["inputs"][2]["overrides"], ["training.layout.tp=4", "training.layout.shard_group=4"])
            self.assertIn("tp", result["breakdown"]["exposed_us"])

    def test_a_layout_that_does_not_fit_says_why(self):
        text = self.succeeds("run", "-t", "dgx-h100:1", "-w", SOURCE / "workloads/llama3-8b-fsdp.json",
                             "--set", 'training.layout={"zero": 0}', "--set", "training.recompute=none", "--set", "training.global_batch=8")
        self.assertRegex(text, r"\ndoes not fit: stage 0 of 1 needs [0-9.]+ GiB of the [0-9.]+ GiB there are; the most go to ")

    def test_sensitivity_names_what_would_help(self):
        result = self.result("run", "-t", "dgx-h100", "-w", SOURCE / "workloads/all-reduce-1g.json",
                             "--sensitivity")
        best = result["sensitivity"][0]
        self.assertEqual(best["resource"], "nvlink")
        self.assertGreater(best["gain"], 0.05)

    def test_stdin(self):
        text = (SOURCE / "workloads/all-reduce-1g.json").read_text()
        self.assertGreater(json.loads(self.succeeds("run", "-t", "dgx-h100", "-w", "-", "--json", "-", stdin=text))
                           ["time_us"], 0)
